# SPDX-License-Identifier: Apache-2.0
"""The difference view: every side against the first at each point, as a text table, as data, and for a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from howdah.layout import folded
from howdah.measure.statistics import Statistic
from howdah.metric import known_metrics
from howdah.number import between, significant
from howdah.record.model import FilePart
from howdah.report.contrast import Contrast, contrasts, headline_measures
from howdah.report.subject import Subject
from howdah.report.tabular import Tabular, text

HEADERS = ("B", "flow", "measure", "unit", "B", "A", "B − A", "B / A", "better")
_MOST_POINTS = 12  # that a terminal shows
_RATIO_DIGITS = 3
_SINGLE_PAIR = "one pair"


@dataclass(frozen=True)
class DifferenceRow:
    """A contrast as text in the unit shown; sides that count as equal have difference 0 and ratio 1.

    ``difference_apart`` and ``ratio_apart`` are least and greatest for few pairs, else the 95 % interval; both are
    empty if the pairs are equal. ``difference_apart`` says so if only one pair of several repetitions has the measure.
    """

    of: Contrast
    mine: str
    other: str
    difference: str
    difference_spread: str
    ratio: str
    ratio_spread: str

    @property
    def measure(self) -> str:
        return self.of.metric.words

    @property
    def unit(self) -> str:
        return self.of.metric.shown

    @property
    def better(self) -> str:
        return self.of.better


def differences(subjects: list[Subject], metrics: Sequence[str] = ()) -> list[Contrast]:
    """The contrasts of the given measures, or of all main ones, that are not 0 everywhere: for flows and groups first,
    then for whole runs."""
    whole: dict[tuple[str, str], Subject] = {}
    for each in subjects:
        whole.setdefault((each.side, each.place), replace(each, name="", of=each.whole))
    everything = [*subjects, *whole.values()]
    numbers = [name for name, metric in known_metrics().items() if not metric.is_text and metric.table == "main"]
    numbers = list(metrics) or numbers
    shown = [name for name in numbers if any(each.of.has(name) and not each.of.is_zero(name) for each in everything)]
    return contrasts(everything, shown)


def difference_rows(found: list[Contrast]) -> list[DifferenceRow]:
    return [_row(each) for each in found]


def _row(each: Contrast) -> DifferenceRow:
    factor, of = each.metric.factor, each.of
    both = [significant(value * factor) for value in (of.mine, of.other)]
    if of.is_alike:
        return DifferenceRow(each, both[0], both[1], "0", "", "1", "")
    apart = significant(of.differences.median * factor)
    sign = "+" if of.differences.median > 0 else ""
    ratio = significant(of.ratios.median, _RATIO_DIGITS) if of.ratios else ""
    spread = _SINGLE_PAIR if each.has_single_pair else _spread_text(of.differences, factor)
    return DifferenceRow(each, both[0], both[1], f"{sign}{apart}", spread, ratio, _spread_text(of.ratios, 1.0))


def _spread_text(statistic: Statistic | None, factor: float) -> str:
    about = statistic.about_median if statistic else None
    return between(about.low * factor, about.high * factor, _RATIO_DIGITS) if about else ""


def difference_text(subjects: list[Subject], width: int | None = None) -> str:
    """The measures that answer the profile at each point, for a terminal ``width`` columns wide; empty if there are no
    two sides."""
    found = contrasts(*headline_measures(subjects))
    if not found:
        return ""
    places = list(dict.fromkeys(each.place for each in found))
    several = len({(each.side, each.other) for each in found}) > 1
    sides = f"B against A = {found[0].other}" if several else f"B = {found[0].side} against A = {found[0].other}"
    lines = folded(sides, width) if any(places) else []
    for place in places[:_MOST_POINTS]:
        rows = []
        for row in difference_rows([each for each in found if each.place == place]):
            name = ", ".join(filter(None, (row.of.side if several else "", row.measure)))
            both = [
                f"{number} ({apart})" if apart else number
                for number, apart in ((row.difference, row.difference_spread), (row.ratio or "—", row.ratio_spread))
            ]
            rows.append([f"{name} ({row.unit})" if row.unit else name, row.mine, row.other, *both])
        title = f"[{place}]" if place else sides
        lines += text(Tabular(title, ["measure", "B", "A", "B − A", "B / A"], rows), width).splitlines()
    if len(places) > _MOST_POINTS:
        more = f"and {len(places) - _MOST_POINTS} more points: 'howdah table --of differences' has them"
        lines += folded(more, width)
    note = "in pairs of equal repetitions; in brackets least and largest of few pairs, else the 95 % interval"
    return "\n".join([*lines, *folded(note, width)])


def difference_table(subjects: list[Subject], metrics: Sequence[str] = ()) -> Tabular:
    """Every row, for a paper or a spreadsheet."""
    found = differences(subjects, metrics)
    rows = [[row.of.place, row.of.side, *_words(row)] for row in difference_rows(found)]
    other = next((each.other for each in found), "")
    headers = ["point", "side B", *HEADERS[1:4], "B", "A", "B − A", "", "B / A", "", "better"]
    return Tabular(f"Differences: B against A = {other}", headers, rows)


def _words(row: DifferenceRow) -> list[str]:
    found = [row.of.flow, row.measure, row.unit, row.mine, row.other, row.difference, row.difference_spread]
    return [*found, row.ratio, row.ratio_spread, row.better]


class PairedRow(FilePart):
    """One measure of one side against the first, over pairs of equal repetitions, in the unit of metrics.json."""

    side: str
    other: str = Field(description="the first side, which the others are compared with")
    place: str = Field(description="the sweep point in words")
    flow: str | None = Field(description="name of the flow or of the group; null for a measure of whole runs")
    metric: str = Field(description="docs/measures.md")
    unit: str | None
    mine: float = Field(description="median of the side")
    others: float = Field(description="median of the other")
    difference: float = Field(description="median of the pairs' differences, side - other")
    difference_low: float | None = Field(
        description="least of fewer than six pairs, else the median's 95 % interval begins here; null for equal pairs"
    )
    difference_high: float | None
    ratio: float | None = Field(description="median of side / other; null where one side alone is 0")
    ratio_low: float | None
    ratio_high: float | None
    pairs: int = Field(description="0: no repetition is on both sides, so medians are compared")
    better: str | None = Field(description="the side that is better beyond the spread")
    run: str | None = Field(description="the run of the side with the median pair")


def difference_data(subjects: list[Subject]) -> list[PairedRow]:
    """A row for each contrast, unrounded."""
    return [_paired(each) for each in differences(subjects)]


def _paired(each: Contrast) -> PairedRow:
    of = each.of
    apart = of.differences.about_median
    ratio = of.ratios.about_median if of.ratios else None
    return PairedRow(
        side=each.side,
        other=each.other,
        place=each.place,
        flow=each.flow or None,
        metric=each.metric.name,
        unit=each.metric.unit,
        mine=of.mine,
        others=of.other,
        difference=of.differences.median,
        difference_low=apart.low if apart else None,
        difference_high=apart.high if apart else None,
        ratio=of.ratios.median if of.ratios else None,
        ratio_low=ratio.low if ratio else None,
        ratio_high=ratio.high if ratio else None,
        pairs=of.differences.count if of.is_paired else 0,
        better=each.better or None,
        run=each.run or None,
    )
