# SPDX-License-Identifier: Apache-2.0
"""One side of a comparison against another at each place of the sweep, in words."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.measure.statistics import ALIKE, Statistic, difference, statistic
from howdah.number import between, significant
from howdah.report.repeated import DIGITS
from howdah.report.subject import Subject, places, sides

MOST_NAMED = 4  # sides that get a clause each; of more, the two that differ most are named


@dataclass(frozen=True)
class Wording:
    """A measure and the wording of its comparison. ``differs`` has placeholders for the ratio and the other side,
    ``same`` for the other side."""

    metric: str
    differs: str
    same: str


@dataclass(frozen=True)
class Ratio:
    """The ratio of two sides at one place. ``is_of_nothing``: both are 0 in every repetition."""

    place: str
    paired: Statistic
    is_zero: bool

    @property
    def value(self) -> float:
        return self.paired.median

    @property
    def is_one(self) -> bool:
        return all(abs(each - 1) < ALIKE for each in self.paired.values)

    @property
    def text(self) -> str:
        """``1.24 times (1.2 … 1.3)``."""
        return f"{significant(self.value, DIGITS)} times{self.spread}"

    @property
    def spread(self) -> str:
        about = self.paired.about_median
        if about is None or significant(about.low, DIGITS) == significant(about.high, DIGITS):
            return ""
        return f" ({between(about.low, about.high, DIGITS)})"


def ratio(mine: Subject, other: Subject, metric: str) -> Ratio | None:
    """``mine`` over ``other`` at their place; None if one of them lacks the measure, or only one is 0."""
    found = difference(mine.of.numbers.get(metric, {}), other.of.numbers.get(metric, {}))
    if found is None or found.ratios is None:
        return None
    nothing = mine.of.is_zero(metric) and other.of.is_zero(metric)
    return Ratio(mine.place, found.ratios, nothing)


def compare_with_first(subjects: list[Subject], *wording: Wording) -> list[str]:
    """Sentences that compare every other side with the first, over all places that have both. A measure that is 0
    everywhere is not compared.

    With many sides, only those with the least and the greatest ratio of the first measure are named.
    """
    names = sides(subjects)
    at = {(each.side, each.place): each for each in subjects}
    found: dict[str, list[tuple[Wording, list[Ratio]]]] = {}
    for side in names[1:]:
        for each in wording:
            ratios = [
                one
                for place in places(subjects)
                if (mine := at.get((side, place))) and (first := at.get((names[0], place)))
                if (one := ratio(mine, first, each.metric)) is not None
            ]
            if any(not one.is_zero for one in ratios):
                found.setdefault(side, []).append((each, ratios))
    if len(found) >= MOST_NAMED:
        order = sorted(found, key=lambda side: statistic([one.value for one in found[side][0][1]]).median)
        found = {side: found[side] for side in dict.fromkeys((order[0], order[-1]))}
    is_value = any(not each.is_variant for each in subjects)
    sentences = []
    for side, measures in found.items():
        words = [
            _words(
                each,
                ratios,
                f"with {names[0]}" if is_value and not each.differs.endswith(" of {}") else names[0],
                is_counted=number > 0 and len(ratios) == len(measures[0][1]),
            )
            for number, (each, ratios) in enumerate(measures)
        ]
        joined = (" and " if all("," not in each for each in words) else "; it ").join(words)
        sentences.append(f"With {side} it {joined}." if is_value else f"{side} {joined}.")
    return sentences


def _words(wording: Wording, ratios: list[Ratio], other: str, *, is_counted: bool) -> str:
    """The clause of one measure. ``is_counted``: the sentence already gives the number of sweep points."""
    at_each = f" at each of {len(ratios)} sweep points"
    if len(ratios) == 1:
        at_each = f" ({ratios[0].place})" if ratios[0].place else ""
    if all(each.is_one for each in ratios):
        return f"{wording.same.format(other)}{at_each}"
    if len({each.text for each in ratios}) == 1:
        return f"{wording.differs.format(ratios[0].text, other)}{at_each}"
    ordered = sorted(ratios, key=lambda each: each.value)
    middle = statistic([each.value for each in ratios]).median
    median = wording.differs.format(f"{significant(middle, DIGITS)} times", other)
    ends = " to ".join(f"{each.text} at {each.place}" for each in (ordered[0], ordered[-1]))
    return f"{median} in the median{'' if is_counted else f' of {len(ratios)} sweep points'}, from {ends}"
