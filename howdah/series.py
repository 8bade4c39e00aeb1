# SPDX-License-Identifier: Apache-2.0
"""The series that are drawn against time. ``reports/series.yaml`` is the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from howdah.assets import data

Place = Literal["report", "profile", "live"]


@dataclass(frozen=True)
class DrawnSeries:
    """One row of the table; the file says what the fields mean."""

    id: str
    name: str
    title: str
    unit: str
    metric: str
    role: Literal["sender", "receiver", "bottleneck"]
    places: tuple[Place, ...]
    rate: bool = False
    times: float = 1
    per: float = 1

    @property
    def is_of_the_run(self) -> bool:
        """Whether a run has one curve of it, instead of one a flow."""
        return self.role == "bottleneck"

    @property
    def promql(self) -> str:
        """Its query, with the places ``$run`` (inside of a selector) and ``$window``."""
        text = f'{self.metric}{{$run, role="{self.role}"}}'
        text = f"rate({text}[$window])" if self.rate else text
        text += f" * {self.times:.12g}" if self.times != 1 else ""
        return text + (f" / {self.per:.12g}" if self.per != 1 else "")

    def is_made_of(self, metric: str, role: str) -> bool:
        """Whether a recorded series of that metric and role holds what this one shows."""
        return (metric, role) == (self.metric, self.role)


@cache
def drawn_series() -> dict[str, DrawnSeries]:
    """All series by id, in the order of the table."""
    rows: dict[str, dict[str, Any]] = data("series.yaml")
    return {name: DrawnSeries(id=name, places=tuple(row["in"]), **_rest(row)) for name, row in rows.items()}


def _rest(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "in"}


def series_of(place: Place) -> list[DrawnSeries]:
    """Those that are drawn there."""
    return [each for each in drawn_series().values() if place in each.places]
