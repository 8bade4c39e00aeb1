# SPDX-License-Identifier: Apache-2.0
"""What the path does in time: the profile's delay variation, the perturbation's jitter, and its timetable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from howdah.plan.perturbation import Perturbation, derived_seed
from howdah.plan.timetable import Steps, Timetable, add_steps
from howdah.plan.variation import DelaySeries, draw_series
from howdah.profile.model import Scenario
from howdah.profile.path import DelayVariation
from howdah.profile.varying import JITTER_INTERVAL_US
from howdah.quantity import format_duration


@dataclass(frozen=True)
class Schedule:
    """``forward`` and ``reverse`` are delays added from given times on: (microseconds after the epoch, added delay),
    together with those of the timetable; ``other`` is the timetable, for its rates and losses."""

    forward: Steps
    reverse: Steps
    summaries: dict[str, dict[str, int]]
    other: Timetable = field(default_factory=Timetable)

    @property
    def forward_largest_us(self) -> int:
        return max((0, *(added for _, added in self.forward)))

    @property
    def reverse_largest_us(self) -> int:
        return max((0, *(added for _, added in self.reverse)))

    @property
    def least_us(self) -> int:
        """By how much a round trip may be shorter than the path's; not above 0."""
        return min((0, *(added for _, added in self.forward))) + min((0, *(added for _, added in self.reverse)))

    def record(self, asked: DelayVariation | None) -> dict[str, Any] | None:
        """What the plan says about the variation: as asked, and what was drawn."""
        if not self.summaries:
            return None
        wish = {} if asked is None else asked.model_dump(mode="json")
        return {"asked": wish, "drawn": self.summaries}


def schedule(scenario: Scenario, repetition: int, perturbation: Perturbation, other: Timetable) -> Schedule:
    """Draw the series of both directions; the same for every algorithm and sweep point of one repetition."""
    asked = scenario.path.delay_variation
    series: dict[str, list[DelaySeries]] = {"forward": [], "reverse": []}
    for direction, drawn in series.items():
        if asked is not None and asked.direction in (direction, "both"):
            seed = derived_seed(scenario.seed, "delay-variation", direction, repetition)
            drawn.append(draw_series(asked, scenario.duration, seed))
    if perturbation.jitter_us:
        seed = derived_seed(scenario.seed, "jitter", repetition)
        series["forward"].append(draw_series(_jitter(scenario, perturbation), scenario.duration, seed))
    summaries = {direction: drawn[0].summary() for direction, drawn in series.items() if drawn}
    return Schedule(
        forward=_together(_steps(series["forward"], scenario.duration), other.forward),
        reverse=_together(_steps(series["reverse"], scenario.duration), other.reverse),
        summaries=summaries,
        other=other,
    )


def _together(drawn: Steps, other: Steps) -> Steps:
    return add_steps([drawn, other]) if drawn and other else drawn or other


def _jitter(scenario: Scenario, perturbation: Perturbation) -> DelayVariation:
    rtt_us = scenario.path.forward_delay_us + scenario.path.reverse_delay_us
    return DelayVariation.model_validate(
        {
            "distribution": "uniform",
            "amplitude": format_duration(perturbation.jitter_us),
            "correlation_time": format_duration(rtt_us),
            "interval": format_duration(JITTER_INTERVAL_US),
            "source": "perturbation",
        }
    )


def _steps(drawn: list[DelaySeries], duration_us: int) -> Steps:
    """The sum of the series as steps; equal neighbours are one step; back to nothing at the end of the run."""
    if not drawn:
        return []
    times = sorted({k * item.interval_us for item in drawn for k in range(len(item.added_us))})
    steps: Steps = []
    for time_us in times:
        added = sum(item.added_us[min(time_us // item.interval_us, len(item.added_us) - 1)] for item in drawn)
        if not steps or steps[-1][1] != added:
            steps.append((time_us, added))
    steps.append((duration_us, 0))
    return steps
