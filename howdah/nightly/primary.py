# SPDX-License-Identifier: Apache-2.0
"""Primary measures: the few that a night must be able to decide on, and how many comparisons they make in a cell; and
how large a change of a measure must be to matter. docs/nightly.md has the same table.

Which way is worse is in the table of metrics (``reports/measures.yaml``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.metric import Worse, known_metrics
from howdah.profile.model import Scenario


def _flows(scenario: Scenario) -> int:
    return len(scenario.flows)


def _sized_flows(scenario: Scenario) -> int:
    return sum(flow.size is not None for flow in scenario.flows)


def _groups(scenario: Scenario) -> int:
    return len(scenario.groups)


def _run(_scenario: Scenario) -> int:
    return 1


def _any(scenario: Scenario) -> int:
    return max(1, _flows(scenario) + _groups(scenario))


# The primary measures of a suite that names none, and how often each is there in a run.
PRIMARY: dict[str, Callable[[Scenario], int]] = {
    "exit_time_s": _flows,
    "exit_cwnd_packets": _flows,
    "exit_cause": _flows,
    "retransmitted_packets": _flows,
    "time_to_90_percent_s": _flows,
    "completion_time_s": _sized_flows,
    "utilisation": _run,
    "completion_time_median_s": _groups,
    "retransmission_ratio": _groups,
}


@dataclass(frozen=True)
class Measures:
    """Which measures of a cell are compared (``only`` these, or None for all), and which of them are primary."""

    primary: frozenset[str] = frozenset(PRIMARY)
    only: frozenset[str] | None = None

    @staticmethod
    def of(primary: Sequence[str] | None, only: Sequence[str] | None) -> Measures:
        """Of what a suite says. Whoever names the measures to compare names few: all of them are primary."""
        named = primary if primary is not None else only
        return Measures(
            frozenset(PRIMARY if named is None else named),
            frozenset(only) if only is not None else None,
        )

    def compares(self, metric: str) -> bool:
        return self.only is None or metric in self.only

    def is_primary(self, metric: str) -> bool:
        return metric in self.primary and self.compares(metric)

    def most_comparisons(self, scenario: Scenario) -> int:
        """Primary comparisons of a cell, at most, as far as its profile tells."""
        return sum(PRIMARY.get(metric, _any)(scenario) for metric in self.primary if self.compares(metric))


@dataclass(frozen=True)
class Effect:
    """The least change that matters: the larger of a share of the baseline's mean and a quantity in ``unit``."""

    kind: str
    unit: str
    relative: float
    absolute: float

    def margin(self, baseline: float) -> float:
        return max(self.relative * abs(baseline), self.absolute)


EFFECTS = (
    Effect("processor time", "ratio", 0.10, 0.0),  # of the machine, which has noise of its own
    Effect("duration", "s", 0.02, 0.001),
    Effect("duration", "us", 0.02, 1000.0),
    Effect("rate", "bit/s", 0.01, 10_000.0),
    Effect("share", "ratio", 0.01, 0.002),
    Effect("packets", "packets", 0.02, 2.0),
    Effect("bytes", "bytes", 0.02, 3000.0),  # two frames
    Effect("count", "", 0.02, 0.5),  # events, rounds, connections: one more in every second repetition
)
# How often a text, or a measure at all, is there: as a share of the repetitions.
OFTEN = Effect("how often", "ratio", 0.0, 0.1)
_BY_UNIT = {effect.unit: effect for effect in EFFECTS[1:]}


def is_processor_time(metric: str) -> bool:
    """Whether it is of the processor of the machine, which no clock of a guest makes repeatable."""
    return metric.startswith("cpu_")


def effect_of(metric: str, unit: str) -> Effect:
    """The row of the table for a measure; one of a unit that is not in it is a count."""
    if is_processor_time(metric):
        return EFFECTS[0]
    return _BY_UNIT.get(unit, EFFECTS[-1])


def worse(metric: str) -> Worse:
    """Which way a change is for the worse, by the table of metrics; ``either`` for one that it lacks.

    ``either``: a window or a time at which a flow leaves slow start is neither good nor bad by itself, but nobody meant
    to change it.
    """
    known = known_metrics().get(metric)
    if known is None:
        return "more" if is_processor_time(metric) else "either"
    return known.worse


def is_better_absent(metric: str) -> bool:
    """Whether it exists only where packets were lost or a timer ran out, so that its absence is for the better."""
    known = known_metrics().get(metric)
    return known is not None and known.better_absent


def is_left_out(metric: str) -> bool:
    """Whether its unit is that of the cause of each exit, so that repetitions cannot be averaged."""
    known = known_metrics().get(metric)
    return known is not None and known.is_by_cause
