# SPDX-License-Identifier: Apache-2.0
"""Every side of a comparison against the first, at each place of the sweep, as numbers for pictures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from howdah.measure.statistics import PairedDifference, difference
from howdah.metric import Metric, known_metrics
from howdah.number import significant
from howdah.report.completion import is_transfer
from howdah.report.completion import metric_of as completion_metric
from howdah.report.repeated import DONE, DONE_MEDIAN, DONE_P95, EXIT, LOST, LOST_SHARE, NINETY, UTILISATION
from howdah.report.startup import has_start
from howdah.report.subject import Subject, places, sides

_DIGITS = 3


@dataclass(frozen=True)
class Contrast:
    """One measure of one flow or group: ``side`` against ``other`` at ``place``, in the unit of metrics.json.

    ``run`` is the run of ``side`` with the median pair. Some of its ``repetitions`` may lack the measure.
    """

    metric: Metric
    side: str
    other: str
    place: str
    flow: str
    of: PairedDifference
    run: str
    repetitions: int

    @property
    def has_single_pair(self) -> bool:
        """Whether only one pair of several repetitions has the measure on both sides, so that there is no spread."""
        return self.of.is_paired and self.of.differences.count == 1 < self.repetitions

    @property
    def has_ratio(self) -> bool:
        """Whether an axis of ratios can show it: neither side is 0."""
        return self.of.ratios is not None and self.of.ratios.median > 0

    @property
    def placed(self) -> str:
        return f"{self.side} ({self.place})" if self.place else self.side

    @property
    def against(self) -> str:
        """Both numbers in the unit shown: ``5 against 0``."""
        both = (significant(value * self.metric.factor, _DIGITS) for value in (self.of.mine, self.of.other))
        return " against ".join(both)

    @property
    def better(self) -> str:
        """The side that is better beyond the spread; empty if neither is, or if the measure has no better direction."""
        if self.metric.worse == "either" or not self.of.side or self.has_single_pair:
            return ""
        return self.other if (self.of.side > 0) == (self.metric.worse == "more") else self.side


def contrasts(subjects: list[Subject], metrics: Iterable[str]) -> list[Contrast]:
    """The contrasts by measure, place, flow and side, where both sides have numbers."""
    names, known = sides(subjects), known_metrics()
    at = {(each.side, each.place, each.name): each for each in subjects}
    flows = list(dict.fromkeys(each.name for each in subjects))
    found = []
    for metric in metrics:
        for place in places(subjects):
            for flow in flows:
                first = at.get((names[0], place, flow))
                for side in names[1:]:
                    mine = at.get((side, place, flow))
                    if mine is None or first is None or metric not in known:
                        continue
                    numbers = mine.of.numbers.get(metric, {}), first.of.numbers.get(metric, {})
                    of = difference(*numbers)
                    if of is not None:
                        run = mine.of.runs.get(_median_repetition(*numbers), "")
                        found.append(Contrast(known[metric], side, names[0], place, flow, of, run, len(mine.of.runs)))
    return found


def headline_measures(subjects: list[Subject]) -> tuple[list[Subject], list[str]]:
    """Select what answers the profile: its transfers and their completion times, else the first flows and how they
    started.

    Return the subjects and the names of the measures, the most important first.
    """
    transfers = [each for each in subjects if is_transfer(each)]
    if transfers:
        name = transfers[0].name
        mine = [each for each in transfers if each.name == name]
        rest = [DONE_P95, LOST_SHARE] if mine[0].is_group else [LOST]
        return mine, _differing(mine, [completion_metric(mine), *rest])
    first: dict[tuple[str, str], Subject] = {}
    for each in subjects:
        if has_start(each):
            first.setdefault((each.side, each.place), each)
    shown = list(first.values())
    return shown, _differing(shown, [EXIT, LOST, NINETY, UTILISATION])[:3]


def _differing(subjects: list[Subject], metrics: list[str]) -> list[str]:
    """The measures that some side has and that are not 0 on every side; completion times are always kept."""
    return [
        name
        for name in metrics
        if name in (DONE, DONE_MEDIAN) or any(each.of.has(name) and not each.of.is_zero(name) for each in subjects)
    ]


def _median_repetition(mine: dict[int, float], other: dict[int, float]) -> int:
    """The repetition with the median difference."""
    common = [each for each in mine if each in other]
    ordered = sorted(common or mine, key=lambda each: (mine[each] - other.get(each, 0.0), each))
    return ordered[(len(ordered) - 1) // 2]
