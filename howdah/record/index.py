# SPDX-License-Identifier: Apache-2.0
"""experiment.json: the one model of the list that says which run is which cell, with its reader and its writer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from howdah.errors import RecordError
from howdah.foreign import is_plain
from howdah.record.directory import read_json, write_whole
from howdah.record.model import HINT, FilePart, Scalar, checked

EXPERIMENT_FORMAT: Literal[1] = 1
PENDING = "pending"


def _plain_name(name: str) -> str:
    if not is_plain(name):
        raise ValueError("this is not the name of a run")
    return name


class IndexedRun(FilePart):
    """A row: one run. A field that another version left out has its default."""

    run: Annotated[str, AfterValidator(_plain_name)] = Field(description="The name of its directory.")
    axes: dict[str, Scalar] = Field(default={}, description="The value of each swept field.")
    algorithm: str = Field(default="", description="That of plan.json.")
    repetition: int = Field(default=0, description="Counts from 0.")
    status: str = Field(default="unknown", description="That of run.json; `pending` before there is one.")
    verdict: str | None = Field(default=None, description="That of verdict.json; null before there is one.")


class ProfileSource(FilePart):
    """The profile of an experiment."""

    file: str = Field(default="", description="As it was named: `profiles/quick.yaml` of a shipped one.")
    sha256: str = Field(default="", description="Of the text that was read, with overrides applied.")


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
    """experiment.json, checked. Raises RecordError, and OSError where it cannot be read at all."""
    found = checked(ExperimentIndex, read_json(path), path)
    places: dict[str, int] = {}
    for number, cell in enumerate(found.cells):
        if (first := places.setdefault(cell.run, number)) != number:
            what = f"cells.{number}.run: {cell.run!r} is already the run of cells.{first}"
            raise RecordError(what, where=str(path), hint=HINT)
    return found


def write_index(path: Path, about: ExperimentIndex, cells: Iterable[IndexedRun]) -> None:
    """Write the list as a whole or not at all, one line a run; ``cells`` take the place of those of ``about``, and are
    not in memory together."""
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
