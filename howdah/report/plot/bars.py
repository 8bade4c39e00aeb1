# SPDX-License-Identifier: Apache-2.0
"""A measure in categories side by side: bars from 0, with how far repetitions lie apart."""

from __future__ import annotations

from xml.sax.saxutils import escape

from howdah.number import significant
from howdah.profile.figure import FigureSection
from howdah.report.plot.canvas import Canvas, Drawn, Size
from howdah.report.plot.grid import Grid, PanelSeries, description, drawn_grid, gather, words_of
from howdah.report.plot.sample import AnyExperiment
from howdah.report.plot.scale import Tick
from howdah.report.plot.style import cross, mark


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
