# SPDX-License-Identifier: Apache-2.0
"""Compile the plans of a profile's runs. Imports only what plans need, so that ``howdah plan`` starts quickly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.profile.profile import Cell, Cells
from howdah.profile.sweep import Computed
from howdah.record.model import Scalar

Wanted = Callable[[str, dict[str, Scalar]], bool]  # called with a run's name and its values on the axes


@dataclass(frozen=True, eq=False)
class Plans(Computed[Plan]):
    """The plans of the runs at ``places``, increasing indexes into ``cells``.

    Plans of the chosen cells are kept in ``compiled``; the others are compiled on each access.
    """

    profile: Profile
    cells: Cells
    compile: Callable[[Cell], Plan]
    compiled: dict[int, Plan]
    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def at(self, index: int) -> Plan:
        place = self.places[index]
        known = self.compiled.get(place)
        return known if known is not None else self.compile(self.cells[place])

    def only(self, wanted: Wanted) -> Plans:
        """Return the plans of the runs for which ``wanted`` is true."""
        return replace(self, places=[place for place in self.places if wanted(*self.cells.name(place))])

    @property
    def whole(self) -> bool:
        """Whether all plans are kept."""
        return self.profile.points.whole

    @cached_property
    def chosen(self) -> dict[int, Plan]:
        """The kept plans, which represent all plans, by their index among these."""
        found = ((bisect_left(self.places, place), place) for place in self.compiled)
        return {
            index: self.compiled[place]
            for index, place in found
            if index < len(self.places) and self.places[index] == place
        }


def compile_plans(profile: Profile, *, engine: str | None = None, kernel: str | None = None) -> Plans:
    """Compile the plan of every run of a profile; ``engine`` and ``kernel`` replace the profile's own."""

    def compiled(cell: Cell) -> Plan:
        return compile_plan(cell, engine, kernel)

    cells = profile.cells()
    return Plans(profile, cells, compiled, {place: compiled(cells[place]) for place in cells.chosen}, range(len(cells)))
