# SPDX-License-Identifier: Apache-2.0
"""One side against another at one point of a sweep: difference and ratio, paired by repetition.

Repetition r meets the same perturbation on both sides. So each pair is a sample of its own, and the spread of the pairs
is that of the difference alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from howdah.measure.statistics import Spread, Statistic, statistic

ALIKE = 0.005  # ratios nearer to 1 than this print as 1


@dataclass(frozen=True)
class PairedDifference:
    """``mine`` and ``other`` are the medians of both sides, ``differences`` mine - other and ``ratios`` mine / other.

    ``ratios`` is None where one side of a pair alone is 0 or any is below, as an overshoot can be: such a number is
    not a multiple of another. A pair of zeros has the ratio 1. Without a repetition in
    common it is of the medians, and ``is_paired`` is False. What stands beside a median is its ``about_median``: the
    least and the largest of few pairs, else the 95 % interval.
    """

    mine: float
    other: float
    differences: Statistic
    ratios: Statistic | None
    is_paired: bool

    @property
    def around(self) -> Spread | None:
        """What stands beside the ratio; None where pairs are equal or there is one alone."""
        return self.ratios.about_median if self.ratios else None

    @property
    def is_alike(self) -> bool:
        """Whether the ratio of no pair differs from 1, or all pairs are equal."""
        if self.ratios is None:
            return not any(self.differences.values)
        return all(abs(each - 1) < ALIKE for each in self.ratios.values)

    @property
    def side(self) -> int:
        """1 where mine is the larger beyond the spread, -1 where it is the smaller, 0 where the spread has both."""
        if self.is_alike:
            return 0
        about = self.differences.about_median
        low, high = (about.low, about.high) if about else (self.differences.median, self.differences.median)
        return 1 if low > 0 else -1 if high < 0 else 0


def difference(mine: Mapping[int, float], other: Mapping[int, float]) -> PairedDifference | None:
    """Of the numbers of two sides by repetition; None where one has none."""
    if not mine or not other:
        return None
    first, second = (statistic(list(each.values())).median for each in (mine, other))
    common = [each for each in mine if each in other]
    pairs = [(mine[each], other[each]) for each in common] or [(first, second)]
    ratios = None
    if all(min(pair) > 0 or max(map(abs, pair)) == 0 for pair in pairs):
        ratios = statistic([above / below if below else 1.0 for above, below in pairs])
    return PairedDifference(first, second, statistic([above - below for above, below in pairs]), ratios, bool(common))
