# SPDX-License-Identifier: Apache-2.0
"""A profile that has been read and checked, and the cells it expands to.

Of a sweep of very many points each is made and checked when it is asked for, and not kept. Some points are checked at
once: those that have, of each axis, each of its values once. They stand for the others where something is asked of the
whole sweep."""

from __future__ import annotations

import dataclasses
import io
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML

from howdah.algorithm import Algorithm
from howdah.profile.claim import ClaimSection
from howdah.profile.control import ControlSection
from howdah.profile.experiment import RecordedSection
from howdah.profile.figure import FigureSection
from howdah.profile.model import Scenario
from howdah.profile.search import SearchSection
from howdah.profile.source import Document, WrittenFloat
from howdah.profile.sweep import Computed, Point, Points
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
    """One point of the sweep, checked. ``fewer_repetitions``: how many of the profile's it has, from the first on."""

    slug: str
    axes: dict[str, Any]
    scenario: Scenario
    algorithms: dict[str, Algorithm]
    document: Document = dataclasses.field(repr=False, compare=False)
    only_first_repetition: bool = False
    fewer_repetitions: int | None = None


def run_name(slug: str, repetition: int) -> str:
    """The name of a run, by the name of its point."""
    return f"{slug}-r{repetition}"


@dataclass(frozen=True)
class Profile:
    """``text`` is the profile with overrides applied (as it was written if there are none); ``points`` is its sweep,
    checked point by point, then the points of its controls; of a long sweep (``LongSweep``) only some are checked.
    ``is_quick``: only what ``quick`` leaves of it. ``axes`` are the swept fields with all their values, also those left
    out now. ``grid`` is what ``unknown`` leaves open; its points follow those of the controls where ``with_unknowns``.
    """

    path: Path
    text: str
    points: list[PointScenario] | LongSweep
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
        if isinstance(self.points, LongSweep):
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


Check = Callable[[Sequence[Point]], list[PointScenario]]


class CheckedPoints(Computed[PointScenario]):
    """The points of a sweep, checked when they are asked for; the chosen ones, ``some``, at once.

    Raises ProfileError, later where it is asked for a point that is wrong.
    """

    def __init__(self, points: Sequence[Point], check: Check) -> None:
        self._points, self._check = points, check
        lines = points.lines() if isinstance(points, Points) else []
        chosen = sorted({0, *itertools.chain(*lines)}) if points else []
        self._known = dict(zip(chosen, check([points[each] for each in chosen]), strict=True))
        self.lines = lines

    @property
    def some(self) -> dict[int, PointScenario]:
        """The chosen points by their places."""
        return self._known

    def __len__(self) -> int:
        return len(self._points)

    def at(self, index: int) -> PointScenario:
        known = self._known.get(index)
        return known if known is not None else self._check([self._points[index]])[0]

    def unchecked(self, index: int) -> Point:
        """Of a point that may be wrong: its name and its place on the axes."""
        return self._points[index]


class LongSweep(Computed[PointScenario]):
    """The points of the profile, then those of its controls, of its grid, and of its cross-check."""

    def __init__(self, parts: Sequence[CheckedPoints], fewer_repetitions: Sequence[int | None]) -> None:
        self.parts = list(parts)
        self.fewer_repetitions = list(fewer_repetitions)  # of each part
        self.last: list[PointScenario] = []  # of the cross-check
        self._ends = list(itertools.accumulate(len(part) for part in self.parts))

    def __len__(self) -> int:
        return (self._ends[-1] if self._ends else 0) + len(self.last)

    def at(self, index: int) -> PointScenario:
        number, place = self._find(index)
        return self.last[place] if number == len(self.parts) else self.parts[number][place]

    def unchecked(self, index: int) -> Point | PointScenario:
        number, place = self._find(index)
        return self.last[place] if number == len(self.parts) else self.parts[number].unchecked(place)

    def _find(self, index: int) -> tuple[int, int]:
        """The part a point is of, and its place there; the number of parts stands for the cross-check."""
        number = bisect_right(self._ends, index)
        return number, index - (self._ends[number - 1] if number else 0)

    def cells(self, profile: Profile) -> LongCells:
        return LongCells(profile, self)

    @property
    def some(self) -> list[PointScenario]:
        """Those that were checked at once."""
        return [point for part in self.parts for point in part.some.values()] + self.last


class LongCells(Computed[Cell]):
    """The runs of a long sweep. Those of one point follow each other."""

    def __init__(self, profile: Profile, sweep: LongSweep) -> None:
        self._profile = profile
        self.sweep = sweep
        parts = zip(sweep.parts, sweep.fewer_repetitions, strict=True)
        #: points and repetitions of each part
        self.parts: list[tuple[int, int]] = [(len(part), fewer or profile.repetitions) for part, fewer in parts]
        self.parts.append((len(sweep.last), 1))
        self._ends = list(itertools.accumulate(math.prod(part) for part in self.parts))
        self._begins = list(itertools.accumulate((points for points, _ in self.parts), initial=0))

    def __len__(self) -> int:
        return self._ends[-1]

    def at(self, index: int) -> Cell:
        point, repetition = self._find(index)
        return self._profile.cell(self.sweep[point], repetition)

    def name(self, index: int) -> tuple[str, dict[str, Any]]:
        """The name of a run and its place on the axes, though its point may be wrong."""
        point, repetition = self._find(index)
        found = self.sweep.unchecked(point)
        return run_name(found.slug, repetition), found.axes

    def _find(self, index: int) -> tuple[int, int]:
        """The point of a run, and its repetition."""
        number = bisect_right(self._ends, index)
        point, repetition = divmod(index - (self._ends[number - 1] if number else 0), self.parts[number][1])
        return self._begins[number] + point, repetition

    def first_of(self, part: int, point: int) -> int:
        """The place of the first repetition of a point of a part."""
        return (self._ends[part - 1] if part else 0) + point * self.parts[part][1]

    @cached_property
    def some(self) -> list[int]:
        """Places of the first repetitions of the points that were checked at once."""
        return list(self._some())

    def _some(self) -> Iterator[int]:
        for number, part in enumerate(self.sweep.parts):
            yield from (self.first_of(number, point) for point in part.some)
        yield from (self.first_of(len(self.sweep.parts), point) for point in range(len(self.sweep.last)))
