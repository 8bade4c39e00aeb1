# SPDX-License-Identifier: Apache-2.0
"""The finding at one point of a claim, and its texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from howdah.claim.sample import Sample
from howdah.measure.statistics import Statistic, statistic
from howdah.metric import Metric, known_metrics
from howdah.number import between, significant
from howdah.record.claims import ComparisonRow, SampleRow, TrendRow
from howdah.record.model import Scalar

PASS, FAIL, DIFFERS, UNSUPPORTED, INVALID = "pass", "fail", "differs", "unsupported", "invalid"
# It holds at some point of the grid, but nothing shows which one the source used (grid.py).
DEPENDS = "depends"
# A definition holds, by the implementation's own reports.
IMPLEMENTED = "implemented"
At = dict[str, Scalar]  # the value of each axis
_MOST_LISTED = 5  # largest number of different values that a text lists one by one


@dataclass(frozen=True)
class Finding:
    """The verdict at one point of the sweep. Points are compared by ``extent`` if the largest or smallest counts."""

    verdict: str
    why: str
    at: At
    value: Sample
    than: Sample | None = None
    extent: float | None = None
    comparison: ComparisonRow | None = None
    note: str = ""
    trend: list[TrendRow] = field(default_factory=list)


def metric_named(name: str) -> Metric:
    """The metric of that name. A metric that has been removed since the runs were made is shown without a unit."""
    return known_metrics().get(name) or Metric(name)


def number_text(value: float, metric: Metric) -> str:
    """A value of metrics.json in the unit shown to readers: ``95.6 %``, ``12.9 Mbit/s``."""
    return f"{significant(value * metric.factor)} {metric.shown}".rstrip()


def statistic_text(found: Statistic, metric: Metric) -> str:
    """``873 ± 12 packets, n = 10``; ``873 (861 … 880) packets, n = 3``; ``873 packets, n = 1``; ``873 packets,
    deterministic, n = 3``."""
    count = f"n = {found.count}"
    if found.half_width is None:
        same = ", deterministic" if found.deterministic else ""
        return f"{number_text(found.mean, metric)}{same}, {count}"
    spread = found.about_mean(metric.least)
    if spread is not None and (spread.few or spread.low > found.mean - found.half_width):
        apart = between(spread.low * metric.factor, spread.high * metric.factor)
        return f"{significant(found.mean * metric.factor)} ({apart}) {metric.shown}".rstrip() + f", {count}"
    mean = significant(found.mean * metric.factor)
    half = significant(found.half_width * metric.factor, 2)
    return f"{mean} ± {half} {metric.shown}".rstrip() + f", {count}"


def shares(values: Sequence[str]) -> str:
    """The texts with their counts: ``ack-train``; ``ack-train 8, loss 2``."""
    counts = counted_texts(values)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{text} {count}" for text, count in counts.items())


def counted_texts(values: Sequence[str]) -> dict[str, int]:
    return {text: values.count(text) for text in sorted(set(values), key=lambda text: (-values.count(text), text))}


def numbers_text(values: Sequence[float], metric: Metric) -> str:
    """The sorted values: ``1137 packets, 1241 packets``; ``0 events (9 times)``; the extremes of many different
    ones."""
    texts = [number_text(value, metric) for value in sorted(values)]
    different = list(dict.fromkeys(texts))
    if len(different) > _MOST_LISTED:
        return f"{texts[0]} to {texts[-1]}"
    counts = {text: texts.count(text) for text in different}
    return ", ".join(f"{text} ({count} times)" if count > 1 else text for text, count in counts.items())


def summary(found: Sample, metric: Metric) -> SampleRow:
    """A sample as a row of claims.json."""
    result = SampleRow(text="", mean=None, low=None, high=None, n=len(found.values), unit=found.unit)
    if found.missing:
        result.missing = len(found.missing)
    texts = [value for value in found.values.values() if isinstance(value, str)]
    if not found.values:
        result.text = f"no value: {missing_text(found) or 'no run counts'}"
    elif texts:
        result.text = f"{shares(texts)}, n = {len(texts)}"
        result.counts = counted_texts(texts)
    else:
        numbers = statistic(found.numbers())
        result.text, result.mean = statistic_text(numbers, metric), numbers.mean
        result.low, result.high = numbers.interval or (None, None)
    return result


def missing_text(found: Sample) -> str:
    """Why some repetitions have no value; empty if all have one."""
    if not found.missing:
        return ""
    reasons = list(dict.fromkeys(found.missing.values()))
    total = len(found.missing) + len(found.values)
    more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
    return f"{len(found.missing)} of {total} runs have none: {reasons[0]}{more}"


def left_out_text(samples: Sequence[Sample]) -> str:
    """How many runs were left out: ``3 of 10 runs left out: 2 invalid, 1 failed``; empty if none."""
    left = {name: why for each in samples for name, why in each.left_out.items()}
    names = {name for each in samples for name in each.runs}
    if not left:
        return ""
    return f"{len(left)} of {len(names)} runs left out: {_counts(list(left.values()))}"


def _counts(words: list[str]) -> str:
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
