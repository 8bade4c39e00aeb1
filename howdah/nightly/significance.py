# SPDX-License-Identifier: Apache-2.0
"""Statistics of a night: p-values of differences, Holm's correction for their number, and how many repetitions a
p-value needs to survive it. Also the primary measures, which a night must be able to decide, with their number of
comparisons in a cell; and the smallest change of a measure that matters (docs/nightly.md has the same table).

The table of metrics (``reports/measures.yaml``) says which direction is worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.measure.statistics import statistic
from howdah.metric import Worse, known_metrics
from howdah.profile.model import Scenario

ALPHA = 0.05  # the chance of any false regression on a night on which nothing has changed
PRIMARY_ALPHA = 0.04  # the primary measures' part of it
OTHER_ALPHA = 0.01  # all other measures' part; the two add up to ALPHA
MOST_REPETITIONS = 1000
_STEPS = 400
_ENOUGH = 1e-15
_SAME = 1e-12


def least_p(pairs: int) -> float:
    """The smallest p-value that this many pairs can give, whatever the distribution: 2 / 4^n.

    Let a measure take one of two values with equal probability. This is the probability that one night has the first
    value in every repetition and the other night the second; no other values or shares have a larger one.
    """
    return min(1.0, 2.0 * 4.0**-pairs)


def can_prove(tests: int, pairs: int, alpha: float) -> bool:
    """Whether the smallest p-value of this many pairs is below ``alpha`` after the correction for this many tests."""
    return max(tests, 1) * least_p(pairs) < alpha


def pairs_to_prove(tests: int, alpha: float) -> int:
    """The smallest number of pairs that ``can_prove`` a change among this many tests."""
    pairs = 1
    while not can_prove(tests, pairs, alpha):
        pairs += 1
    return pairs


def comparisons_provable(pairs: int, alpha: float) -> int:
    """The largest number of tests among which this many pairs ``can_prove`` a change; 0 if not even in one."""
    return math.ceil(alpha / least_p(pairs)) - 1


def pairs_to_decide(beyond: float, deviation: float, tests: int, alpha: float) -> int | None:
    """The number of pairs at which a mean difference this far ``beyond`` the smallest that matters would be
    significant, if the standard deviation of the differences stays the same. None if MOST_REPETITIONS are too few.
    """

    def decides(pairs: int) -> bool:
        t = beyond * math.sqrt(pairs) / deviation if deviation > 0 else math.inf
        p = student_two_sided(t, pairs - 1) if math.isfinite(t) else 0.0
        return tests * max(p, least_p(pairs)) < alpha

    return _least(decides)


def pairs_to_decide_share(before: float, after: float, tests: int, alpha: float) -> int | None:
    """The number of pairs at which a change of share would be significant. None if MOST_REPETITIONS are too few."""
    return _least(lambda n: tests * share_p(round(before * n), round(after * n), n) < alpha)


def _least(holds: Callable[[int], bool]) -> int | None:
    """The smallest number of pairs from 2 on for which ``holds`` is true, found by doubling and halving."""
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

    Two-sided Student's t of |mean| - margin, but never less than ``least_p``, because few repetitions cannot show that
    their differences are normal. ``scale`` is the size of the values: differences that only rounding distinguishes are
    equal. 1 if the mean is within the margin, or for fewer than two pairs.
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
    """p-value of the hypothesis that something is equally frequent in both nights: ``before`` and ``after`` of
    ``pairs``.

    Fisher's exact test, two-sided; a change from never to always, or back, has ``least_p``.
    """
    if {before, after} == {0, pairs} and pairs:
        return least_p(pairs)
    together = before + after
    total = math.comb(2 * pairs, together)
    weights = [math.comb(pairs, k) * math.comb(pairs, together - k) for k in range(together + 1)]
    return min(1.0, sum(weight for weight in weights if weight <= weights[before]) / total)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's (1979) adjusted p-values, in the order given; they control the chance of any false rejection at a level.

    The method allows any dependence between tests, which measures of one run have.
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
    """1 + d1/(1 + d2/(1 + …)), evaluated forwards (the modified method of Lentz)."""
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


# Default primary measures, and how often a run has each.
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
        """Build from a suite's lists. If a suite lists only the measures to compare, all of them are primary."""
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
        """The largest number of primary comparisons of a cell that its profile allows."""
        return sum(PRIMARY.get(metric, _any)(scenario) for metric in self.primary if self.compares(metric))


@dataclass(frozen=True)
class Effect:
    """The smallest change that matters: the larger of a share of the baseline's mean and a quantity in ``unit``."""

    kind: str
    unit: str
    relative: float
    absolute: float

    def margin(self, baseline: float) -> float:
        return max(self.relative * abs(baseline), self.absolute)


EFFECTS = (
    Effect("processor time", "ratio", 0.10, 0.0),  # the machine's, which is noisy
    Effect("duration", "s", 0.02, 0.001),
    Effect("duration", "us", 0.02, 1000.0),
    Effect("rate", "bit/s", 0.01, 10_000.0),
    Effect("share", "ratio", 0.01, 0.002),
    Effect("packets", "packets", 0.02, 2.0),
    Effect("bytes", "bytes", 0.02, 3000.0),  # two frames
    Effect("count", "", 0.02, 0.5),  # events, rounds, connections; half of one on average
)
# The share of repetitions that have a text, or a measure at all.
OFTEN = Effect("how often", "ratio", 0.0, 0.1)
_BY_UNIT = {effect.unit: effect for effect in EFFECTS[1:]}


def is_processor_time(metric: str) -> bool:
    """Whether it measures the machine's processor time, which is not repeatable on any clock of a guest."""
    return metric.startswith("cpu_")


def effect_of(metric: str, unit: str) -> Effect:
    """Return the table's row for a measure; an unknown unit is a count."""
    if is_processor_time(metric):
        return EFFECTS[0]
    return _BY_UNIT.get(unit, EFFECTS[-1])


def worse(metric: str) -> Worse:
    """The direction of a change for the worse, from the table of metrics; ``either`` for an unknown one.

    ``either``: the window or time at which a flow leaves slow start, for example, is neither good nor bad by itself,
    but a change is unintended.
    """
    known = known_metrics().get(metric)
    if known is None:
        return "more" if is_processor_time(metric) else "either"
    return known.worse


def is_better_absent(metric: str) -> bool:
    """Whether the measure exists only after packet loss or a timeout, so that its absence is better."""
    known = known_metrics().get(metric)
    return known is not None and known.better_absent


def is_left_out(metric: str) -> bool:
    """Whether its unit depends on the cause of each exit, so that repetitions cannot be averaged."""
    known = known_metrics().get(metric)
    return known is not None and known.is_by_cause
