# SPDX-License-Identifier: Apache-2.0
"""The data of sweep and bar figures: a measure at every value of x, by lines and panels, with the paper's numbers."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from howdah.measure.statistics import FEW, Statistic
from howdah.number import between, significant
from howdah.profile.figure import FigureSection
from howdah.report.plot.model import LegendItem, Panel, Picture, PlotAxis, PlotLine
from howdah.report.plot.sample import (
    AnyExperiment,
    AnyRun,
    NoNumberError,
    NothingToDrawError,
    PlotSample,
    Selection,
    axis_value,
    base_unit,
    every_value,
    relative,
    sample,
    select,
    stored_sample,
)
from howdah.report.plot.scale import Measure, Tick, bounds, measure_of, printed_number
from howdah.report.plot.stored import Mean, StoredPoint
from howdah.report.plot.style import Style, key, styles
from howdah.report.plot.swept import Swept, place_title, swept

_MOST_REASONS = 4
_MOST_OWN_TICKS = 12


@dataclass
class PanelSeries:
    """One line (or the bars of one colour) of one panel. ``samples`` and ``printed`` are by value of x; printed numbers
    are in the unit shown."""

    label: str
    style: Style
    samples: dict[str, PlotSample]
    printed: dict[str, float]


@dataclass
class Grid:
    """Everything a sweep or bar figure shows: the series of each panel by title, all on the same scales."""

    figure: FigureSection
    x: Swept
    measure: Measure
    panels: dict[str, list[PanelSeries]]

    @property
    def y_label(self) -> str:
        """The label of the y axis, with the flow and the reference that values are relative to."""
        figure, measure = self.figure, self.measure
        of = "" if figure.flow is None else f" of {figure.flow}"
        if isinstance(figure.flow, int):
            of = f" of flow {figure.flow}"
        elif figure.flow == "all":
            of = f" ({figure.take} of all flows)"
        if figure.relative_to:
            return f"{measure.words}{of}: % more than {next(iter(figure.relative_to.values()))}"
        return f"{measure.words}{of} ({measure.unit})" if measure.unit else f"{measure.words}{of}"

    def shown(self, number: float) -> float:
        return number if self.figure.relative_to else number * self.measure.factor

    def spread(self, statistic: Statistic | Mean) -> tuple[float, float] | None:
        """The ends of the whisker at a mean, in the unit shown; None if repetitions do not differ."""
        found = statistic.about_mean(-math.inf if self.figure.relative_to else self.measure.least)
        return None if found is None else (self.shown(found.low), self.shown(found.high))

    def numbers(self) -> list[float]:
        """All numbers that the scale must cover."""
        found: list[float] = []
        for each in self._samples():
            if (statistic := each.statistic) is not None:
                found += [self.shown(statistic.mean), *(self.spread(statistic) or ())]
        return found + [
            number for panel in self.panels.values() for series in panel for number in series.printed.values()
        ]

    def up(self, *, logarithmic: bool, from_zero: bool = False) -> tuple[float, float]:
        """The ends of the y scale; it does not go beyond 100 % if all shares are below."""
        numbers = self.numbers()
        low, high = bounds([*numbers, *([0.0] if from_zero else [])], logarithmic=logarithmic, zero=True)
        if self.measure.unit == "%" and not self.figure.relative_to and max(numbers, default=0.0) <= 100:
            high = min(high, 100.0)
        return low, high

    def _samples(self) -> list[PlotSample]:
        return [each for panel in self.panels.values() for series in panel for each in series.samples.values()]


def gather(figure: FigureSection, experiment: AnyExperiment) -> Grid:
    """Collect the samples of every place of the figure. Raises NothingToDrawError."""
    assert figure.x is not None and figure.y is not None
    axes = [axis for axis in (figure.x, figure.lines, figure.panels) if axis is not None]
    selection = select(figure, experiment, *axes)
    base = base_unit(selection.runs, figure.y)
    values = selection.values(figure.x)
    lines = selection.values(figure.lines)
    looks = styles(every_value(experiment, figure.lines))
    places = selection.values(figure.panels) if figure.panels else [""]
    reference = str(next(iter(figure.relative_to.values()), ""))
    panels: dict[str, list[PanelSeries]] = {}
    numbers: list[float] = []
    for place in places:
        here = selection.where({figure.panels: place}) if figure.panels else selection
        by_line = {label: _samples(figure, here, label, values) for label in lines}
        if reference:
            to = _samples(figure, here, reference, values) if reference not in by_line else by_line[reference]
            by_line = {
                label: {x: _relative(figure, here, label, x, each, to[x]) for x, each in found.items()}
                for label, found in by_line.items()
                if label != reference
            }
        panels[place] = [
            PanelSeries(label, looks[label], found, _printed(figure, place, label, values))
            for label, found in by_line.items()
            if any(each.runs for each in found.values())
        ]
        numbers += [number for found in by_line.values() for each in found.values() for number in _numbers(each)]
    series = [each for panel in panels.values() for each in panel]
    if not numbers:
        raise _without_numbers(series, selection)
    measure = measure_of(figure.y, base, numbers)
    for each in series if not figure.relative_to else ():
        each.printed = {x: number * measure.factor for x, number in each.printed.items()}
    return Grid(figure, swept(figure.x, values), measure, panels)


def _without_numbers(series: list[PanelSeries], selection: Selection) -> NothingToDrawError:
    """The error for a figure without a number: NoNumberError if runs count and give reasons."""
    reasons = dict.fromkeys(sample.why for each in series for sample in each.samples.values() if sample.runs)
    if not reasons:
        return NothingToDrawError("it has no published number")
    error = NoNumberError if any(run.counts for run in selection.made) else NothingToDrawError
    return error(f"no run has a number: {'; '.join(list(reasons)[:_MOST_REASONS])}")


def _samples(figure: FigureSection, here: Selection, label: str, values: list[str]) -> dict[str, PlotSample]:
    assert figure.x is not None and figure.y is not None
    mine = here.where({figure.lines: label})
    by_x: dict[str, list[AnyRun]] = {value: [] for value in values}
    for run in mine.runs:
        by_x[axis_value(run, figure.x) or ""].append(run)
    return {x: sample(runs, figure.y, figure.flow, figure.take) for x, runs in by_x.items()}


def _relative(figure: FigureSection, here: Selection, label: str, x: str, of: PlotSample, to: PlotSample) -> PlotSample:
    """Per cent more than ``to``; for stored points the published number."""
    assert figure.x is not None and figure.y is not None
    runs = here.where({figure.lines: label, figure.x: x}).runs
    stored = [run for run in runs if isinstance(run, StoredPoint)]
    if not stored:
        return relative(of, to)
    reference = str(next(iter(figure.relative_to.values())))
    return stored_sample(stored, figure.y, figure.flow, figure.take, reference)


def _numbers(each: PlotSample) -> list[float]:
    return [each.stored.mean] if each.stored is not None else list(each.numbers.values())


def _printed(figure: FigureSection, place: str, label: str, values: list[str]) -> dict[str, float]:
    """The paper's numbers for a line: listed under its name, or with panels under ``panel / line``."""
    if figure.paper is None:
        return {}
    points: dict[str, Any] = figure.paper.points.get(f"{place} / {label}" if figure.panels else label, {})
    assert figure.y is not None
    of = "ratio" if figure.relative_to else figure.y
    factor = 100.0 if figure.relative_to else 1.0
    return {x: factor * printed_number(number, of) for x, number in points.items() if x in values}


def draw_grid(figure: FigureSection, experiment: AnyExperiment) -> Picture:
    """Draw a panel for each place: lines through means, or bars from 0 in categories side by side. Both show the spread
    of the repetitions."""
    grid = gather(figure, experiment)
    log = figure.log or ""
    bars = figure.kind == "bars"
    order = list(grid.x.position) if bars else sorted(grid.x.position, key=grid.x.position.__getitem__)
    at = {x: float(number) if bars else grid.x.position[x] for number, x in enumerate(order)}
    own = [Tick(at[x], grid.x.texts[x]) for x in order]
    numeric = grid.x.numeric and not bars
    log_x = "x" in log and numeric and min(at.values()) > 0
    ends = bounds(list(at.values()), logarithmic=log_x, zero=False) if numeric else (-0.5, len(order) - 0.5)
    across = PlotAxis(grid.x.label, ends, log_x, own if len(own) <= _MOST_OWN_TICKS or bars else None)
    up = PlotAxis(grid.y_label, grid.up(logarithmic="y" in log, from_zero=bars and "y" not in log), "y" in log)
    picture = Picture(legend=_legend(grid))
    for place, series in grid.panels.items():
        title = place_title(figure.panels, place) if figure.panels and len(grid.panels) > 1 else ""
        lines = [_line(grid, each, at) for each in series]
        words = f"{grid.y_label} against {grid.x.label}"
        picture.panels.append(Panel(title, across, up, lines, "bars" if bars else "line", words=words))
    if figure.paper is not None and any(line.printed for panel in picture.panels for line in panel.lines):
        picture.paper = figure.paper.label
    picture.caption, picture.missing = _counts(grid)
    return picture


def _line(grid: Grid, series: PanelSeries, at: dict[str, float]) -> PlotLine:
    found = PlotLine(series.label, series.style, list(at.values()), [])
    spoken = {}
    for x in at:
        each = series.samples[x]
        statistic = each.statistic
        spread = grid.spread(statistic) if statistic is not None else None
        low, high = spread or (math.nan, math.nan)
        found.low.append(low)
        found.high.append(high)
        if statistic is None:
            found.y.append(math.nan)
            found.words.append(f"{series.label}, {x}: {each.why}" if each.runs else "")
            spoken[x] = "missing"
        else:
            spoken[x] = significant(grid.shown(statistic.mean))
            interval = f" ({between(*spread)})" if spread else ""
            found.y.append(grid.shown(statistic.mean))
            found.words.append(f"{series.label}, {x}: {spoken[x]}{interval}, n = {statistic.count}")
    found.spoken = f"{series.label}: {', '.join(f'{x} {spoken[x]}' for x in series.samples)}"
    paper = grid.figure.paper.label if grid.figure.paper else ""
    for x in at:
        if x in series.printed:
            number = series.printed[x]
            found.printed.append((at[x], number, f"{paper}: {series.label}, {x}: {significant(number)}"))
    return found


def _legend(grid: Grid) -> list[LegendItem]:
    if grid.figure.panels == grid.figure.lines:
        return _printed_legend(grid, [])  # each panel says which line it holds
    items: dict[str, LegendItem] = {}
    bars = grid.figure.kind == "bars"
    for series in (each for panel in grid.panels.values() for each in panel):
        items.setdefault(
            series.label, LegendItem(key(series.style, *(["bar"] if bars else ["line", "mark"])), series.label)
        )
    return _printed_legend(grid, list(items.values()))


def _printed_legend(grid: Grid, legend: list[LegendItem]) -> list[LegendItem]:
    first = next((each for panel in grid.panels.values() for each in panel if each.printed), None)
    if first is not None and grid.figure.paper is not None:
        sample_ = key(first.style, "hollow")
        legend.append(LegendItem(sample_, f"hollow: {grid.figure.paper.label}"))
    return legend


def _counts(grid: Grid) -> tuple[list[str], list[str]]:
    """Sentences on the number of repetitions, and a list of what is missing."""
    counts: Counter[int] = Counter()
    missing = []
    for place, panel in grid.panels.items():
        for series in panel:
            for x, each in series.samples.items():
                statistic = each.statistic
                if statistic is not None:
                    counts[statistic.count] += 1
                if each.runs and (statistic is None or each.missing):
                    where = ", ".join(filter(None, (series.label, x, place)))
                    missing.append(f"{where}: {each.why}" + ("" if statistic is None else f" (n = {statistic.count})"))
                elif not each.runs:
                    missing.append(f"{', '.join(filter(None, (series.label, x, place)))}: {each.absent}")
    return [count_words(counts, relative=bool(grid.figure.relative_to))], missing


def count_words(counts: Counter[int], *, relative: bool = False) -> str:
    """The number of repetitions, and what is drawn from them, in words."""
    if not counts:
        return "No run counts."
    least, most = min(counts), max(counts)
    number = f"n = {least}" if least == most else f"n = {least} … {most}"
    if most == 1:
        return f"{number}: one repetition, so there are no intervals."
    what = "Means of differences in pairs of equal repetitions" if relative else "Means"
    apart = "least and largest" if least < FEW else "95 % confidence interval (Student’s t)"
    if least < FEW <= most:
        apart += f" of fewer than {FEW} repetitions, of more the 95 % confidence interval (Student’s t)"
    return f"{what}, each with the {apart}, {number}; no whisker where all are equal."
