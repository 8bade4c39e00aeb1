# SPDX-License-Identifier: Apache-2.0
"""A measure against a swept field, or in categories side by side: means, their 95 % intervals, printed numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from howdah.measure.statistics import Statistic
from howdah.profile.figure import FigureSection
from howdah.publish.experiment import Experiment, Run
from howdah.report.number import significant
from howdah.report.plot.canvas import NARROW, PANEL, WIDE, AxisLook, Canvas, Drawn, LegendItem, Panel, Size
from howdah.report.plot.measure import Measure, measure_of, printed_number
from howdah.report.plot.sample import Sample, Selection, axis_value, base_unit, relative, sample, select
from howdah.report.plot.scale import Tick, bounds
from howdah.report.plot.style import Style, cross, key, mark, styles
from howdah.report.plot.swept import Swept, field_name, swept

_HEADINGS_FROM = 2


@dataclass
class Series:
    """One line (or the bars of one colour) of one panel. ``samples`` and ``printed`` are by value of x; printed numbers
    are in the unit shown."""

    label: str
    style: Style
    samples: dict[str, Sample]
    printed: dict[str, float]


@dataclass
class Grid:
    """Everything a sweep or a bar figure shows: panel title to its series, all on the same scales."""

    figure: FigureSection
    x: Swept
    measure: Measure
    panels: dict[str, list[Series]]

    @property
    def y_label(self) -> str:
        """With the flow, and with what it is relative to."""
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

    def numbers(self) -> list[float]:
        """All that must be on the scale."""
        found: list[float] = []
        for series in (each for panel in self.panels.values() for each in panel):
            found += series.printed.values()
            for each in series.samples.values():
                if (statistic := each.statistic) is not None:
                    low, high = statistic.interval or (statistic.mean, statistic.mean)
                    found += [self.shown(low), self.shown(high), self.shown(statistic.mean)]
        return found


def gather(figure: FigureSection, experiment: Experiment) -> Grid:
    """Samples of every place of the figure. Raises NothingToDrawError."""
    assert figure.x is not None and figure.y is not None
    axes = [axis for axis in (figure.x, figure.lines, figure.panels) if axis is not None]
    selection = select(figure, experiment, *axes)
    base = base_unit(selection.runs, figure.y)
    values = selection.values(figure.x)
    lines = selection.values(figure.lines)
    algorithms = {axis_value(run, figure.lines) or "": run.algorithm for run in selection.runs}
    looks = styles(lines, algorithms if figure.lines == "algorithm" else None)
    places = selection.values(figure.panels) if figure.panels else [""]
    reference = str(next(iter(figure.relative_to.values()), ""))
    panels: dict[str, list[Series]] = {}
    everything: list[float] = []
    for place in places:
        here = selection.where({figure.panels: place}) if figure.panels else selection
        by_line = {label: _samples(figure, here, label, values) for label in lines}
        if reference:
            to = _samples(figure, here, reference, values) if reference not in by_line else by_line[reference]
            by_line = {
                label: {x: relative(each, to[x]) for x, each in found.items()}
                for label, found in by_line.items()
                if label != reference
            }
        panels[place] = [
            Series(label, looks[label], found, _printed(figure, place, label, values, base))
            for label, found in by_line.items()
            if any(each.runs for each in found.values())
        ]
        everything += [
            number for found in by_line.values() for each in found.values() for number in each.numbers.values()
        ]
    measure = measure_of(figure.y, base, everything)
    for series in (each for panel in panels.values() for each in panel):
        if not figure.relative_to:
            series.printed = {x: number * measure.factor for x, number in series.printed.items()}
    return Grid(figure, swept(figure.x, values), measure, panels)


def _samples(figure: FigureSection, here: Selection, label: str, values: list[str]) -> dict[str, Sample]:
    assert figure.x is not None and figure.y is not None
    mine = here.where({figure.lines: label})
    by_x: dict[str, list[Run]] = {value: [] for value in values}
    for run in mine.runs:
        by_x[axis_value(run, figure.x) or ""].append(run)
    return {x: sample(runs, figure.y, figure.flow, figure.take) for x, runs in by_x.items()}


def _printed(figure: FigureSection, place: str, label: str, values: list[str], base: str) -> dict[str, float]:
    """The paper's numbers of a line: under its name, or with panels under ``panel / line``."""
    if figure.paper is None:
        return {}
    points: dict[str, Any] = figure.paper.points.get(f"{place} / {label}" if figure.panels else label, {})
    unit = "%" if figure.relative_to else base
    found = {}
    for x, number in points.items():
        if x in values:
            text = str(number).removesuffix("%").strip() if unit == "%" else number
            found[x] = printed_number(text, unit)
    return found


def draw_sweep(figure: FigureSection, experiment: Experiment) -> Drawn:
    """One line a value of ``lines``; whiskers are the 95 % intervals of the means."""
    grid = gather(figure, experiment)
    return _drawn(grid, _sweep_panel)


def draw_bars(figure: FigureSection, experiment: Experiment) -> Drawn:
    """Bars from 0 in categories."""
    return _drawn(gather(figure, experiment), _bar_panel)


def _drawn(grid: Grid, panel: Any) -> Drawn:
    several = len(grid.panels) > 1
    drawn = Drawn()
    for place, series in grid.panels.items():
        sizes = (PANEL,) if several else (WIDE, NARROW)
        title = f"{field_name(grid.figure.panels)} {place}" if grid.figure.panels and several else ""
        drawn.panels.append(Panel(title, [panel(grid, series, size) for size in sizes]))
    drawn.legend = _legend(grid)
    drawn.caption, drawn.missing = _words(grid)
    return drawn


def _legend(grid: Grid) -> list[LegendItem]:
    items: dict[str, LegendItem] = {}
    bars = grid.figure.kind == "bars"
    for series in (each for panel in grid.panels.values() for each in panel):
        items.setdefault(
            series.label, LegendItem(key(series.style, line=not bars, shape=not bars, bar=bars), series.label)
        )
    legend = list(items.values())
    first = next((each for panel in grid.panels.values() for each in panel if each.printed), None)
    if first is not None and grid.figure.paper is not None:
        sample_ = key(first.style, line=False, shape=True, hollow=True)
        legend.append(LegendItem(sample_, f"hollow: {grid.figure.paper.label}"))
    return legend


def _words(grid: Grid) -> tuple[list[str], list[str]]:
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
                    missing.append(f"{', '.join(filter(None, (series.label, x, place)))}: not run")
    return [count_words(counts, relative=bool(grid.figure.relative_to))], missing


def count_words(counts: Counter[int], *, relative: bool = False) -> str:
    """How many repetitions there are and what is drawn of them."""
    if not counts:
        return "No run counts."
    least, most = min(counts), max(counts)
    number = f"n = {least}" if least == most else f"n = {least} … {most}"
    if most == 1:
        return f"{number}: one repetition, so there are no intervals."
    what = "Means of differences in pairs of equal repetitions" if relative else "Means"
    return f"{what} with their 95 % confidence intervals (Student’s t), {number}; no whisker where all are equal."


def _description(grid: Grid, panel: list[Series]) -> str:
    parts = []
    for series in panel:
        values = []
        for x, each in series.samples.items():
            statistic = each.statistic
            values.append(f"{x} {significant(grid.shown(statistic.mean)) if statistic else 'missing'}")
        parts.append(f"{series.label}: {', '.join(values)}")
    return f"{grid.y_label} against {grid.x.label}. {'; '.join(parts)}."


def _title(grid: Grid, series: Series, x: str, statistic: Statistic) -> str:
    interval = statistic.interval
    text = f"{series.label}, {x}: {significant(grid.shown(statistic.mean))}"
    if interval:
        text += f" ({significant(grid.shown(interval[0]))} … {significant(grid.shown(interval[1]))})"
    return f"{text}, n = {statistic.count}"


def _sweep_panel(grid: Grid, panel: list[Series], size: Size) -> str:
    log = grid.figure.log or ""
    places = [grid.x.position[x] for x in grid.x.position]
    log_x = "x" in log and grid.x.numeric and min(places) > 0
    low, high = bounds(places, logarithmic=log_x, zero=False) if grid.x.numeric else (-0.5, len(places) - 0.5)
    up = bounds(grid.numbers(), logarithmic="y" in log, zero=True)
    canvas = Canvas(size, (low, high, log_x), (*up, "y" in log))
    own = [Tick(grid.x.position[x], grid.x.texts[x]) for x in sorted(grid.x.position, key=grid.x.position.__getitem__)]
    canvas.ground(AxisLook(grid.x.label, own if len(own) <= 12 else None), AxisLook(grid.y_label))
    canvas.zero_line()
    for number, series in enumerate(panel):
        canvas.parts.append(f"<g {series.style.attributes}>{_line(grid, series, canvas, number, len(panel))}</g>")
    return canvas.svg(grid.figure.title, _description(grid, panel))


def _line(grid: Grid, series: Series, canvas: Canvas, number: int, of: int) -> str:
    """Lines lie a little beside each other, so that whiskers at one place can be told apart."""
    beside = (number - (of - 1) / 2) * min(3.0, 12 / max(of, 1))
    order = sorted(series.samples, key=grid.x.position.__getitem__)
    path, parts, pen = "", [], "M"
    for x in order:
        at = canvas.x.at(grid.x.position[x]) + beside
        statistic = series.samples[x].statistic
        if statistic is None:
            pen = "M"
            if series.samples[x].runs:
                parts.append(cross(at, canvas.bottom - 7, f"{series.label}, {x}: {series.samples[x].why}"))
            continue
        up = canvas.y.at(grid.shown(statistic.mean))
        path += f"{pen}{at:.1f} {up:.1f}"
        pen = "L"
        if statistic.interval:
            parts.append(canvas.whisker(at, *(grid.shown(edge) for edge in statistic.interval)))
        parts.append(mark(at, up, series.style.shape, _title(grid, series, x, statistic)))
    curve = f'<path d="{path}" class="curve"/>' if "L" in path else ""
    return _printed_marks(grid, series, canvas, beside) + curve + "".join(parts)


def _printed_marks(grid: Grid, series: Series, canvas: Canvas, beside: float) -> str:
    order = sorted(series.printed, key=grid.x.position.__getitem__)
    places = [(canvas.x.at(grid.x.position[x]) + beside, canvas.y.at(series.printed[x]), x) for x in order]
    label = grid.figure.paper.label if grid.figure.paper else ""
    path = "".join(f"{'L' if number else 'M'}{at:.1f} {up:.1f}" for number, (at, up, _) in enumerate(places))
    found = f'<path d="{path}" class="curve printed"/>' if len(places) > 1 else ""
    for at, up, x in places:
        words = f"{label}: {series.label}, {x}: {significant(series.printed[x])}"
        found += mark(at, up, series.style.shape, words, hollow=True, size=5.2)
    return found


def _bar_panel(grid: Grid, panel: list[Series], size: Size) -> str:
    log = "y" in (grid.figure.log or "")
    numbers = grid.numbers()
    low, high = bounds(numbers if log else [*numbers, 0.0], logarithmic=log, zero=True)
    count = len(grid.x.position)
    canvas = Canvas(size, (-0.5, count - 0.5, False), (low, high, log))
    label = grid.x.label
    categories = list(grid.x.position)
    marks = [Tick(float(index), grid.x.texts[x]) for index, x in enumerate(categories)]
    canvas.ground(AxisLook(label, marks), AxisLook(grid.y_label))
    pitch = (canvas.right - canvas.left) / count
    width = min(46.0, 0.8 * pitch / max(len(panel), 1))
    base = canvas.y.at(low if log else 0.0)
    for number, series in enumerate(panel):
        parts = []
        for index, x in enumerate(categories):
            at = canvas.x.at(float(index)) + (number - (len(panel) - 1) / 2) * width
            parts.append(_bar(grid, series, canvas, x, (at, width, base)))
        canvas.parts.append(f"<g {series.style.attributes}>{''.join(parts)}</g>")
    canvas.zero_line()
    return canvas.svg(grid.figure.title, _description(grid, panel))


def _bar(grid: Grid, series: Series, canvas: Canvas, x: str, box: tuple[float, float, float]) -> str:
    """One bar; ``box`` is its middle, its width and where 0 lies, in pixels."""
    at, width, base = box
    each = series.samples[x]
    statistic = each.statistic
    found = ""
    if statistic is None:
        found = cross(at, base - 8, f"{series.label}, {x}: {each.why}") if each.runs else ""
    else:
        up = canvas.y.at(grid.shown(statistic.mean))
        top, height = min(up, base), max(abs(base - up), 1.0)
        words = escape(_title(grid, series, x, statistic))
        wide = max(width - 2, 1)
        found = (
            f'<rect x="{at - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{height:.1f}" class="bar">'
            f"<title>{words}</title></rect>"
        )
        if statistic.interval:
            found += canvas.whisker(at, *(grid.shown(edge) for edge in statistic.interval)).replace(
                'class="whisker"', 'class="whisker over"'
            )
    if x in series.printed:
        words = f"{grid.figure.paper.label if grid.figure.paper else ''}: {series.label}, {x}"
        words += f": {significant(series.printed[x])}"
        found += mark(at, canvas.y.at(series.printed[x]), 3, words, hollow=True, size=4.6)
    return found
