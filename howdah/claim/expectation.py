# SPDX-License-Identifier: Apache-2.0
"""Judge one expectation against one sample, or two. docs/claims.md defines the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from howdah.claim.comparison import Interval, paired_difference, ratio_of_means, spearman, welch_difference
from howdah.claim.finding import (
    FAIL,
    INVALID,
    PASS,
    UNSUPPORTED,
    At,
    Finding,
    left_out_text,
    missing_text,
    number_text,
    numbers_text,
    shares,
    statistic_text,
)
from howdah.claim.sample import Sample
from howdah.measure.statistics import statistic
from howdah.metric import RATIO, Metric, read_share
from howdah.profile.claim import ExpectSection, RangeSection
from howdah.profile.control import axis_key
from howdah.record.claims import ComparisonRow, TrendRow

MUCH = 2.0  # ratio from which "more" is "much more"
SIMILAR = 0.1
RANK_CORRELATION = 0.7
USUAL_TOLERANCE = "10 %"
# Relative slack for rounding: 0.1 + 0.2 must be at most 0.3, and 110 within 10 % of 100.
_ROUNDING = 1e-12

Point = tuple[Any, Sample]  # value of the axis, and the sample there


def judge_point(expect: ExpectSection, metric: Metric, at: At, value: Sample, than: Sample | None) -> Finding:
    """The verdict at one point. A run without the value (``no exit seen``) makes the claim *fail*, or *unsupported* if
    its row says that this machine cannot measure it."""
    samples = [value] if than is None else [value, than]
    note = left_out_text(samples)
    unusable = _unusable(samples, at, value, than, note, counts=expect.counts)
    if unusable is not None:
        return unusable
    if expect.counts:
        ok, why = _judge_share(expect, metric, value)
        extent = statistic(value.numbers()).mean if expect.is_ is None else None
        return Finding(_verdict_of(ok), why, at, value, than, extent, note=note)
    if than is None:
        found = statistic(value.numbers())
        interval = Interval(found.mean, *(found.interval or (None, None)))
        ok, shown = judge_range(expect, metric, interval)
        # Only above and below need a reason: the measured value explains all others.
        why = ""
        if expect.form in ("above", "below"):
            why = _note_single_repetition("" if ok else _by_its_mean(expect, metric, interval, shown), [value])
        return Finding(_verdict_of(ok), why, at, value, extent=found.mean, note=note)
    compared = compare(value, than)
    ok, why = judge_compared(expect, metric, compared)
    extent = compared.ratio.value if expect.ratio is not None and compared.ratio else compared.difference.value
    return Finding(_verdict_of(ok), _note_single_repetition(why, samples), at, value, than, extent, compared.row, note)


def _unusable(
    samples: list[Sample], at: At, value: Sample, than: Sample | None, note: str, *, counts: bool = False
) -> Finding | None:
    if any(not each.enough for each in samples):
        return Finding(INVALID, note or "there is no run of it", at, value, than, note=note)
    for each in samples:
        if each.missing and not (counts and each.values):
            verdict = UNSUPPORTED if each.unsupported >= each.missing.keys() else FAIL
            return Finding(verdict, missing_text(each), at, value, than, note=note)
    return None


def _verdict_of(ok: bool) -> str:
    return PASS if ok else FAIL


def _by_its_mean(expect: RangeSection, metric: Metric, found: Interval, shown: str) -> str:
    """Why ``above`` or ``below`` fails although the mean is beyond the bound; empty if the mean is not.

    With few repetitions a reader sees their extremes, which may also be in the range. ``shown`` has the interval.
    """
    if not judge_range(expect, metric, Interval(found.value))[0]:
        return ""
    word, bound = ("above", expect.above) if expect.above is not None else ("below", expect.below)
    return f"the mean is {word} {bound}, the whole 95 % interval is not: {shown}"


def _note_single_repetition(why: str, samples: list[Sample]) -> str:
    counts = {len(each.values) for each in samples}
    return "; ".join(filter(None, (why, "n = 1, compared by means"))) if 1 in counts else why


@dataclass(frozen=True)
class Compared:
    """Difference and ratio of the means of two samples. ``ratio`` is None if the second mean is 0."""

    first: float
    second: float
    difference: Interval
    ratio: Interval | None
    paired: bool

    @property
    def row(self) -> ComparisonRow:
        ratio = self.ratio or Interval(0.0)
        return ComparisonRow(
            difference=self.difference.value,
            difference_low=self.difference.low,
            difference_high=self.difference.high,
            ratio=ratio.value if self.ratio else None,
            ratio_low=ratio.low,
            ratio_high=ratio.high,
            paired=self.paired,
        )


def compare(value: Sample, than: Sample) -> Compared:
    """Compare two samples: in pairs of equal repetitions if both sides share at least two, or have just the same one;
    otherwise after Welch.

    Repetitions that only one side has are left out of the pairs.
    """
    common = sorted(value.values.keys() & than.values.keys())
    paired = len(common) >= 2 or (len(common) == 1 and len(value.values) == len(than.values) == 1)
    if paired:
        first, second = ([float(side.values[each]) for each in common] for side in (value, than))
        difference = paired_difference(list(zip(first, second, strict=True)))
    else:
        first, second = value.numbers(), than.numbers()
        difference = welch_difference(first, second)
    means = statistic(first).mean, statistic(second).mean
    ratio = ratio_of_means(first, second, paired=paired) if means[1] != 0 else None
    return Compared(*means, difference, ratio, paired)


def judge_compared(expect: ExpectSection, metric: Metric, found: Compared) -> tuple[bool, str]:
    if expect.word is not None:
        return _by_word(expect.word, metric, found)
    if expect.difference is not None:
        ok, why = judge_range(expect.difference, metric, found.difference)
        return ok, f"difference {why}"
    assert expect.ratio is not None
    if found.ratio is None:
        return False, "the mean compared with is 0, so there is no ratio"
    ok, why = judge_range(expect.ratio, RATIO, found.ratio)
    return ok, f"ratio {why}"


def _by_word(word: str, metric: Metric, found: Compared) -> tuple[bool, str]:
    ratio = found.ratio.value if found.ratio else None
    shown = _difference_text(metric, found) + (f", ratio {_short(ratio)}" if ratio is not None else "")
    if word == "similar":
        if ratio is None:
            return found.first == 0, shown
        return abs(ratio - 1) <= SIMILAR + _ROUNDING, shown
    if word in ("more", "much more"):
        ok = _lies_above(found.difference, 0.0)
        larger, smaller = found.first, found.second
    else:
        ok = _lies_below(found.difference, 0.0)
        larger, smaller = found.second, found.first
    if word.startswith("much") and ok:
        if larger <= 0:
            return False, f"{shown}; of means that are not positive there is no ratio"
        ok = smaller <= 0 or larger / smaller >= MUCH - _ROUNDING
    return ok, shown


def _difference_text(metric: Metric, found: Compared) -> str:
    each = found.difference
    text = f"difference {number_text(each.value, metric)}"
    if each.low is not None and each.high is not None:
        text += f" ({number_text(each.low, metric)} to {number_text(each.high, metric)})"
    return text


def _short(value: float) -> str:
    return number_text(value, RATIO)


def _lies_above(found: Interval, limit: float) -> bool:
    return (found.value if found.low is None else found.low) > limit


def _lies_below(found: Interval, limit: float) -> bool:
    return (found.value if found.high is None else found.high) < limit


def judge_range(expect: RangeSection, metric: Metric, found: Interval) -> tuple[bool, str]:
    """Whether a number is in the range, and its text. ``above`` and ``below`` test the interval, the others the
    number."""
    shown = number_text(found.value, metric)
    if found.low is not None and found.high is not None:
        shown += f" ({number_text(max(found.low, metric.least), metric)} to {number_text(found.high, metric)})"
    if expect.above is not None:
        return _lies_above(found, metric.read(expect.above)), shown
    if expect.below is not None:
        return _lies_below(found, metric.read(expect.below)), shown
    low, high = bounds(expect, metric)
    slack = _ROUNDING * max(abs(found.value), abs(low or 0), abs(high or 0))
    return (low is None or found.value >= low - slack) and (high is None or found.value <= high + slack), shown


def bounds(expect: RangeSection, metric: Metric) -> tuple[float | None, float | None]:
    """The expected range in the unit of metrics.json; None for an open end."""
    if expect.equals is not None:
        middle = metric.read(expect.equals)
        tolerance = metric.read_tolerance(expect.within or USUAL_TOLERANCE, middle)
        return middle - tolerance, middle + tolerance
    if expect.between is not None:
        return metric.read(expect.between[0]), metric.read(expect.between[1])
    low, high = expect.above or expect.at_least, expect.below or expect.at_most
    return (None if low is None else metric.read(low)), (None if high is None else metric.read(high))


def _judge_share(expect: ExpectSection, metric: Metric, value: Sample) -> tuple[bool, str]:
    """Whether enough repetitions have the text, or a number in the range. One without a value does not match."""
    total = len(value.values) + len(value.missing)
    if expect.is_ is not None:
        texts = [str(text) for text in value.values.values()]
        matching = texts.count(expect.is_)
        others = f"{expect.is_} in {matching / total * 100:.4g} %: {shares(texts)}"
    else:
        outside = [number for number in value.numbers() if not judge_range(expect, metric, Interval(number))[0]]
        matching = len(value.values) - len(outside)
        others = f"in {matching} of {total} repetitions"
        if outside:
            others += f"; outside the range: {numbers_text(outside, metric)}"
    why = "; ".join(filter(None, (others if matching < total else "", missing_text(value))))
    return in_enough(expect, matching / total), why


def in_enough(expect: ExpectSection, share: float) -> bool:
    """Whether ``share`` reaches the expected share of the repetitions."""
    return share >= read_share(expect.in_at_least or "1") - _ROUNDING


def judge_trend(
    expect: ExpectSection, metric: Metric, at: At, points: list[Point], order: Callable[[Any], float]
) -> Finding:
    """Judge the trend of the means along an axis; ``order`` maps its values to numbers.

    rises: the mean at the largest value is *more* than at the smallest, and Spearman's rank correlation is at least
    0.7; with ``by``, the ends also differ by at least ``by``. falls: the opposite. flat: every mean is within 10 % (or
    ``within``) of their mean.
    """
    points = sorted(points, key=lambda point: order(point[0]))
    samples = [each for _, each in points]
    note = left_out_text(samples)
    shown = [TrendRow(axis=str(value), mean=_mean(each)) for value, each in points]
    union = _merged_runs(samples)
    unusable = _unusable(samples, at, union, None, note)
    if unusable is not None:
        return Finding(unusable.verdict, unusable.why, at, union, note=note, trend=shown)
    means = [statistic(each.numbers()).mean for each in samples]
    if expect.trend == "flat":
        ok = is_flat(expect, means)
        why = f"means from {number_text(min(means), metric)} to {number_text(max(means), metric)}"
    else:
        ends = compare(samples[-1], samples[0])
        correlation = spearman([order(value) for value, _ in points], means) or 0.0
        sign = 1 if expect.trend == "rises" else -1
        moved = _lies_above(ends.difference, 0.0) if sign > 0 else _lies_below(ends.difference, 0.0)
        ok = moved and sign * correlation >= RANK_CORRELATION - _ROUNDING and moves_by(expect, means)
        first, last = (statistic_text(statistic(each.numbers()), metric) for each in (samples[0], samples[-1]))
        why = f"from {first} to {last}, rank correlation {correlation:.2f}"
    return Finding(_verdict_of(ok), _note_single_repetition(why, samples), at, union, note=note, trend=shown)


def judge_ranks(expect: ExpectSection, at: At, points: list[Point]) -> Finding:
    """Judge the rank correlation (Spearman) between the means along an axis and the numbers in ``with``."""
    assert expect.rank_correlation is not None
    samples = [each for _, each in points]
    note = left_out_text(samples)
    others = [other_number(expect, value) for value, _ in points]
    shown = [
        TrendRow(axis=str(value), mean=_mean(each), other=other)
        for (value, each), other in zip(points, others, strict=True)
    ]
    union = _merged_runs(samples)
    unusable = _unusable(samples, at, union, None, note)
    if unusable is not None:
        return Finding(unusable.verdict, unusable.why, at, union, note=note, trend=shown)
    ok, why = correlated(expect, shown)
    return Finding(_verdict_of(ok), why, at, union, note=note, trend=shown)


def _mean(found: Sample) -> float | None:
    return statistic(found.numbers()).mean if found.values else None


def other_number(expect: ExpectSection, value: object) -> float | None:
    """The number that ``with`` gives for a value of the axis, or None."""
    return {axis_key(name): number for name, number in (expect.with_ or {}).items()}.get(axis_key(value))


def correlated(expect: ExpectSection, along: Sequence[TrendRow]) -> tuple[bool, str]:
    """Whether the rank correlation of the means and the other numbers is in the range, and a text that says it."""
    assert expect.rank_correlation is not None
    pairs = [(each.other, each.mean) for each in along if each.other is not None and each.mean is not None]
    correlation = spearman([other for other, _ in pairs], [mean for _, mean in pairs])
    if correlation is None:
        return False, "the means are all the same, so they have no rank correlation"
    ok, _ = judge_range(expect.rank_correlation, RATIO, Interval(correlation))
    return ok, f"rank correlation {correlation:.3f} over {len(along)} values of {expect.over}"


def is_flat(expect: ExpectSection, means: Sequence[float]) -> bool:
    """Whether each mean along an axis is close enough to their common mean."""
    middle = sum(means) / len(means)
    share = SIMILAR if expect.within is None else read_share(expect.within)
    return all(abs(mean - middle) <= share * abs(middle) * (1 + _ROUNDING) for mean in means)


def moves_by(expect: ExpectSection, means: Sequence[float]) -> bool:
    """Whether the ends of a trend differ by at least ``by``; true without ``by``."""
    if expect.by is None:
        return True
    change = means[-1] - means[0] if expect.trend == "rises" else means[0] - means[-1]
    return change >= read_share(expect.by) * abs(means[0]) * (1 - _ROUNDING)


def _merged_runs(samples: list[Sample]) -> Sample:
    """The runs of several points as one sample without values: all runs, and those left out."""
    united = Sample(samples[0].unit if samples else "")
    for each in samples:
        united.runs += each.runs
        united.left_out |= each.left_out
    return united
