# SPDX-License-Identifier: Apache-2.0
"""Alarms in a kernel's log: whose code caused each, and the calls that led to it; and a guest's console, as its run
directory keeps it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from howdah.codec import OCCASIONAL
from howdah.errors import RecordError
from howdah.foreign import open_foreign, read_foreign
from howdah.linux.kernelmessage import is_alarm

SOURCE = "kernel_log"  # in tables/ingest.json
OWN_PREFIX = "howdah_own_"  # of a profile's own module in the kernel, where its file's name may be built in
MOST_FRAMES = 6
_BLOCK_LINES = 60  # lines of registers and trace after the alarm's first line
_END = "---[ end trace"
_INSTRUCTION = "RIP: "
# A frame names a function, its offset and size, and the module in brackets: mine_ca+0x1f/0x40 [tcp_mine].
_FRAME = re.compile(r"(\? )?(?<![\w.])([A-Za-z_][\w.]*)\+0x([0-9a-f]+)/0x[0-9a-f]+(?: \[(\w+)[^]]*\])?")
_REPORTERS = re.compile(
    r"(?:dump_stack\w*|show_stack|show_trace\w*|panic|v?panic|__warn|warn_slowpath_\w+|report_bug|segv\w*|relay_signal"
    r"|die|oops_\w+|bust_spinlocks)(?:\.\w+)*"
)
_BUILT_IN = re.compile(r"/\S*/\.partial-[^/\s]+/")  # a path in the cache's build directory


@dataclass(frozen=True)
class KernelAlarm:
    """An alarm. ``text`` is its first line; ``module`` the first module of the trace, by its file's name, None for the
    kernel's own code; ``frames`` are the innermost calls that the kernel is sure of; ``machine`` names the kernel if
    there are several."""

    time_us: int
    text: str
    module: str | None
    frames: tuple[str, ...]
    machine: str = field(default="", metadata=OCCASIONAL)

    @property
    def described(self) -> str:
        """The alarm in one line."""
        whose = f", in the module {self.module}" if self.module and f"[{self.module}]" not in self.text else ""
        calls = f"; called, the last first: {', '.join(self.frames)}" if self.frames else ""
        return f"{self.text}{whose}{calls}"


def alarms(lines: Sequence[tuple[int, str]]) -> Iterator[KernelAlarm]:
    """Yield the alarms in a log or console, given as times and texts; the lines after an alarm, up to the next, belong
    to it."""
    starts = [number for number, (_time, text) in enumerate(lines) if is_alarm(text)]
    for number, following in itertools.pairwise([*starts, len(lines)]):
        time_us, text = lines[number]
        block = [text]
        for _time, each in lines[number + 1 : min(following, number + _BLOCK_LINES)]:
            if _END in each:
                break
            block.append(each)
        found = _frames(block)
        module = next((name for _function, name in found if name), None)
        frames = tuple(f"{function} [{name}]" if name else function for function, name in found[:MOST_FRAMES])
        yield KernelAlarm(time_us, _BUILT_IN.sub("", text.strip()).replace(OWN_PREFIX, ""), module, frames)


def own_name(module: str) -> str:
    """A module's file name, given its name in the kernel."""
    return module.removeprefix(OWN_PREFIX)


def in_use(own_modules: Sequence[str]) -> str:
    """Words for an alarm without a trace: which of the profile's modules were in use."""
    if not own_modules:
        return ""
    named = f"module{'s' if len(own_modules) > 1 else ''} {' and '.join(own_modules)}"
    return f"; the profile's {named} {'were' if len(own_modules) > 1 else 'was'} in use"


def _frames(block: Sequence[str]) -> list[tuple[str, str | None]]:
    """Function and module of each call, innermost first, without the functions that print the trace.

    A kernel without frame pointers marks every call as a guess; then the guesses are used. A return address at a
    function's first byte means that the previous function made the call, and its name is not in the log. If a line
    names the instruction, its function is the innermost.
    """
    lines = sorted(block, key=lambda line: _INSTRUCTION not in line)
    every = [(match, _INSTRUCTION in line) for line in lines for match in _FRAME.finditer(line)]
    sure = [frame for frame in every if not frame[0][1]]
    found: dict[tuple[str, str | None], None] = {}
    for match, is_instruction in sure if len(sure) > 1 else every:
        _unsure, function, offset, module = match.groups()
        if not _REPORTERS.fullmatch(function):
            name = function if is_instruction or int(offset, 16) else "?"
            found.setdefault((name, own_name(module) if module else None))
    return list(found)


CONSOLE_LINES = 15
_KILLED = re.compile(r"Out of memory: Killed process \d+ \(([^)]*)\)")  # mm/oom_kill.c


def console_tail(console: Path, lines: int = CONSOLE_LINES) -> list[str]:
    """The last non-empty lines of a console."""
    try:
        with open_foreign(console) as file:
            file.seek(max(console.stat().st_size - 64 * 1024, 0))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def killed_for_memory(console: Path) -> list[str]:
    """Names of the programs that the guest's kernel killed for lack of memory."""
    try:
        text = read_foreign(console).decode(errors="replace")
    except (OSError, RecordError):
        return []
    return _KILLED.findall(text)
