# SPDX-License-Identifier: Apache-2.0
"""A profile that has been read and checked, and the runs (cells) it expands to.

Points of a sweep are made on demand. The *chosen* points are checked at once and kept; they represent the others in
questions about the whole sweep. In a sweep of very many runs they include each value of each axis once; in any other
they are all points.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

from howdah.algorithm import Algorithm
from howdah.profile.claim import ClaimSection
from howdah.profile.control import ControlSection, GridPoint, UnknownsSection
from howdah.profile.experiment import RecordedSection
from howdah.profile.figure import FigureSection
from howdah.profile.model import Scenario
from howdah.profile.override import AnySettings
from howdah.profile.search import SearchSection
from howdah.profile.source import Document, Scalar, WrittenFloat
from howdah.profile.sweep import Computed, Point, Points
from howdah.profile.written import written_path


@dataclass(frozen=True)
class Cell:
    """One run: one point of the sweep and one repetition.

    ``run`` is unique in the profile and usable as a file name. ``axes`` are the swept fields' values as written.
    ``algorithms`` resolves every algorithm name of the scenario. Paths in the scenario are relative to ``directory``.
    """

    profile: str
    run: str
    scenario: Scenario
    axes: dict[str, Scalar]
    repetition: int
    algorithms: dict[str, Algorithm]
    directory: Path
    document: Document = dataclasses.field(repr=False, compare=False)

    def place(self, *path: str | int) -> str:
        """The place of a value in the profile: ``profiles/quick.yaml:12``."""
        return self.document.place(path)

    def absolute(self, path: str, *place: str | int) -> Path:
        """The path written at ``place``, made absolute; ``written_path`` defines where relative paths start.

        Raises ProfileError for an impossible path.
        """
        return written_path(self.directory, path, self.place(*place)).resolve()

    def parameter_places(self) -> dict[str, str]:
        """The place (``profiles/mine.yaml:12``) of every parameter of the algorithms, by ``module.parameter``.

        A parameter from the table of known algorithms has the place that chose its algorithm.
        """
        return {
            f"{algorithm.module}.{parameter}": self._place_of(name, parameter)
            for name, algorithm in self.algorithms.items()
            for parameter in algorithm.parameters
        }

    def _place_of(self, name: str, parameter: str) -> str:
        section = self.scenario.algorithms.get(name)
        while section is not None:
            if parameter in section.parameters:
                return self.place("algorithms", name, "parameters", parameter)
            if section.like is None:
                break
            # like can only name an earlier algorithm, so this ends.
            name = section.like
            section = self.scenario.algorithms.get(name)
        chosen = [index for index, flow in enumerate(self.scenario.flows) if flow.algorithm == name]
        return self.place("flows", chosen[0], "algorithm") if chosen else self.place("algorithm")


@dataclass(frozen=True)
class PointScenario:
    """A checked point of the sweep."""

    slug: str
    axes: dict[str, Scalar]
    scenario: Scenario
    algorithms: dict[str, Algorithm]
    document: Document = dataclasses.field(repr=False, compare=False)


def run_name(slug: str, repetition: int) -> str:
    return f"{slug}-r{repetition}"


@dataclass(frozen=True)
class Profile:
    """A profile and its sweep. ``text`` has overrides applied; without any, it is the file's text. ``points`` are the
    sweep and its additional points. ``is_quick``: only the part that ``quick`` keeps. ``axes`` are the swept fields
    with all their values, also those left out now. ``grid`` is the grid of unknowns; its points follow those of the
    controls if ``with_unknowns``.
    """

    path: Path
    text: str
    points: Sweep
    axes: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    is_quick: bool = False
    quick: AnySettings = dataclasses.field(default_factory=dict)
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
        """Repetitions of each point of the sweep, possibly reduced by ``quick``."""
        return self.points.repetitions[0]

    @property
    def keep(self) -> Literal["everything", "first"]:
        return self.points[0].scenario.keep

    def cells(self) -> Cells:
        """Every run, each made on demand."""
        return Cells(self)

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


def to_yaml(data: object) -> str:
    """A profile's data as YAML that reads back to the same data, without comments."""
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


Check = Callable[[Sequence[Any]], list[PointScenario]]


class SweepPart(Computed[PointScenario]):
    """Points of one part of a sweep: the profile's own, a control's, a grid point's, or the cross-check.

    The chosen points (all, if ``whole``) are checked at once, the others on demand. ``fewer``, if given, is the
    number of repetitions, from the first on. Raises ProfileError for an invalid point, at once or on demand.
    """

    def __init__(
        self, points: Sequence[Point | PointScenario], check: Check, fewer: int | None, *, whole: bool
    ) -> None:
        self._points, self._check, self.fewer = points, check, fewer
        #: for each axis, the points with each of its values and the first value of all other axes
        self.lines = points.lines() if isinstance(points, Points) else []
        places = range(len(points)) if whole else sorted({0, *itertools.chain(*self.lines)}) if points else []
        #: the chosen points by their indices
        self.chosen: dict[int, PointScenario] = dict(zip(places, check([points[at] for at in places]), strict=True))

    def __len__(self) -> int:
        return len(self._points)

    def at(self, index: int) -> PointScenario:
        known = self.chosen.get(index)
        return known if known is not None else self._check([self._points[index]])[0]

    def unchecked(self, index: int) -> Point | PointScenario:
        """The point's name and axes, without checking the point."""
        return self._points[index]


class Sweep(Computed[PointScenario]):
    """The points of the profile, then those of its controls, its grid, and its cross-check."""

    def __init__(self, parts: Sequence[SweepPart], *, whole: bool) -> None:
        self.parts, self.whole = list(parts), whole
        first = next(iter(self.parts[0].chosen.values()))
        self.repetitions = [part.fewer or first.scenario.repetitions for part in self.parts]  # for each part
        self._ends = list(itertools.accumulate(len(part) for part in self.parts))

    def __len__(self) -> int:
        return self._ends[-1]

    def at(self, index: int) -> PointScenario:
        number, place = self._find(index)
        return self.parts[number][place]

    def unchecked(self, index: int) -> Point | PointScenario:
        number, place = self._find(index)
        return self.parts[number].unchecked(place)

    def _find(self, index: int) -> tuple[int, int]:
        """The number of the part that has the point, and the point's index in it."""
        number = bisect_right(self._ends, index)
        return number, index - (self._ends[number - 1] if number else 0)


class Cells(Computed[Cell]):
    """The runs of a profile. Repetitions of a point are adjacent."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self.sweep = profile, profile.points
        #: points and repetitions of each part
        self.sizes = [(len(part), often) for part, often in zip(self.sweep.parts, self.sweep.repetitions, strict=True)]
        self._ends = list(itertools.accumulate(math.prod(size) for size in self.sizes))
        self._begins = list(itertools.accumulate((points for points, _ in self.sizes), initial=0))

    def __len__(self) -> int:
        return self._ends[-1]

    def at(self, index: int) -> Cell:
        point, repetition = self._find(index)
        return self._profile.cell(self.sweep[point], repetition)

    def name(self, index: int) -> tuple[str, dict[str, Scalar]]:
        """The name of a run and its axes, without checking its point."""
        point, repetition = self._find(index)
        found = self.sweep.unchecked(point)
        return run_name(found.slug, repetition), found.axes

    def _find(self, index: int) -> tuple[int, int]:
        """The index of the run's point in the sweep, and its repetition."""
        number = bisect_right(self._ends, index)
        point, repetition = divmod(index - (self._ends[number - 1] if number else 0), self.sizes[number][1])
        return self._begins[number] + point, repetition

    def first_of(self, part: int, point: int) -> int:
        """The index of the first repetition of a part's point."""
        return (self._ends[part - 1] if part else 0) + point * self.sizes[part][1]

    @property
    def chosen(self) -> Sequence[int]:
        """Indices of the runs that represent all: every run, or the first repetition of each chosen point."""
        if self.sweep.whole:
            return range(len(self))
        parts = enumerate(self.sweep.parts)
        return [self.first_of(number, point) for number, part in parts for point in part.chosen]
