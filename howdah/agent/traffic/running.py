# SPDX-License-Identifier: Apache-2.0
"""The list of running programs, for an observer outside who sees that time has stopped."""

from __future__ import annotations

import json
from pathlib import Path

RUNNING = "program-running.json"  # in raw/program/


def note_running(directory: Path, pid: int, words: str | None) -> None:
    """Note a running program, described by ``words``; None removes it after its end."""
    path = directory / RUNNING
    running: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if words is None:
        running.pop(str(pid), None)
    else:
        running[str(pid)] = words
    new = path.with_suffix(".new")
    new.write_text(json.dumps(running), encoding="utf-8")
    new.replace(path)
