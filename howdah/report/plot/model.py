# SPDX-License-Identifier: Apache-2.0
"""The contents of a figure, independent of who draws it: lines on axes, limits, caption. Pages draw it as SVG
(``svg.py``), ``howdah figure`` with matplotlib (``howdah/report/paper/panels.py``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from howdah.report.plot.scale import Tick
from howdah.report.plot.style import Style

Look = Literal["line", "time", "steps", "bars", "marks", "dots", "map"]
LineLook = Literal["stairs", "points", "crosses", "strokes"]


@dataclass
class PlotLine:
    """One line, or the bars or marks of one colour.

    ``y`` is NaN where there is no number. ``words`` describe each point, or say why it has no number. ``low`` and
    ``high`` are the ends of whiskers, NaN if repetitions do not differ. ``printed`` are (x, y, words) of numbers
    printed in a paper. ``title`` is the tooltip of the line, and ``said`` its text for screen readers. A ``faint`` line
    is thin and behind the others. ``look`` overrides the look of the panel.
    """

    label: str
    style: Style
    x: list[float]
    y: list[float]
    words: list[str] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    printed: list[tuple[float, float, str]] = field(default_factory=list)
    title: str = ""
    spoken: str = ""
    faint: bool = False
    look: LineLook | None = None


@dataclass(frozen=True)
class PlotAxis:
    """An axis; ``ticks`` are set for swept values and categories, else chosen when drawing."""

    label: str
    ends: tuple[float, float] = (0.0, 1.0)
    logarithmic: bool = False
    ticks: list[Tick] | None = None


@dataclass
class Panel:
    """One plot; ``title`` is empty for a figure's only panel, ``words`` say what is drawn.

    Dots stand around a ratio of 1, in rows that are places along ``across``. In a map each line is a row, and ``y`` has
    the values of its fields. ``limits`` are names and values of reference lines, the largest first. ``instants`` are
    places on ``across``, each with the style of the vertical line there.
    """

    title: str
    across: PlotAxis
    up: PlotAxis
    lines: list[PlotLine]
    look: Look = "line"
    limits: list[tuple[str, float]] = field(default_factory=list)
    words: str = ""
    instants: list[tuple[float, Style]] = field(default_factory=list)

    @property
    def description(self) -> str:
        """The text for screen readers."""
        return f"{self.words}. {'; '.join(line.spoken for line in self.lines) or 'nothing'}."


@dataclass(frozen=True)
class LegendItem:
    """A legend entry; ``sample`` is a small SVG."""

    sample: str
    label: str


@dataclass
class Picture:
    """A figure: panels (or ``html`` instead), the page's legend, sentences of the caption, and what is missing.
    ``paper`` names the source of printed numbers."""

    title: str = ""
    panels: list[Panel] = field(default_factory=list)
    legend: list[LegendItem] = field(default_factory=list)
    caption: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    paper: str = ""
    html: str = ""

    def rows(self) -> list[list[str]]:
        """The drawn numbers as rows, below a row of headings."""
        found = [["panel", "line", "x", "y", "low", "high", "x_name", "y_name"]]
        for panel in self.panels:
            names = {tick.value: tick.text for tick in panel.across.ticks or ()}
            axes = [panel.across.label, panel.up.label]
            for line in panel.lines:
                for number, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
                    ends = [side[number] if number < len(side) else math.nan for side in (line.low, line.high)]
                    if not math.isnan(y):
                        numbers = [repr(y), *("" if math.isnan(end) else repr(end) for end in ends)]
                        found.append([panel.title, line.label, names.get(x, repr(x)), *numbers, *axes])
                for x, y, _words in line.printed:
                    label = f"{line.label} ({self.paper})"
                    found.append([panel.title, label, names.get(x, repr(x)), repr(y), "", "", *axes])
        return found
