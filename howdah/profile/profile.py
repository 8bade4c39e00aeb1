# SPDX-License-Identifier: Apache-2.0
"""A profile that has been read and checked, and the cells it expands to."""

from __future__ import annotations

import dataclasses
import io
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

from howdah.algorithm import Algorithm
from howdah.profile.claim import ClaimSection
from howdah.profile.computed import Computed
from howdah.profile.control import ControlSection
from howdah.profile.figure import FigureSection
from howdah.profile.model import Scenario
from howdah.profile.recorded import RecordedSection
from howdah.profile.search import SearchSection
from howdah.profile.source import Document, WrittenFloat
from howdah.profile.unknown import GridPoint, UnknownsSection
from howdah.profile.written import written_path


@dataclass(frozen=True)
class Cell:
    """One run: one point of the sweep and one repetition.

    ``run`` is unique in the profile and fit for a file name; ``axes`` holds the swept fields' values as written;
    ``algorithms`` resolves every algorithm name the scenario uses; paths in the scenario are relative to ``directory``.
    """

    profile: str
    run: str
    scenario: Scenario
    axes: dict[str, Any]
    repetition: int
    algorithms: dict[str, Algorithm]
    directory: Path
    document: Document = dataclasses.field(repr=False, compare=False)

    def place(self, *path: str | int) -> str:
        """Where the profile says this: ``profiles/quick.yaml:12``."""
        return self.document.place(path)

    def absolute(self, path: str, *place: str | int) -> Path:
        """The path that the profile has at ``place``, made absolute; written_path says where relative ones start.

        Raises ProfileError for what can be no path.
        """
        return written_path(self.directory, path, self.place(*place)).resolve()


@dataclass(frozen=True)
class PointScenario:
    """One point of the sweep, checked. ``fewer_repetitions``: how many of the profile's it has, from the first on."""

    slug: str
    axes: dict[str, Any]
    scenario: Scenario
    algorithms: dict[str, Algorithm]
    document: Document = dataclasses.field(repr=False, compare=False)
    only_first_repetition: bool = False
    fewer_repetitions: int | None = None


class LongPoints(Computed[PointScenario]):
    """The points of a sweep that is too long to be kept."""

    @abstractmethod
    def cells(self, profile: Profile) -> Sequence[Cell]:
        """The runs of the profile, of which these are the points."""


def run_name(slug: str, repetition: int) -> str:
    """The name of a run, by the name of its point."""
    return f"{slug}-r{repetition}"


@dataclass(frozen=True)
class Profile:
    """``text`` is the profile with overrides applied (as it was written if there are none); ``points`` is its sweep,
    checked point by point, then the points of its controls; of a long sweep (profile/long.py) only some are checked.
    ``is_quick``: only what ``quick`` leaves of it. ``axes`` are the swept fields with all their values, also those left
    out now. ``grid`` is what ``unknown`` leaves open; its points follow those of the controls where ``with_unknowns``.
    """

    path: Path
    text: str
    points: list[PointScenario] | LongPoints
    axes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    is_quick: bool = False
    quick: dict[str, Any] = dataclasses.field(default_factory=dict)
    controls: dict[str, ControlSection] = dataclasses.field(default_factory=dict)
    unknown: UnknownsSection | None = None
    grid: list[GridPoint] = dataclasses.field(default_factory=list)
    with_unknowns: bool = False
    claims: list[ClaimSection] = dataclasses.field(default_factory=list)
    figures: list[FigureSection] = dataclasses.field(default_factory=list)
    search: SearchSection | None = None
    recorded: RecordedSection | None = None

    @property
    def name(self) -> str:
        return self.points[0].scenario.name

    @property
    def description(self) -> str:
        return self.points[0].scenario.description

    @property
    def repetitions(self) -> int:
        """Of each point of the sweep: those of the profile, or fewer of them that ``quick`` leaves."""
        first = self.points[0]
        return first.fewer_repetitions or first.scenario.repetitions

    @property
    def keep(self) -> Literal["everything", "first"]:
        return self.points[0].scenario.keep

    def cells(self) -> Sequence[Cell]:
        """Every run, repetitions of one point together. Of a long sweep each is made when it is asked for."""
        if isinstance(self.points, LongPoints):
            return self.points.cells(self)
        return [
            self.cell(point, repetition) for point in self.points for repetition in range(self.repetitions_of(point))
        ]

    def cell(self, point: PointScenario, repetition: int) -> Cell:
        return Cell(
            profile=self.name,
            run=run_name(point.slug, repetition),
            scenario=point.scenario,
            axes=point.axes,
            repetition=repetition,
            algorithms=point.algorithms,
            directory=self.path.resolve().parent,
            document=point.document,
        )

    def repetitions_of(self, point: PointScenario) -> int:
        """How many repetitions a point has."""
        return 1 if point.only_first_repetition else point.fewer_repetitions or self.repetitions


def to_yaml(data: dict[str, Any]) -> str:
    """A profile's data as YAML that reads back to the same data (without comments)."""
    yaml = YAML(typ="safe")
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = io.StringIO()
    yaml.dump(_writable(data), stream)
    return stream.getvalue()


def _writable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _writable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_writable(item) for item in value]
    return value.text if isinstance(value, WrittenFloat) else value
