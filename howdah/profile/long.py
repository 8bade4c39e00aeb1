# SPDX-License-Identifier: Apache-2.0
"""Sweeps of very many points: each is made and checked when it is asked for, and not kept.

Some points are checked at once: those that have, of each axis, each of its values once. They stand for the others where
something is asked of the whole sweep.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from howdah.profile.computed import Computed
from howdah.profile.profile import Cell, LongPoints, PointScenario, Profile, run_name
from howdah.profile.sweep import Point, Points

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


class LongSweep(LongPoints):
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
