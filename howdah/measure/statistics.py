# SPDX-License-Identifier: Apache-2.0
"""Statistics of a measure's repetitions: mean, median, and spread.

All pages and tables show the spread by the rule that is here. Fewer than six repetitions are shown by their least and
largest value. A 95 % interval of their median does not exist, and Student's interval of a mean assumes a distribution
of which so few values show nothing. From six on, a median has the interval between two of the values (order statistics,
which assume no distribution) and a mean has Student's, cut at the bounds of the quantity.

Two sides of a comparison at one point of a sweep are paired by repetition: repetition r meets the same perturbation on
both. So each pair is a sample of its own, and the spread of the pairs is that of the difference alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Two-sided 95 % quantiles of Student's t distribution for 1, 2, 3 … degrees of freedom.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.959964
_SAME = 1e-12
_BEYOND = 0.025  # probability on either side of an interval of 95 %
FEW = 6  # fewer repetitions are shown by least and largest: a two-sided 95 % interval of a median takes six values


def student_quantile(degrees: int) -> float:
    """Return the two-sided 95 % quantile; beyond 30 degrees Fisher's expansion around the normal one, to 0.001."""
    if degrees < 1:
        raise ValueError("an interval needs at least two values")
    if degrees <= len(_STUDENT):
        return _STUDENT[degrees - 1]
    return _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * degrees)


@dataclass(frozen=True)
class Spread:
    """The spread of repetitions: their least and largest if they are few, else a 95 % interval."""

    low: float
    high: float
    few: bool


@dataclass(frozen=True)
class Statistic:
    """Repetitions of one number. ``half_width`` is half the 95 % interval of the mean; None for one value or equal
    values.

    Equal values of several repetitions are *deterministic*: there is no spread to estimate, which differs from ±0.
    ``values`` are all of them, sorted. Claims are judged by ``interval``; readers see ``about_median`` or
    ``about_mean``.
    """

    count: int
    mean: float
    median: float
    half_width: float | None
    values: tuple[float, ...]

    @property
    def deterministic(self) -> bool:
        return self.count > 1 and self.half_width is None

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half_width is None else (self.mean - self.half_width, self.mean + self.half_width)

    @property
    def about_median(self) -> Spread | None:
        """The spread shown with the median: least and largest, or its 95 % interval. None if all values are equal."""
        if self.half_width is None:
            return None
        rank = median_rank(self.count)
        return Spread(self.values[rank], self.values[-1 - rank], self.count < FEW)

    def about_mean(self, least: float = -math.inf) -> Spread | None:
        """Return the spread shown with the mean: least and largest, or Student's interval, cut off below ``least``."""
        if self.half_width is None:
            return None
        if self.count < FEW:
            return Spread(self.values[0], self.values[-1], few=True)
        return Spread(max(least, self.mean - self.half_width), self.mean + self.half_width, few=False)


def median_rank(count: int) -> int:
    """Return how many of ``count`` values are below the 95 % interval of the median, and as many above it.

    0 if even all values do not bound it.
    """
    return max(0, interval_ranks(count, 0.5)[0] - 1)


def interval_ranks(count: int, share: float) -> tuple[int, int]:
    """Return the ranks, from 1, of the sorted values that enclose the quantile of ``share`` with at least 95 %.

    The first is 0, or the last ``count`` + 1, if no value bounds it. The number of values below the quantile is
    Binomial(count, share), of which at most 2.5 % are left out on each side (David and Nagaraja, Order Statistics, 3rd
    edition, section 7.1).
    """
    whole = math.lgamma(count + 1) + count * math.log1p(-share)
    odds = math.log(share) - math.log1p(-share)
    below, first = 0.0, 0
    for k in range(count + 1):
        below += math.exp(whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) + k * odds)
        if below <= _BEYOND:
            first = k + 1
        if below >= 1 - _BEYOND:
            return first, k + 1
    return first, count + 1


def statistic(values: list[float]) -> Statistic:
    """Summarise one or more values; interval: mean ± t(n-1) s / sqrt(n) with the sample's standard deviation s."""
    count = len(values)
    if not count:
        raise ValueError("no values")
    mean = math.fsum(values) / count
    ordered = sorted(values)
    middle = count // 2
    median = ordered[middle] if count % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    spread = ordered[-1] - ordered[0]
    if count == 1 or spread <= _SAME * max(abs(ordered[0]), abs(ordered[-1])):
        return Statistic(count, mean, median, None, tuple(ordered))
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return Statistic(count, mean, median, student_quantile(count - 1) * deviation / math.sqrt(count), tuple(ordered))


@dataclass(frozen=True)
class Quantile:
    """``value`` in the unit of the values; None if less than one value is beyond it. ``low`` and ``high`` are an
    interval of at least 95 %; None if so few values do not bound it."""

    value: float | None
    low: float | None
    high: float | None


def quantile(ordered: Sequence[float], share: float) -> Quantile:
    """Return the quantile of sorted values, 0 < ``share`` < 1, interpolated as by ``numpy.quantile``."""
    count = len(ordered)
    if count * min(share, 1 - share) < 1 - 1e-9 and not (count and share == 0.5):
        return Quantile(None, None, None)
    first, last = interval_ranks(count, share)
    low = ordered[first - 1] if first else None
    high = ordered[last - 1] if last <= count else None
    return Quantile(float(np.quantile(ordered, share)), low, high)


ALIKE = 0.005  # ratios that differ less from 1 print as 1


@dataclass(frozen=True)
class PairedDifference:
    """``mine`` and ``other`` are the medians of both sides, ``differences`` mine - other and ``ratios`` mine / other.

    ``ratios`` is None if only one side of a pair is 0 or any is negative, as an overshoot can be: then neither is a
    multiple of the other. A pair of zeros has the ratio 1. Without a repetition in common, both are of the medians, and
    ``is_paired`` is False. The spread shown with a median is its ``about_median``: the least and the largest of few
    pairs, else the 95 % interval.
    """

    mine: float
    other: float
    differences: Statistic
    ratios: Statistic | None
    is_paired: bool

    @property
    def around(self) -> Spread | None:
        """The spread shown with the ratio; None if pairs are equal or there is only one."""
        return self.ratios.about_median if self.ratios else None

    @property
    def is_alike(self) -> bool:
        """Whether no pair's ratio differs from 1, or all pairs are equal."""
        if self.ratios is None:
            return not any(self.differences.values)
        return all(abs(each - 1) < ALIKE for each in self.ratios.values)

    @property
    def side(self) -> int:
        """1 if mine is larger beyond the spread, -1 if it is smaller, 0 if the spread includes both."""
        if self.is_alike:
            return 0
        about = self.differences.about_median
        low, high = (about.low, about.high) if about else (self.differences.median, self.differences.median)
        return 1 if low > 0 else -1 if high < 0 else 0


def difference(mine: Mapping[int, float], other: Mapping[int, float]) -> PairedDifference | None:
    """Compare two sides, each by repetition; None if one has no number."""
    if not mine or not other:
        return None
    first, second = (statistic(list(each.values())).median for each in (mine, other))
    common = [each for each in mine if each in other]
    pairs = [(mine[each], other[each]) for each in common] or [(first, second)]
    ratios = None
    if all(min(pair) > 0 or max(map(abs, pair)) == 0 for pair in pairs):
        ratios = statistic([above / below if below else 1.0 for above, below in pairs])
    return PairedDifference(first, second, statistic([above - below for above, below in pairs]), ratios, bool(common))
