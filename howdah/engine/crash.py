# SPDX-License-Identifier: Apache-2.0
"""Why a guest's kernel crashed or stalled, according to its console: the cause in words, the module, first calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from howdah.record.kernel_log import KernelAlarm, alarms, in_use

# How run.json's reason begins, after the location, if the guest's kernel crashed.
PANICKED, DIED = "the guest's kernel panicked", "the guest's kernel died"
_READ_BYTES = 256 * 1024  # from the beginning: a broken kernel may complain forever
_STAMP = re.compile(r"^\[ *[\d.]+\] ?")
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
# How a user-mode kernel (arch/um/kernel/trap.c, um_arch.c) and a real one say what happened.
_WORDS = {
    r"Kernel mode signal 8\b|divide error": "a division by zero",
    r"Kernel mode signal 4\b|invalid opcode": "an instruction that the processor does not have",
    r"Kernel mode signal 11\b|Segfault with no mm|Kernel mode fault at|NULL pointer dereference|unable to handle page"
    r" fault|general protection fault": "a bad address",
    r"BUG!$|kernel BUG at": "a BUG() or BUG_ON()",
    r"scheduling while atomic|sleeping function called from invalid context": "sleeping where TCP must not sleep",
    r"Out of memory|System is deadlocked on memory": "no memory left",
}


def crash(console: Path, own_modules: Sequence[str]) -> str | None:
    """Return why the kernel panicked, or None. ``own_modules`` are the profile's modules that were in use."""
    found = _alarms(console)
    panic = next((match for alarm in found if (match := _PANIC.search(alarm.text))), None)
    if panic is None:
        return None
    first = found[0]
    traced = next((alarm for alarm in found if alarm.module), first)
    words = _cause([alarm.text for alarm in found])
    what = f"{words} ({panic[1].strip()})" if words else panic[1].strip()
    before = f", after {first.text}" if not _PANIC.search(first.text) else ""
    whose = f", in the module {traced.module}" if traced.module else in_use(own_modules)
    frames = traced.frames or next((alarm.frames for alarm in found if alarm.frames), ())
    called = f"; called, the last first: {', '.join(frames)}" if frames else ""
    return f"{what}{whose}{before}{called}"


def is_crash(reason: str) -> bool:
    """Return whether the reason in run.json says that the guest's kernel crashed."""
    return PANICKED in reason or DIED in reason


def kernel_alarm(console: Path, own_modules: Sequence[str]) -> str | None:
    """Return the first alarm on the console of a guest that still runs; None without one."""
    found = _alarms(console)
    if not found:
        return None
    words = _cause([found[0].text])
    says = f"{words} ({found[0].described})" if words else found[0].described
    return f"its kernel says: {says}{'' if found[0].module else in_use(own_modules)}"


def _cause(texts: Sequence[str]) -> str | None:
    return next((words for text in texts for pattern, words in _WORDS.items() if re.search(pattern, text)), None)


def _alarms(console: Path) -> list[KernelAlarm]:
    try:
        with console.open("rb") as file:
            text = file.read(_READ_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return []
    return list(alarms([(0, _STAMP.sub("", line)) for line in text.splitlines()]))
