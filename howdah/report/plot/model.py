# SPDX-License-Identifier: Apache-2.0
"""What a figure shows, whoever draws it: lines on axes, limits, caption. A page draws it as SVG (``svg.py``), and
``howdah figure`` by matplotlib (``howdah/report/paper/plotted.py``)."""

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

    ``y`` is NaN where there is no number. ``words`` are those of each point: what it is, or why it has no number.
    ``low`` and ``high`` are ends of whiskers, NaN where repetitions do not differ. ``printed`` are places, numbers that
    a paper prints, and their words. ``title`` is of the whole line, and ``said`` what a screen reader says of it. A
    ``faint`` line is thin and behind the others. ``look`` is of one that is drawn unlike its panel.
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
    said: str = ""
    faint: bool = False
    look: LineLook | None = None


@dataclass(frozen=True)
class PlotAxis:
    """``ticks`` are those of an axis that has its own: swept values, categories."""

    label: str
    ends: tuple[float, float] = (0.0, 1.0)
    logarithmic: bool = False
    ticks: list[Tick] | None = None


@dataclass
class Panel:
    """One plot; ``title`` is empty for the only one of a figure, ``words`` say what is drawn.

    Dots stand around a ratio of 1, in rows that are places along ``across``. In a map each line is a row, and ``y`` has
    what its fields hold. ``limits`` are names and values of reference lines, the most first. ``instants`` are places on
    ``across`` with the style of the line through them.
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
        """For those who cannot see it."""
        return f"{self.words}. {'; '.join(line.said for line in self.lines) or 'nothing'}."


@dataclass(frozen=True)
class LegendItem:
    """``sample`` is a small SVG."""

    sample: str
    label: str


@dataclass
class Picture:
    """A figure: panels (or ``html`` instead), legend of the page, sentences of the caption, what is missing. ``paper``
    names where printed numbers are from."""

    title: str = ""
    panels: list[Panel] = field(default_factory=list)
    legend: list[LegendItem] = field(default_factory=list)
    caption: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    paper: str = ""
    html: str = ""

    def rows(self) -> list[list[str]]:
        """What is drawn, below a row of headings."""
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
