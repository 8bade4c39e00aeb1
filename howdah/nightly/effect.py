# SPDX-License-Identifier: Apache-2.0
"""How large a change of a measure must be to matter. docs/nightly.md has the same table.

Which way is worse is in the table of metrics (``reports/measures.yaml``).
"""

from __future__ import annotations

from dataclasses import dataclass

from howdah.metric import Worse, known_metrics


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
