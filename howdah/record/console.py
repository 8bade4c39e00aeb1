# SPDX-License-Identifier: Apache-2.0
"""The console of a guest, as its run's directory keeps it."""

from __future__ import annotations

import re
from pathlib import Path

CONSOLE_LINES = 15
_KILLED = re.compile(r"Out of memory: Killed process \d+ \(([^)]*)\)")  # mm/oom_kill.c


def console_tail(console: Path, lines: int = CONSOLE_LINES) -> list[str]:
    """The last lines of a console, without empty ones."""
    try:
        with console.open("rb") as file:
            file.seek(max(console.stat().st_size - 64 * 1024, 0))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]


def killed_for_memory(console: Path) -> list[str]:
    """Names of the programs that the guest's kernel killed because its memory was full."""
    try:
        text = console.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return _KILLED.findall(text)
