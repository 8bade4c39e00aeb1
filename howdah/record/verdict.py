# SPDX-License-Identifier: Apache-2.0
"""verdict.json: checks of whether a run's path was what it claims to be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, Strict

from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.model import FilePart, checked

BEFORE = "before"
DURING = "during"
AFTER = "after"
ACCOUNTING = "accounting"
COLLECTION = "collection"
ENGINE = "engine"
STAGES = (BEFORE, DURING, AFTER, ACCOUNTING, COLLECTION, ENGINE)
_NUMBER = (int, float)
_UNIT = re.compile(r"[a-z]+([ /-][a-z]+)*")


@dataclass(frozen=True)
class Check:
    """``ok`` is None if the check could not be made; ``message`` is for people and then says why. Raise ValueError for
    values that verdict.json cannot hold.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=False)  # strictly, it would have to be a Check

    name: str
    stage: str
    ok: Annotated[bool | None, Strict()]
    message: str
    expected: float | int | str | None = None
    measured: float | int | str | None = None
    tolerance: float | int | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        right = {
            "name": isinstance(self.name, str),
            "stage": self.stage in STAGES,
            "message": isinstance(self.message, str),
            "tolerance": self.tolerance is None or isinstance(self.tolerance, _NUMBER),
            # A tolerance needs a unit.
            "unit": self.tolerance is None if self.unit is None else _UNIT.fullmatch(self.unit) is not None,
        }
        if not all(right.values()):
            wrong = " and ".join(field for field, is_right in right.items() if not is_right)
            raise ValueError(f"a check has no such {wrong}: {self}")


class Verdict(FilePart):
    """The content of verdict.json."""

    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    verdict: Literal["pass", "fail", "invalid"]
    checks: list[Check] = Field(default=[])

    @property
    def broken(self) -> list[Check]:
        return [check for check in self.checks if check.ok is False]


def read_verdict(directory: RunDirectory) -> Verdict:
    """Read verdict.json. Raise FileNotFoundError without it, and RecordError, which names the place of what is
    wrong."""
    return checked(Verdict, read_json(directory.verdict), directory.verdict)


def write_verdict(directory: RunDirectory, checks: list[Check]) -> Verdict:
    """Write verdict.json; any failed check makes the run *invalid*."""
    invalid = any(check.ok is False for check in checks)
    verdict = Verdict(format=1, verdict="invalid" if invalid else "pass", checks=checks)
    write_json(directory.verdict, verdict.plain())
    return verdict
