# SPDX-License-Identifier: Apache-2.0
"""experiment.json: the list of an experiment's runs and cells, with its reader and writer; and drawn.json beside it:
the commands that made figures and tables of the runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from howdah.errors import HowdahError, RecordError
from howdah.foreign import is_plain_name, read_foreign
from howdah.record.directory import parse_json, read_json, write_json, write_whole
from howdah.record.model import HINT, FilePart, Scalar, checked

EXPERIMENT_FORMAT: Literal[1] = 1
PENDING = "pending"


def _plain_name(name: str) -> str:
    if not is_plain_name(name):
        raise ValueError("this is not the name of a run")
    return name


class IndexedRun(FilePart):
    """One run of the list. A field that another version left out has its default."""

    run: Annotated[str, AfterValidator(_plain_name)] = Field(description="The name of its directory.")
    axes: dict[str, Scalar] = Field(default={}, description="The value of each swept field.")
    algorithm: str = Field(default="", description="As in plan.json.")
    repetition: int = Field(default=0, description="Counts from 0.")
    status: str = Field(default="unknown", description="As in run.json; `pending` before it exists.")
    verdict: str | None = Field(default=None, description="As in verdict.json; null before it exists.")


class ProfileSource(FilePart):
    """The profile of an experiment."""

    file: str = Field(default="", description="Its name as given; `profiles/quick.yaml` for a shipped one.")
    sha256: str = Field(default="", description="Digest of the text that was read, with overrides.")


class ExperimentIndex(FilePart):
    """experiment.json."""

    format: Literal[1] = Field(default=EXPERIMENT_FORMAT, description="The version of this list.")
    name: str = Field(default="", description="The name of the experiment's directory.")
    profile: ProfileSource = Field(
        default=ProfileSource(), description="The profile that was run: `file` and `sha256`."
    )
    description: str | None = Field(default=None, description="What the profile says of itself.")
    created: str = Field(default="", description="When this list was written.")
    quick: bool = Field(default=False, description="Whether only the `quick:` subset was run.")
    axes: dict[str, list[Scalar]] = Field(
        default={}, description="Every value of each swept field, including those that were left out."
    )
    total: int | None = Field(
        default=None,
        description="The number of all runs; only of a sweep of more than 1000, which lists its ended runs alone.",
    )
    cells: list[IndexedRun] = Field(description="One row for each run.")

    def text(self) -> str:
        return "".join(_lines(self, self.cells))


def read_index(path: Path) -> ExperimentIndex:
    """Read and check experiment.json. Raise RecordError, or OSError if it cannot be read at all."""
    found = checked(ExperimentIndex, read_json(path), path)
    places: dict[str, int] = {}
    for number, cell in enumerate(found.cells):
        if (first := places.setdefault(cell.run, number)) != number:
            what = f"cells.{number}.run: {cell.run!r} is already the run of cells.{first}"
            raise RecordError(what, where=str(path), hint=HINT)
    return found


def write_index(path: Path, about: ExperimentIndex, cells: Iterable[IndexedRun]) -> None:
    """Write the complete list or nothing, one line a run. ``cells`` replace those of ``about`` and are written one at a
    time, to save memory."""
    write_whole(path, _lines(about, cells))


def _lines(about: ExperimentIndex, cells: Iterable[IndexedRun]) -> Iterator[str]:
    said = about.model_dump(exclude_unset=True, exclude={"cells"})
    yield json.dumps(said, indent=1).removesuffix("}").removesuffix("\n")
    yield ',\n "cells": [' if said else '\n "cells": ['
    before = ""
    for cell in cells:
        yield f"{before}\n  {json.dumps(cell.model_dump(exclude_unset=True))}"
        before = ","
    yield "\n ]\n}\n"


DRAWN_NAME = "drawn.json"
_MOST = 200  # latest commands that are kept
_LONGEST = 4096
_MOST_BYTES = 1 << 20
_BEGINNINGS = [["howdah", verb, "--runs", "."] for verb in ("figure", "table")]


def drawn(home: Path) -> list[str]:
    """The commands in the order in which they were first given; empty if the file is missing or damaged."""
    try:
        value = parse_json(read_foreign(home / DRAWN_NAME, _MOST_BYTES), home / DRAWN_NAME)
    except (OSError, ValueError, HowdahError):
        return []
    listed: Any = value.get("commands") if isinstance(value, dict) else None
    return [each for each in listed if _is_ours(each)][-_MOST:] if isinstance(listed, list) else []


def _is_ours(command: object) -> bool:
    """Whether this is a single figure or table command, because people may paste it into a shell."""
    if not isinstance(command, str) or len(command) > _LONGEST or not command.isprintable():
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return shlex.join(words) == command and words[:4] in _BEGINNINGS


def add_drawn(paths: list[Path], verb: str, options: list[str]) -> None:
    """Note a command about runs and experiments in each experiment, relative to the directory of runs. If that cannot
    be written, do nothing: the figure exists anyway."""
    homes = [path if (path / "experiment.json").exists() else path.parent for path in paths]
    names = [home.name if home == path else f"{home.name}/{path.name}" for home, path in zip(homes, paths, strict=True)]
    command = shlex.join(["howdah", verb, "--runs", ".", *names, *options])
    for home in dict.fromkeys(homes):
        known = drawn(home)
        if command in known or not (home / "experiment.json").exists():
            continue
        with suppress(OSError, HowdahError):
            write_json(home / DRAWN_NAME, {"format": 1, "commands": [*known, command][-_MOST:]})
