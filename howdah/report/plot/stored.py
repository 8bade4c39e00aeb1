# SPDX-License-Identifier: Apache-2.0
"""Stored results of runs that are not here: means, texts, curves and distributions, from which figures are drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from howdah.measure.statistics import FEW, Spread
from howdah.profile import Profile
from howdah.profile.figure import FigureSection, Take
from howdah.profile.model import Scenario

# A measure, of which flow, taken how; and the line that it is relative to, empty for a number as it was measured.
Key = tuple[str, int | str | None, Take | None, str]


@dataclass(frozen=True)
class Mean:
    """A mean of ``count`` repetitions with its spread as ``Statistic`` shows it; the ends are None if there is no
    spread."""

    count: int
    mean: float
    low: float | None = None
    high: float | None = None

    def about_mean(self, least: float = -math.inf) -> Spread | None:
        """As ``Statistic.about_mean``."""
        if self.low is None or self.high is None:
            return None
        few = self.count < FEW
        return Spread(self.low if few else max(least, self.low), self.high, few)


@dataclass
class StoredPoint:
    """All repetitions of one point of a profile; ``numbers`` holds a mean, or the count of each text."""

    slug: str
    algorithm: str
    axes: dict[str, Any]
    single: bool  # whether it has one flow, which need not be named
    numbers: dict[Key, Mean | dict[str, int]] = field(default_factory=dict)
    missing: dict[Key, list[str]] = field(default_factory=dict)  # why repetitions have none, a reason for each
    units: dict[str, str] = field(default_factory=dict)
    times_us: dict[str, int] = field(default_factory=dict)  # how long a run and its measurement window are

    def key(self, metric: str, flow: int | str | None, take: Take | None, to: str = "") -> Key:
        """The key of a number."""
        return (metric, None, None, to) if self.single else (metric, flow, take, to)


@dataclass
class StoredExperiment:
    """The points of a profile. ``figures`` has, by id, the data of figures that are not drawn from values of points."""

    runs: list[StoredPoint]
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    source: str = ""  # a sentence for captions
    pending: tuple[Any, ...] = ()

    def stored(self, figure: FigureSection) -> dict[str, Any]:
        return self.figures.get(figure.id, {})


def points_of(profile: Profile) -> list[StoredPoint]:
    """The points of a profile and of its controls, with nothing stored yet."""
    return [
        StoredPoint(
            point.slug,
            str(point.scenario.algorithm),
            dict(point.axes),
            len(point.scenario.flows) == 1 and not point.scenario.groups,
            times_us=_times_us(point.scenario),
        )
        for point in profile.points
    ]


def _times_us(scenario: Scenario) -> dict[str, int]:
    window = scenario.measure.window
    return {"duration": scenario.duration, "window": (window.stop or scenario.duration) - window.start}
