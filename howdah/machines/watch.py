# SPDX-License-Identifier: Apache-2.0
"""From a started machine to one that answers by SSH: watched, with a limit, and with words for each way it fails."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError, RunFailedError
from howdah.machines.ssh import UnreachableError, Way
from howdah.machines.state import Remembered
from howdah.record.console import console_tail

_POLL_S = 0.5
_BANNER_S = 2.0
_LOGIN_S = 90.0
_TAIL_LINES = 8
_PANIC = "Kernel panic"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Booting:
    """A machine that was started. ``console`` and ``said`` are files: what it and what QEMU have written."""

    name: str
    process: Remembered
    way: Way
    console: Path
    said: Path


def await_ssh(machines: list[Booting], limit_s: float, progress: Progress) -> dict[str, float]:
    """Wait until every machine lets us in; seconds that each took from now.

    Raises RunFailedError when one ends, or does not answer within ``limit_s``; UnreachableError at once when one
    answers and refuses the machine set's key.
    """
    started = time.monotonic()
    ready: dict[str, float] = {}
    while len(ready) < len(machines):
        for machine in machines:
            if machine.name in ready:
                continue
            if not machine.process.is_alive():
                raise ended(machine)
            if _answers(machine.way) and _lets_in(machine.way):
                ready[machine.name] = round(time.monotonic() - started, 1)
        progress(f"boot: {', '.join(ready) or 'none'} of {len(machines)} ready", len(ready), len(machines))
        if len(ready) < len(machines):
            if time.monotonic() - started > limit_s:
                late = next(machine for machine in machines if machine.name not in ready)
                raise _silent(late, limit_s)
            time.sleep(_POLL_S)
    return ready


def _answers(way: Way) -> bool:
    """Whether an SSH server says its first line. That a connection opens tells nothing: QEMU itself takes it."""
    try:
        with socket.create_connection((way.address, way.port), timeout=_BANNER_S) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _lets_in(way: Way) -> bool:
    try:
        return way.run(["true"], timeout_s=_LOGIN_S).returncode == 0
    except UnreachableError as error:
        if error.final:
            raise
        return False


def ended(machine: Booting) -> RunFailedError:
    """The machine's process is gone, and this is what it and QEMU said last."""
    return RunFailedError(
        f"the virtual machine {machine.name} ended{_last_words(machine.said)}",
        where=str(machine.console),
        hint=_console_hint(machine.console),
    )


def _silent(machine: Booting, limit_s: float) -> HowdahError:
    return RunFailedError(
        f"the virtual machine {machine.name} runs, and does not answer by SSH after {limit_s:g} s",
        where=str(machine.console),
        hint=_console_hint(machine.console) + "\n  --boot-limit N waits N seconds.",
    )


def _last_words(said: Path) -> str:
    lines = said.read_text(errors="replace").strip().splitlines() if said.exists() else []
    return f": {' / '.join(lines[-3:])}" if lines else ""


def _console_hint(console: Path) -> str:
    lines = console_tail(console, 200)
    # What led to a panic stands before it; behind it come registers.
    panic = next((number for number, line in enumerate(lines) if _PANIC in line), len(lines))
    lines = lines[: panic + 1][-_TAIL_LINES:]
    if not lines:
        return "Nothing was written to its console: it has not come to start a kernel that does."
    shown = "\n    ".join(lines)
    return f"Last lines of its console:\n    {shown}"
