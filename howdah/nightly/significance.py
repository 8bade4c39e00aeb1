# SPDX-License-Identifier: Apache-2.0
"""Whether a difference between two nights is more than chance: p-values, Holm's correction for their number, and how
many repetitions it takes that a p-value can survive the correction. Primary measures: the few that a night must be able
to decide on, and how many comparisons they make in a cell. How large a change of a measure must be to matter
(docs/nightly.md has the same table).

Which way is worse is in the table of metrics (``reports/measures.yaml``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.measure.statistics import statistic
from howdah.metric import Worse, known_metrics
from howdah.profile.model import Scenario

ALPHA = 0.05  # the chance of any false regression on a night on which nothing has changed
PRIMARY_ALPHA = 0.04  # the part of it that the primary measures have
OTHER_ALPHA = 0.01  # and that of all others: the two add up to ALPHA
MOST_REPETITIONS = 1000
_STEPS = 400
_ENOUGH = 1e-15
_SAME = 1e-12


def least_p(pairs: int) -> float:
    """The strongest evidence that so many pairs can be, whatever the distribution: 2 / 4^n.

    Let a measure take one of two values, each half of the time. That one night shows the one in every repetition and
    the other night the other has this probability; no two values and no other shares give a larger one.
    """
    return min(1.0, 2.0 * 4.0**-pairs)


def can_prove(tests: int, pairs: int, alpha: float) -> bool:
    """Whether the strongest evidence of so many pairs is below ``alpha`` after the correction for so many tests."""
    return max(tests, 1) * least_p(pairs) < alpha


def pairs_to_prove(tests: int, alpha: float) -> int:
    """The least number of pairs that ``can_prove`` a change among so many tests."""
    pairs = 1
    while not can_prove(tests, pairs, alpha):
        pairs += 1
    return pairs


def comparisons_provable(pairs: int, alpha: float) -> int:
    """The largest number of tests among which so many pairs ``can_prove`` a change; 0 if not even alone."""
    return math.ceil(alpha / least_p(pairs)) - 1


def pairs_to_decide(beyond: float, deviation: float, tests: int, alpha: float) -> int | None:
    """With how many pairs a mean difference this far ``beyond`` the least that matters would be significant, if the
    differences went on to scatter with this standard deviation. None if not with MOST_REPETITIONS."""

    def decides(pairs: int) -> bool:
        t = beyond * math.sqrt(pairs) / deviation if deviation > 0 else math.inf
        p = student_two_sided(t, pairs - 1) if math.isfinite(t) else 0.0
        return tests * max(p, least_p(pairs)) < alpha

    return _least(decides)


def pairs_to_decide_share(before: float, after: float, tests: int, alpha: float) -> int | None:
    """With how many pairs a share that goes from ``before`` to ``after`` would be significant. None as above."""
    return _least(lambda n: tests * share_p(round(before * n), round(after * n), n) < alpha)


def _least(holds: Callable[[int], bool]) -> int | None:
    """The least number of pairs from 2 on for which it holds, found by doubling and halving."""
    high = 2
    while not holds(high):
        if high >= MOST_REPETITIONS:
            return None
        high = min(2 * high, MOST_REPETITIONS)
    low = max(high // 2, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def paired_p(differences: Sequence[float], margin: float, scale: float) -> float:
    """p-value of the hypothesis that the mean of the differences is at most ``margin`` away from 0.

    Student's t of |mean| - margin, both sides, and never less than ``least_p``: of a few repetitions nobody knows that
    their differences are normal. ``scale`` is the size of the values: differences that rounding alone distinguishes are
    equal. 1 where the mean is within the margin, or for fewer than two pairs.
    """
    count = len(differences)
    found = statistic(list(differences))
    beyond = abs(found.mean) - margin
    if count < 2 or beyond <= 0:
        return 1.0
    if max(differences) - min(differences) <= _SAME * scale or found.half_width is None:
        return least_p(count)
    deviation = math.sqrt(math.fsum((each - found.mean) ** 2 for each in differences) / (count - 1))
    return max(student_two_sided(beyond * math.sqrt(count) / deviation, count - 1), least_p(count))


def share_p(before: int, after: int, pairs: int) -> float:
    """p-value of the hypothesis that something is as frequent in both nights: ``before`` and ``after`` of ``pairs``.

    Fisher's exact test, both sides; from never to always, or back, it is ``least_p``.
    """
    if {before, after} == {0, pairs} and pairs:
        return least_p(pairs)
    together = before + after
    total = math.comb(2 * pairs, together)
    weights = [math.comb(pairs, k) * math.comb(pairs, together - k) for k in range(together + 1)]
    return min(1.0, sum(weight for weight in weights if weight <= weights[before]) / total)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given: below a level, they hold all of them at once at that level.

    It asks nothing of how the tests depend on one another, and measures of one run depend in every way.
    """
    count = len(p_values)
    adjusted = [1.0] * count
    highest = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda each: p_values[each])):
        highest = max(highest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def student_two_sided(t: float, degrees: int) -> float:
    """P(|T| >= t) of Student's distribution: the regularised incomplete beta function I_x(f/2, 1/2), x = f/(f + t²)."""
    if degrees < 1:
        raise ValueError("Student's distribution needs at least one degree of freedom")
    return _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) for 0 <= x <= 1 by its continued fraction, on the side of its mean where that converges fast."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + …)) from the front (the modified method of Lentz)."""
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _STEPS):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            break
    return value


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
