# SPDX-License-Identifier: Apache-2.0
"""A profile that has been read and checked, and the cells it expands to.

Each point of a sweep is made when it is asked for. Some points are chosen: they are checked at once, kept, and stand
for the others where something is asked of the whole sweep. Of a sweep of very many runs they have, of each axis, each
of its values once; of any other they are all points."""

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

    ``run`` is unique in the profile and fit for a file name; ``axes`` holds the swept fields' values as written;
    ``algorithms`` resolves every algorithm name the scenario uses; paths in the scenario are relative to ``directory``.
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
        """Where the profile says this: ``profiles/quick.yaml:12``."""
        return self.document.place(path)

    def absolute(self, path: str, *place: str | int) -> Path:
        """The path that the profile has at ``place``, made absolute; written_path says where relative ones start.

        Raises ProfileError for what can be no path.
        """
        return written_path(self.directory, path, self.place(*place)).resolve()

    def parameter_places(self) -> dict[str, str]:
        """``module.parameter`` to its place (``profiles/mine.yaml:12``), for every parameter of the algorithms.

        A parameter that the table of algorithms brings has the place where its algorithm was chosen.
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
            # Only an algorithm declared before can be meant, so that this comes to an end.
            name = section.like
            section = self.scenario.algorithms.get(name)
        chosen = [index for index, flow in enumerate(self.scenario.flows) if flow.algorithm == name]
        return self.place("flows", chosen[0], "algorithm") if chosen else self.place("algorithm")


@dataclass(frozen=True)
class PointScenario:
    """One point of the sweep, checked."""

    slug: str
    axes: dict[str, Scalar]
    scenario: Scenario
    algorithms: dict[str, Algorithm]
    document: Document = dataclasses.field(repr=False, compare=False)


def run_name(slug: str, repetition: int) -> str:
    """The name of a run, by the name of its point."""
    return f"{slug}-r{repetition}"


@dataclass(frozen=True)
class Profile:
    """``text`` is the profile with overrides applied (as it was written if there are none); ``points`` are its sweep
    and what is made beside it. ``is_quick``: only what ``quick`` leaves of it. ``axes`` are the swept fields with all
    their values, also those left out now. ``grid`` is what ``unknown`` leaves open; its points follow those of the
    controls where ``with_unknowns``.
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
        """Of each point of the sweep: those of the profile, or fewer of them that ``quick`` leaves."""
        return self.points.repetitions[0]

    @property
    def keep(self) -> Literal["everything", "first"]:
        return self.points[0].scenario.keep

    def cells(self) -> Cells:
        """Every run, each made when it is asked for."""
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


Check = Callable[[Sequence[Any]], list[PointScenario]]


class SweepPart(Computed[PointScenario]):
    """Points of a sweep: those of the profile, of a control, of a point of the grid, or the cross-check.

    The chosen ones, all if ``whole``, are checked at once, the others when they are asked for. ``fewer`` is how many of
    the profile's repetitions they have, from the first on. Raises ProfileError, later where it is asked for a point
    that is wrong.
    """

    def __init__(
        self, points: Sequence[Point | PointScenario], check: Check, fewer: int | None, *, whole: bool
    ) -> None:
        self._points, self._check, self.fewer = points, check, fewer
        #: for each axis the points that have each of its values, and of all other axes the first
        self.lines = points.lines() if isinstance(points, Points) else []
        places = range(len(points)) if whole else sorted({0, *itertools.chain(*self.lines)}) if points else []
        #: the chosen points by their places
        self.chosen: dict[int, PointScenario] = dict(zip(places, check([points[at] for at in places]), strict=True))

    def __len__(self) -> int:
        return len(self._points)

    def at(self, index: int) -> PointScenario:
        known = self.chosen.get(index)
        return known if known is not None else self._check([self._points[index]])[0]

    def unchecked(self, index: int) -> Point | PointScenario:
        """Of a point that may be wrong: its name and its place on the axes."""
        return self._points[index]


class Sweep(Computed[PointScenario]):
    """The points of the profile, then those of its controls, of its grid, and of its cross-check."""

    def __init__(self, parts: Sequence[SweepPart], *, whole: bool) -> None:
        self.parts, self.whole = list(parts), whole
        first = next(iter(self.parts[0].chosen.values()))
        self.repetitions = [part.fewer or first.scenario.repetitions for part in self.parts]  # of each part
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
        """The part a point is of, and its place there."""
        number = bisect_right(self._ends, index)
        return number, index - (self._ends[number - 1] if number else 0)


class Cells(Computed[Cell]):
    """The runs of a profile. Those of one point follow each other."""

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
        """The name of a run and its place on the axes, though its point may be wrong."""
        point, repetition = self._find(index)
        found = self.sweep.unchecked(point)
        return run_name(found.slug, repetition), found.axes

    def _find(self, index: int) -> tuple[int, int]:
        """The point of a run, and its repetition."""
        number = bisect_right(self._ends, index)
        point, repetition = divmod(index - (self._ends[number - 1] if number else 0), self.sizes[number][1])
        return self._begins[number] + point, repetition

    def first_of(self, part: int, point: int) -> int:
        """The place of the first repetition of a point of a part."""
        return (self._ends[part - 1] if part else 0) + point * self.sizes[part][1]

    @property
    def chosen(self) -> Sequence[int]:
        """Places of the runs that stand for all: all of them, or the first repetitions of the chosen points."""
        if self.sweep.whole:
            return range(len(self))
        parts = enumerate(self.sweep.parts)
        return [self.first_of(number, point) for number, part in parts for point in part.chosen]
