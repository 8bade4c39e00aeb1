# SPDX-License-Identifier: Apache-2.0
"""A measure against a swept field: lines through means, or bars from 0 in categories side by side. Both have how far
repetitions lie apart."""

from __future__ import annotations

from xml.sax.saxutils import escape

from howdah.number import significant
from howdah.profile.figure import FigureSection
from howdah.report.plot.canvas import Canvas, Drawn, Size
from howdah.report.plot.grid import Grid, PanelSeries, description, drawn_grid, gather, words_of
from howdah.report.plot.sample import AnyExperiment
from howdah.report.plot.scale import Tick, bounds
from howdah.report.plot.style import cross, mark


def draw_sweep(figure: FigureSection, experiment: AnyExperiment) -> Drawn:
    """One line a value of ``lines``; whiskers are what ``Grid.spread`` says."""
    return drawn_grid(gather(figure, experiment), _sweep_panel)


def _sweep_panel(grid: Grid, panel: list[PanelSeries], size: Size) -> str:
    log = grid.figure.log or ""
    places = [grid.x.position[x] for x in grid.x.position]
    log_x = "x" in log and grid.x.numeric and min(places) > 0
    low, high = bounds(places, logarithmic=log_x, zero=False) if grid.x.numeric else (-0.5, len(places) - 0.5)
    up = grid.up(logarithmic="y" in log)
    canvas = Canvas(size, (low, high, log_x), (*up, "y" in log), (grid.x.label, grid.y_label))
    own = [Tick(grid.x.position[x], grid.x.texts[x]) for x in sorted(grid.x.position, key=grid.x.position.__getitem__)]
    canvas.ground(own if len(own) <= 12 else None)
    canvas.zero_line()
    for number, series in enumerate(panel):
        canvas.parts.append(f"<g {series.style.attributes}>{_line(grid, series, canvas, number, len(panel))}</g>")
    return canvas.svg(grid.figure.title, description(grid, panel))


def _line(grid: Grid, series: PanelSeries, canvas: Canvas, number: int, of: int) -> str:
    """Lines lie a little beside each other, so that whiskers at one place can be distinguished."""
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
        if spread := grid.spread(statistic):
            parts.append(canvas.whisker(at, *spread))
        parts.append(mark(at, up, series.style.shape, words_of(grid, series, x, statistic)))
    curve = f'<path d="{path}" class="curve"{series.style.dashed}/>' if "L" in path else ""
    return _printed_marks(grid, series, canvas, beside) + curve + "".join(parts)


def _printed_marks(grid: Grid, series: PanelSeries, canvas: Canvas, beside: float) -> str:
    order = sorted(series.printed, key=grid.x.position.__getitem__)
    places = [(canvas.x.at(grid.x.position[x]) + beside, canvas.y.at(series.printed[x]), x) for x in order]
    label = grid.figure.paper.label if grid.figure.paper else ""
    path = "".join(f"{'L' if number else 'M'}{at:.1f} {up:.1f}" for number, (at, up, _) in enumerate(places))
    found = f'<path d="{path}" class="curve printed"/>' if len(places) > 1 else ""
    for at, up, x in places:
        words = f"{label}: {series.label}, {x}: {significant(series.printed[x])}"
        found += mark(at, up, series.style.shape, words, hollow=True, size=5.2)
    return found


def draw_bars(figure: FigureSection, experiment: AnyExperiment) -> Drawn:
    """Bars from 0 in categories."""
    return drawn_grid(gather(figure, experiment), _bar_panel)


def _bar_panel(grid: Grid, panel: list[PanelSeries], size: Size) -> str:
    log = "y" in (grid.figure.log or "")
    low, high = grid.up(logarithmic=log, from_zero=not log)
    count = len(grid.x.position)
    canvas = Canvas(size, (-0.5, count - 0.5, False), (low, high, log), (grid.x.label, grid.y_label))
    categories = list(grid.x.position)
    marks = [Tick(float(index), grid.x.texts[x]) for index, x in enumerate(categories)]
    canvas.ground(marks)
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
    return canvas.svg(grid.figure.title, description(grid, panel))


def _bar(grid: Grid, series: PanelSeries, canvas: Canvas, x: str, box: tuple[float, float, float]) -> str:
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
        words = escape(words_of(grid, series, x, statistic))
        wide = max(width - 2, 1)
        found = (
            f'<rect x="{at - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{height:.1f}" class="bar">'
            f"<title>{words}</title></rect>"
        )
        if spread := grid.spread(statistic):
            found += canvas.whisker(at, *spread).replace('class="whisker"', 'class="whisker over"')
    if x in series.printed:
        words = f"{grid.figure.paper.label if grid.figure.paper else ''}: {series.label}, {x}"
        words += f": {significant(series.printed[x])}"
        found += mark(at, canvas.y.at(series.printed[x]), 3, words, hollow=True, size=4.6)
    return found
