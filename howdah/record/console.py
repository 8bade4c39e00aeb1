# SPDX-License-Identifier: Apache-2.0
"""The console of a guest, as its run's directory keeps it."""

from __future__ import annotations

from pathlib import Path

CONSOLE_LINES = 15


def console_tail(console: Path, lines: int = CONSOLE_LINES) -> list[str]:
    """The last lines of a console, without empty ones."""
    try:
        with console.open("rb") as file:
            file.seek(max(console.stat().st_size - 64 * 1024, 0))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
