# SPDX-License-Identifier: Apache-2.0
"""``drawn.json`` of an experiment: which figures and tables were made of it, as commands that make them again."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError
from howdah.foreign import read_foreign
from howdah.record.directory import parse_json, write_json

DRAWN_NAME = "drawn.json"
_MOST = 200  # the latest
_LONGEST = 4096
_MOST_BYTES = 1 << 20
_BEGINNINGS = [["howdah", verb, "--runs", "."] for verb in ("figure", "table")]


def drawn(home: Path) -> list[str]:
    """The commands in the order in which they were first given; none where the file is missing or damaged."""
    try:
        value = parse_json(read_foreign(home / DRAWN_NAME, _MOST_BYTES), home / DRAWN_NAME)
    except (OSError, ValueError, HowdahError):
        return []
    listed: Any = value.get("commands") if isinstance(value, dict) else None
    return [each for each in listed if _is_ours(each)][-_MOST:] if isinstance(listed, list) else []


def _is_ours(command: object) -> bool:
    """Whether it is one figure or table command and nothing else: a person may give it to a shell."""
    if not isinstance(command, str) or len(command) > _LONGEST or not command.isprintable():
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return shlex.join(words) == command and words[:4] in _BEGINNINGS


def add_drawn(paths: list[Path], verb: str, options: list[str]) -> None:
    """Note a command of runs and experiments in each experiment, to be given in the directory of runs. Where nothing
    may be written nothing is: the figure is there all the same."""
    homes = [path if (path / "experiment.json").exists() else path.parent for path in paths]
    names = [home.name if home == path else f"{home.name}/{path.name}" for home, path in zip(homes, paths, strict=True)]
    command = shlex.join(["howdah", verb, "--runs", ".", *names, *options])
    for home in dict.fromkeys(homes):
        known = drawn(home)
        if command in known or not (home / "experiment.json").exists():
            continue
        with suppress(OSError, HowdahError):
            write_json(home / DRAWN_NAME, {"format": 1, "commands": [*known, command][-_MOST:]})
