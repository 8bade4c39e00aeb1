# SPDX-License-Identifier: Apache-2.0
"""One side of a comparison against another, within each place of the sweep: a ratio, paired by repetition.

Repetition r meets the same perturbation with every algorithm and at every place, so the ratio of each pair is a sample
of its own, and the spread of the ratios is that of the difference alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from howdah.measure.statistics import Statistic, statistic
from howdah.number import between, significant
from howdah.report.repeated import DIGITS, Repeated
from howdah.report.subject import Subject, places, sides

_ALIKE = 0.005  # ratios nearer to 1 than this print as 1
MOST_TOLD = 4  # sides that get a clause each; of more, the two that differ most are named


@dataclass(frozen=True)
class Compared:
    """What is compared and how it reads: ``differs`` has places for the ratio and for the other side, ``same`` for the
    other side."""

    metric: str
    differs: str
    same: str


@dataclass(frozen=True)
class Ratio:
    """At one place. ``mine`` and ``other`` are the quantities that are compared, in words."""

    place: str
    paired: Statistic
    mine: str
    other: str

    @property
    def value(self) -> float:
        return self.paired.median

    @property
    def is_one(self) -> bool:
        return all(abs(each - 1) < _ALIKE for each in self.paired.values)

    @property
    def text(self) -> str:
        """``1.24 times (1.2 … 1.3)``."""
        return f"{significant(self.value, DIGITS)} times{self.spread}"

    @property
    def spread(self) -> str:
        about = self.paired.about_median
        return f" ({between(about.low, about.high, DIGITS)})" if about else ""


def ratio(mine: Subject, other: Subject, metric: str) -> Ratio | None:
    """``mine`` over ``other`` at their place; None where there is none, as over nothing."""
    values = _ratios(mine.of, other.of, metric)
    if values is None:
        return None
    texts = (each.of.quantity(metric, spread=False) for each in (mine, other))
    return Ratio(mine.place, statistic(values), *texts)


def _ratios(mine: Repeated, other: Repeated, metric: str) -> list[float] | None:
    first, second = mine.numbers.get(metric), other.numbers.get(metric)
    if not first or not second:
        return None
    pairs = [(first[each], second[each]) for each in first if each in second]
    if not pairs:
        medians = mine.median(metric), other.median(metric)
        pairs = [(medians[0] or 0.0, medians[1] or 0.0)]
    if any(below == 0 and above != 0 for above, below in pairs):
        return None
    return [above / below if below else 1.0 for above, below in pairs]


def against(said: list[Subject], compared: Compared) -> list[str]:
    """Sentences: every other side against the first one, over all places that have both.

    Of many sides the two with the least and the largest ratio are told.
    """
    names = sides(said)
    at = {(each.side, each.place): each for each in said}
    found: dict[str, list[Ratio]] = {}
    for side in names[1:]:
        for place in places(said):
            mine, first = at.get((side, place)), at.get((names[0], place))
            one = ratio(mine, first, compared.metric) if mine and first else None
            if one is not None:
                found.setdefault(side, []).append(one)
    if len(found) >= MOST_TOLD:
        order = sorted(found, key=lambda side: statistic([each.value for each in found[side]]).median)
        found = {side: found[side] for side in dict.fromkeys((order[0], order[-1]))}
    return [f"{_words(side, names[0], ratios, compared)}." for side, ratios in found.items()]


def _words(side: str, other: str, ratios: list[Ratio], compared: Compared) -> str:
    if len(ratios) == 1:
        (only,) = ratios
        where = f" ({only.place})" if only.place else ""
        if only.is_one:
            return f"{side} {compared.same.format(other)}{where}"
        return f"{side} {compared.differs.format(only.text, other)}{where}"
    if all(each.is_one for each in ratios):
        return f"At each of {len(ratios)} sweep points {side} {compared.same.format(other)}"
    ordered = sorted(ratios, key=lambda each: each.value)
    middle = statistic([each.value for each in ratios]).median
    median = compared.differs.format(f"{significant(middle, DIGITS)} times", other)
    ends = " to ".join(
        f"{each.text} ({each.place}: {each.mine} against {each.other})" for each in (ordered[0], ordered[-1])
    )
    return f"{side} {median} in the median of {len(ratios)} sweep points, from {ends}"
