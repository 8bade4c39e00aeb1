# SPDX-License-Identifier: Apache-2.0
"""The series that are drawn against time, from the table in ``reports/series.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from howdah.assets import data

Place = Literal["report", "profile", "live"]


@dataclass(frozen=True)
class DrawnSeries:
    """One row of the table, which explains its fields."""

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
    def is_per_run(self) -> bool:
        """Whether there is one curve for the run instead of one per flow."""
        return self.role == "bottleneck"

    @property
    def promql(self) -> str:
        """Its PromQL query, with the placeholders ``$run`` (in the selector) and ``$window``."""
        text = f'{self.metric}{{$run, role="{self.role}"}}'
        text = f"rate({text}[$window])" if self.rate else text
        text += f" * {self.times:.12g}" if self.times != 1 else ""
        return text + (f" / {self.per:.12g}" if self.per != 1 else "")

    def matches(self, metric: str, role: str) -> bool:
        """Return whether a recorded series with this metric and role holds the data of this series."""
        return (metric, role) == (self.metric, self.role)


@cache
def drawn_series() -> dict[str, DrawnSeries]:
    """Return all series by id, in the order of the table."""
    rows: dict[str, dict[str, Any]] = data("series.yaml")
    return {name: DrawnSeries(id=name, places=tuple(row["in"]), **_rest(row)) for name, row in rows.items()}


def _rest(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "in"}


def series_of(place: Place) -> list[DrawnSeries]:
    """Return the series drawn in ``place``."""
    return [each for each in drawn_series().values() if place in each.places]
