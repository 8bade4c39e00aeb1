# SPDX-License-Identifier: Apache-2.0
"""The console of a guest, as its run's directory keeps it."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.errors import RecordError
from howdah.foreign import open_foreign, read_foreign

CONSOLE_LINES = 15
_KILLED = re.compile(r"Out of memory: Killed process \d+ \(([^)]*)\)")  # mm/oom_kill.c


def console_tail(console: Path, lines: int = CONSOLE_LINES) -> list[str]:
    """The last lines of a console, without empty ones."""
    try:
        with open_foreign(console) as file:
            file.seek(max(console.stat().st_size - 64 * 1024, 0))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def killed_for_memory(console: Path) -> list[str]:
    """Names of the programs that the guest's kernel killed because its memory was full."""
    try:
        text = read_foreign(console).decode(errors="replace")
    except (OSError, RecordError):
        return []
    return _KILLED.findall(text)
