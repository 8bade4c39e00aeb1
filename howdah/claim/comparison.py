# SPDX-License-Identifier: Apache-2.0
"""Statistics to compare two samples of one measure: difference and ratio with 95 % intervals, rank correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from howdah.measure.statistics import statistic, student_quantile


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % interval. ``low`` and ``high`` are None if there is only one value, or no spread."""

    value: float
    low: float | None = None
    high: float | None = None


def paired_difference(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Mean of a - b over pairs, ± t(n-1) s / sqrt(n) of the differences."""
    differences = [a - b for a, b in pairs]
    found = statistic(differences)
    # Differences that vary only by rounding are equal. Rounding errors scale with the values, not with the differences.
    largest = max(max(abs(a), abs(b)) for a, b in pairs)
    if max(differences) - min(differences) <= 1e-12 * largest:
        return Interval(found.mean)
    low, high = found.interval or (None, None)
    return Interval(found.mean, low, high)


def welch_difference(first: Sequence[float], second: Sequence[float]) -> Interval:
    """Difference of the means of two independent samples (Welch 1947): ± t(f) sqrt(s1²/n1 + s2²/n2), with
    Satterthwaite's degrees of freedom f, rounded down."""
    value = statistic(list(first)).mean - statistic(list(second)).mean
    if min(len(first), len(second)) < 2:
        return Interval(value)
    parts = [_variance_of_mean(sample) for sample in (first, second)]
    total = sum(parts)
    if total == 0:
        return Interval(value)
    half = student_quantile(_degrees(parts, [len(first), len(second)])) * math.sqrt(total)
    return Interval(value, value - half, value + half)


def ratio_of_means(first: Sequence[float], second: Sequence[float], *, paired: bool) -> Interval:
    """Mean of ``first`` over mean of ``second`` with Fieller's (1954) interval.

    The interval is {r : (a - r b)² <= t² var(a - r b)} for the means a and b, with their covariance if the samples are
    ``paired`` (of equal length and order). If b may be 0, the interval does not exist, and low and high are None, as
    for a single value. Raises ZeroDivisionError if the mean of ``second`` is 0.
    """
    a, b = (math.fsum(sample) / len(sample) for sample in (first, second))
    value = a / b
    if min(len(first), len(second)) < 2:
        return Interval(value)
    va, vb = _variance_of_mean(first), _variance_of_mean(second)
    cab = _covariance_of_means(first, second) if paired else 0.0
    if va + value * value * vb - 2 * value * cab <= 1e-24 * a * a:
        return Interval(value)
    degrees = len(first) - 1 if paired else _degrees([va, value * value * vb], [len(first), len(second)])
    t2 = student_quantile(degrees) ** 2
    denominator = b * b - t2 * vb
    middle = a * b - t2 * cab
    root = middle * middle - denominator * (a * a - t2 * va)
    if denominator <= 0 or root < 0:
        return Interval(value)
    half = math.sqrt(root)
    return Interval(value, (middle - half) / denominator, (middle + half) / denominator)


def _variance_of_mean(sample: Sequence[float]) -> float:
    found = statistic(list(sample))
    if found.half_width is None:
        return 0.0
    return math.fsum((value - found.mean) ** 2 for value in sample) / (len(sample) - 1) / len(sample)


def _covariance_of_means(first: Sequence[float], second: Sequence[float]) -> float:
    count = len(first)
    a, b = math.fsum(first) / count, math.fsum(second) / count
    return math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True)) / (count - 1) / count


def _degrees(parts: list[float], counts: list[int]) -> int:
    """Satterthwaite's degrees of freedom of a sum of variances of means, rounded down, at least 1."""
    below = sum(part * part / (count - 1) for part, count in zip(parts, counts, strict=True))
    return max(1, math.floor(sum(parts) ** 2 / below + 1e-9)) if below > 0 else min(counts) - 1


def extremes(mean: float, half_width: float, count: int) -> tuple[float, float]:
    """Bounds on each of ``count`` values with this mean and half interval: they lie within s (n-1) / sqrt(n) of the
    mean (Samuelson 1968), which is half_width (n-1) / t(n-1)."""
    furthest = half_width * (count - 1) / student_quantile(count - 1)
    return mean - furthest, mean + furthest


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation, with the mean rank for ties. None if either sample is constant."""
    ranks = [_ranks(first), _ranks(second)]
    means = [math.fsum(rank) / len(rank) if rank else 0.0 for rank in ranks]
    centred = [[value - mean for value in rank] for rank, mean in zip(ranks, means, strict=True)]
    spread = math.prod(math.fsum(value * value for value in rank) for rank in centred)
    if spread == 0:
        return None
    return math.fsum(x * y for x, y in zip(*centred, strict=True)) / math.sqrt(spread)


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]
