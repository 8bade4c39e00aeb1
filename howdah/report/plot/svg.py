# SPDX-License-Identifier: Apache-2.0
"""A panel of a figure as inline SVG without scripts; reports/css/chart.css has its colours."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

import numpy as np

from howdah.report.codec import extremes
from howdah.report.drawing import line as rule
from howdah.report.drawing import text
from howdah.report.plot.canvas import NARROW, PANEL, WIDE, Canvas, Size
from howdah.report.plot.limit import Frame, placed
from howdah.report.plot.model import LineLook, Panel, Picture, PlotLine
from howdah.report.plot.style import cross, mark

_MOST_NUMBERS = 9_000  # points of all curves of a figure together, about 11 characters each, in the larger size
_MOST_OF_A_CURVE = 700
_FEWEST_OF_A_CURVE = 60
_MOST_STEPS = 500
_MOST_RECORDS = 2500
_OF_A_BAR = 3  # the shape of a printed number


def panels_svg(picture: Picture) -> list[tuple[str, str]]:
    """The title and SVG of each panel. A single panel is drawn twice, wide and narrow (for a phone)."""
    count = sum(len(panel.lines) for panel in picture.panels)
    most = min(_MOST_OF_A_CURVE, max(_FEWEST_OF_A_CURVE, _MOST_NUMBERS // max(count, 1)))
    sizes = (PANEL,) if len(picture.panels) > 1 else (WIDE, NARROW)
    return [
        (panel.title, "".join(panel_svg(panel, size, picture.title, most) for size in sizes))
        for panel in picture.panels
    ]


def panel_svg(panel: Panel, size: Size, title: str, most: int = _MOST_OF_A_CURVE) -> str:
    """Draw one panel; ``most`` is the number of points of a curve over time in the larger sizes."""
    canvas = Canvas(size, panel.across, panel.up)
    canvas.ground()
    if size == NARROW:
        most = max(_FEWEST_OF_A_CURVE, most // 2)
    if panel.look == "line":
        canvas.zero_line()
    curves = [(np.array(line.x), np.array(line.y)) for line in panel.lines] if panel.limits else []
    for _name, value in panel.limits:
        canvas.parts.append(rule(canvas.left, canvas.y.at(value), canvas.right, canvas.y.at(value), "limit"))
    lines = sorted(enumerate(panel.lines), key=lambda each: each[1].faint, reverse=True)
    for number, line in lines:
        canvas.parts.append(f"<g {line.style.attributes}>{_drawn(canvas, panel, line, number, most)}</g>")
    for x, style in panel.instants:
        path = f'<path d="M{canvas.x.at(x):.1f} {canvas.top:g}V{canvas.bottom:g}" class="instant"/>'
        canvas.parts.append(f"<g {style.attributes}>{path}</g>")
    for words, right, base in placed(Frame(canvas.x, canvas.y), panel.limits, curves):
        canvas.parts.append(text(right, base, words, "note over-curves", "end"))
    if panel.look == "bars":
        canvas.zero_line()
    return canvas.svg(title, panel.description)


def _drawn(canvas: Canvas, panel: Panel, line: PlotLine, number: int, most: int) -> str:
    if line.look is not None:
        return _spread_out(canvas, line, line.look)
    match panel.look:
        case "bars":
            return _bars(canvas, panel, line, number)
        case "steps":
            return _curve(line, _steps(canvas, line))
        case "time":
            return _curve(line, _course(canvas, line, most))
    return _means(canvas, panel, line, number)


def _curve(line: PlotLine, path: str) -> str:
    end = f"><title>{escape(line.title)}</title></path>" if line.title else "/>"
    return f'<path d="{path}" class="curve{" faint" if line.faint else ""}"{line.style.dashed}{end}'


def _course(canvas: Canvas, line: PlotLine, most: int) -> str:
    x, y = np.array(line.x), np.array(line.y)
    hidden = np.isnan(y) | ((y <= 0) & canvas.y.logarithmic) | ((x <= 0) & canvas.x.logarithmic)
    path, pen = "", "M"
    for at in extremes(y, most) if len(y) > most else range(len(y)):
        if hidden[at]:
            pen = "M"
            continue
        path += f"{pen}{canvas.x.at(float(x[at])):.1f} {canvas.y.at(float(y[at])):.1f}"
        pen = "L"
    return path


# How far above and left of its place a record begins, and how it is drawn from there.
_SHAPES = {"points": (0.9, "h1.8v1.8h-1.8z"), "crosses": (3.0, "l6 6m0 -6l-6 6"), "strokes": (0.0, "v3")}


def _spread_out(canvas: Canvas, line: PlotLine, look: LineLook) -> str:
    """Draw records one by one, an even selection if there are more than a reader can distinguish."""
    every = max(math.ceil(len(line.x) / _MOST_RECORDS), 1)
    places = [
        (canvas.x.at(x), canvas.y.at(y))
        for x, y in zip(line.x[::every], line.y[::every], strict=True)
        if not math.isnan(y)
    ]
    if look != "stairs":
        off, shape = _SHAPES[look]
        return f'<path d="{"".join(f"M{x - off:.1f} {y - off:.1f}{shape}" for x, y in places)}" class="{look}"/>'
    (x, y), *others = places
    return _curve(line, f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in others))


def _steps(canvas: Canvas, line: PlotLine) -> str:
    """A step path from 0 over the sorted values and on to the edge."""
    count = len(line.x)
    every = max(1, count // _MOST_STEPS)
    path = f"M{canvas.x.at(line.x[0]):.1f} {canvas.bottom:.1f}"
    for number in [*range(every - 1, count - 1, every), count - 1]:
        path += f"H{canvas.x.at(line.x[number]):.1f}V{canvas.y.at(line.y[number]):.1f}"
    return path + f"H{canvas.right:g}"


def _means(canvas: Canvas, panel: Panel, line: PlotLine, number: int) -> str:
    """Draw means. Lines are offset a little from each other, so that whiskers at one place can be distinguished."""
    of = len(panel.lines)
    beside = (number - (of - 1) / 2) * min(3.0, 12 / max(of, 1))
    path, parts, pen = "", [], "M"
    for x, y, words, low, high in zip(line.x, line.y, line.words, line.low, line.high, strict=True):
        at = canvas.x.at(x) + beside
        if math.isnan(y):
            pen = "M"
            if words:
                parts.append(cross(at, canvas.bottom - 7, words))
            continue
        path += f"{pen}{at:.1f} {canvas.y.at(y):.1f}"
        pen = "L"
        if not math.isnan(low):
            parts.append(canvas.whisker(at, low, high))
        parts.append(mark(at, canvas.y.at(y), line.style.shape, words))
    curve = _curve(line, path) if "L" in path else ""
    return _printed(canvas, line, beside) + curve + "".join(parts)


def _printed(canvas: Canvas, line: PlotLine, beside: float) -> str:
    places = [(canvas.x.at(x) + beside, canvas.y.at(y), words) for x, y, words in line.printed]
    path = "".join(f"{'L' if number else 'M'}{at:.1f} {up:.1f}" for number, (at, up, _) in enumerate(places))
    found = f'<path d="{path}" class="curve printed"/>' if len(places) > 1 else ""
    return found + "".join(mark(at, up, line.style.shape, words, hollow=True, size=5.2) for at, up, words in places)


def _bars(canvas: Canvas, panel: Panel, line: PlotLine, number: int) -> str:
    pitch = (canvas.right - canvas.left) / len(panel.across.ticks or line.x)
    width = min(46.0, 0.8 * pitch / max(len(panel.lines), 1))
    base = canvas.y.at(canvas.y.least if canvas.y.logarithmic else 0.0)
    printed = {x: (y, words) for x, y, words in line.printed}
    found = ""
    for x, y, words, low, high in zip(line.x, line.y, line.words, line.low, line.high, strict=True):
        at = canvas.x.at(x) + (number - (len(panel.lines) - 1) / 2) * width
        if math.isnan(y):
            found += cross(at, base - 8, words) if words else ""
        else:
            up = canvas.y.at(y)
            top, height = min(up, base), max(abs(base - up), 1.0)
            wide = max(width - 2, 1)
            found += (
                f'<rect x="{at - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{height:.1f}" class="bar">'
                f"<title>{escape(words)}</title></rect>"
            )
            if not math.isnan(low):
                found += canvas.whisker(at, low, high).replace('class="whisker"', 'class="whisker over"')
        if x in printed:
            of, its = printed[x]
            found += mark(at, canvas.y.at(of), _OF_A_BAR, its, hollow=True, size=4.6)
    return found
