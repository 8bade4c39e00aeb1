# SPDX-License-Identifier: Apache-2.0
"""What a liar is: what it lies about, how, and what must catch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.liars.bench import Bench

About = Literal["path", "run", "clock", "capture", "table", "result", "file", "module", "baseline", "comparison"]
ABOUTS: tuple[About, ...] = (
    "path",
    "run",
    "clock",
    "capture",
    "table",
    "result",
    "file",
    "module",
    "baseline",
    "comparison",
)


@dataclass(frozen=True)
class Catch:
    """What catches a liar, by name.

    ``kind`` ``check``: the check ``name`` of ``stage`` in verdict.json fails and the run is invalid. ``error``: an
    exception of the class ``name`` is raised. ``state``: howdah reports the state ``name``. The message contains
    ``words``.
    """

    kind: Literal["check", "error", "state"]
    name: str
    words: str
    stage: str = ""

    def __str__(self) -> str:
        return f"{self.kind} `{self.name}`" + (f" ({self.stage})" if self.stage else "")


def check(stage: str, name: str, words: str) -> Catch:
    return Catch("check", name, words, stage)


@dataclass(frozen=True)
class Liar:
    """``name`` is a slug, ``lie`` one sentence: what is not as it should be. ``honest`` names the same thing without
    the lie, which must not be caught."""

    name: str
    about: About
    lie: str
    caught: Catch
    honest: str


@dataclass(frozen=True)
class RunLiar(Liar):
    """Makes a run in a directory and returns it with the plan it claims to have followed; the judge must catch it.

    ``appears`` is whether the check exists in the honest run, too, where it then must pass. A few checks exist only
    where something is wrong, such as that of a missing file.
    """

    make: Callable[[Bench, Path], tuple[RunDirectory, Plan]]
    appears: bool = True


@dataclass(frozen=True)
class ToldLiar(Liar):
    """Everything that is not a run to be judged: ``told`` returns what howdah says of the lie."""

    told: Callable[[Bench, Path], list[Catch]]
