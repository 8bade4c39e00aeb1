# SPDX-License-Identifier: Apache-2.0
"""How the path changes over time: the profile's delay variation, the perturbation's jitter, and the timetable."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from howdah.errors import ProfileError
from howdah.plan.jitter import Jitter
from howdah.plan.path import DrawnVariation
from howdah.plan.perturbation import Perturbation, derived_seed
from howdah.plan.timetable import Steps, Timetable, add_steps
from howdah.plan.variation import DelaySeries, DelayTable, delay_table, draw_series
from howdah.profile import Cell
from howdah.profile.measured import read_delays
from howdah.profile.model import Scenario
from howdah.profile.path import LARGEST_DRAWN_US, DelayVariation
from howdah.profile.varying import JITTER_INTERVAL_US
from howdah.quantity import format_duration
from howdah.trait import Traits

_PROBES = 1000  # probes that measure the delays which packets draw
_PROBE_BYTES = 100  # upper bound of a probe's size
_WIDEST_US = 20_000  # largest spacing of probes, unless a slow rate needs more


@dataclass(frozen=True)
class Schedule:
    """``forward`` and ``reverse`` are steps (microseconds after the epoch, added delay from then on), including those
    of the timetable; ``other`` is the timetable, for its rates and losses. ``table`` and ``jitter`` are set if each
    packet draws its delay."""

    forward: Steps
    reverse: Steps
    summaries: dict[str, dict[str, int]]
    other: Timetable = field(default_factory=Timetable)
    table: DelayTable | None = None
    jitter: Jitter | None = None

    @property
    def forward_largest_us(self) -> int:
        drawn = self.jitter.largest_us if self.jitter and self.jitter.forward else 0
        return max((0, *(added for _, added in self.forward))) + drawn

    @property
    def reverse_largest_us(self) -> int:
        drawn = self.jitter.largest_us if self.jitter and self.jitter.reverse else 0
        return max((0, *(added for _, added in self.reverse))) + drawn

    @property
    def least_us(self) -> int:
        """The lowest change of the round trip, not above 0."""
        return min((0, *(added for _, added in self.forward))) + min((0, *(added for _, added in self.reverse)))

    def record(self, asked: DelayVariation | None) -> DrawnVariation | None:
        """Return the plan's record of the variation: as requested, and as drawn."""
        if not self.summaries:
            return None
        wish = {} if asked is None else asked.model_dump(mode="json")
        for name, usual in (("order", "kept"), ("table", None)):
            if wish.get(name) == usual:
                wish.pop(name, None)
        return DrawnVariation(wish, self.summaries)


def schedule(cell: Cell, perturbation: Perturbation, other: Timetable, kind: Traits) -> Schedule:
    """Draw the series of both directions; they are equal for every algorithm and sweep point of one repetition. Raise
    ProfileError for a bad file of delays, or if packets cannot draw their delays.
    """
    scenario = cell.scenario
    asked = scenario.path.delay_variation
    measured_us = None
    if asked is not None and asked.table is not None:
        at = ("path", "delay_variation", "table")
        measured_us = read_delays(cell.absolute(asked.table, *at), cell.place(*at))
    table = _table(cell, asked, measured_us, kind) if asked is not None and asked.order == "broken" else None
    series: dict[str, list[DelaySeries]] = {"forward": [], "reverse": []}
    for direction, drawn in series.items():
        if asked is not None and table is None and asked.direction in (direction, "both"):
            seed = derived_seed(scenario.seed, "delay-variation", direction, cell.repetition)
            drawn.append(draw_series(asked, scenario.duration, seed, measured_us))
    if perturbation.jitter_us:
        seed = derived_seed(scenario.seed, "jitter", cell.repetition)
        series["forward"].append(draw_series(_jitter(scenario, perturbation), scenario.duration, seed))
    summaries = {direction: drawn[0].summary() for direction, drawn in series.items() if drawn}
    return Schedule(
        forward=_together(_steps(series["forward"], scenario.duration), other.forward),
        reverse=_together(_steps(series["reverse"], scenario.duration), other.reverse),
        summaries=summaries,
        other=other,
        table=table,
        jitter=None if table is None or asked is None else _measured(scenario, asked, table),
    )


def _table(cell: Cell, asked: DelayVariation, measured_us: list[int] | None, kind: Traits) -> DelayTable:
    place = ("path", "delay_variation")
    if not kind.virtual_clock or kind.several_machines or cell.scenario.split:
        what = "delays that packets draw are measured in virtual time and by one kernel alone"
        raise ProfileError(what, where=cell.place(*place, "order"), hint="run it with the uml engine, without split")
    table = delay_table(asked, measured_us)
    if table.delays_us[-1] > LARGEST_DRAWN_US:
        what = f"a packet can draw {format_duration(LARGEST_DRAWN_US)} at most; the file has longer delays"
        raise ProfileError(what, where=cell.place(*place, "table"), hint="give path.delay_variation.limit")
    return table


def _measured(scenario: Scenario, asked: DelayVariation, table: DelayTable) -> Jitter:
    """Return the jitter with its probes: too far apart to queue, and close enough for some to overtake."""
    path = scenario.path
    delays = table.delays_us
    mean = sum(delays) / len(delays)
    deviation = (sum((each - mean) ** 2 for each in delays) / len(delays)) ** 0.5
    slowest = min([path.rate, *(hop.rate for hop in path.hops), path.reverse_rate or path.rate])
    clear_us = 2 * _PROBE_BYTES * 8_000_000 // slowest
    return Jitter(
        packets=_PROBES,
        spacing_us=max(min(round(deviation) // 2, _WIDEST_US), clear_us, 1),
        mean_us=round(mean),
        deviation_us=round(deviation),
        largest_us=math.ceil(delays[-1]),
        forward=asked.direction != "reverse",
        reverse=asked.direction != "forward",
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
    """Return the sum of the series as steps without equal neighbours; the last one, at the end of the run, is 0."""
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
