# SPDX-License-Identifier: Apache-2.0
"""The background of a plot as inline SVG: axes, ticks and labels; also for rows of marks over one axis."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from howdah.report.drawing import line, shortened, svg, text
from howdah.report.plot.model import PlotAxis
from howdah.report.plot.scale import LETTER_PIXELS, Scale, Tick, label_at, thinned, ticks

_TITLE_LINE = 14.0  # pixels from one line of an axis' title to the next
_EDGE = 4.0


@dataclass(frozen=True)
class Size:
    """The size of a plot in pixels, margins included; ``css`` is ``wide``, ``narrow`` or, for panels, empty."""

    width: int
    height: int
    css: str = ""

    @property
    def ticks_across(self) -> int:
        return max(3, self.width // 95)

    @property
    def ticks_up(self) -> int:
        return max(3, self.height // 62)


def ticks_below(marks: list[Tick], scale: Scale, width: float, bottom: float) -> Iterator[str]:
    """The ticks of a horizontal axis, with the texts that fit a drawing of this width."""
    for tick in thinned(marks, scale, width):
        at = scale.at(tick.value)
        yield line(at, bottom, at, bottom + (5 if tick.text else 3), "tick")
        if tick.text:
            yield text(label_at(tick, scale, width), bottom + 18, tick.text, "note")


WIDE = Size(900, 340, "wide")
NARROW = Size(360, 270, "narrow")
PANEL = Size(430, 270)


class Canvas:
    """A plot under construction: scales in pixels, and SVG elements in painting order."""

    def __init__(self, size: Size, across: PlotAxis, up: PlotAxis) -> None:
        """Lay out the plot. An axis title that is too long for one line takes several and makes the plot lower."""
        self.size = size
        self._below, self._above = (_lines(axis.label, size.width - 2 * _EDGE) for axis in (across, up))
        self.right, self.top = size.width - 12.0, 28.0 + _TITLE_LINE * (len(self._above) - 1)
        self.bottom = size.height - 46.0 - _TITLE_LINE * (len(self._below) - 1)
        self.y = Scale(*up.ends, self.bottom, self.top, up.logarithmic)
        self._up_ticks = ticks(self.y, size.ticks_up) if up.ticks is None else up.ticks
        longest = max((len(tick.text) for tick in self._up_ticks), default=0)
        self.left = max(34.0, 14 + 6.8 * longest)
        self.x = Scale(*across.ends, self.left, self.right, across.logarithmic)
        self._across_ticks = across.ticks or ticks(self.x, size.ticks_across)
        self.parts: list[str] = []

    def ground(self) -> None:
        """Draw grid, ticks and titles."""
        for tick in self._up_ticks:
            at = self.y.at(tick.value)
            if tick.strong:
                self.parts.append(line(self.left, at, self.right, at, "rail"))
                self.parts.append(text(self.left - 7, at + 4, tick.text, "note", "end"))
            else:
                self.parts.append(line(self.left - 3, at, self.left, at, "tick"))
        self.parts += ticks_below(self._across_ticks, self.x, self.size.width, self.bottom)
        self.parts.append(line(self.left, self.bottom, self.right, self.bottom, "axis"))
        self._titles()

    def _titles(self) -> None:
        # In the middle of the axis, or of the drawing where a line is too long for that.
        middle = (self.left + self.right) / 2
        if max(map(len, self._below)) * LETTER_PIXELS > 2 * (self.size.width - middle - _EDGE):
            middle = self.size.width / 2
        last = len(self._below) - 1
        for number, part in enumerate(self._below):
            self.parts.append(text(middle, self.size.height - 8 - _TITLE_LINE * (last - number), part, "label"))
        for number, part in enumerate(self._above):
            self.parts.append(text(_EDGE, 12 + _TITLE_LINE * number, part, "label", "start"))

    def zero_line(self) -> None:
        """Draw a line at 0 if the plot extends to both sides of it."""
        if not self.y.logarithmic and self.y.least < 0 < self.y.most:
            at = self.y.at(0)
            self.parts.append(line(self.left, at, self.right, at, "axis"))

    def whisker(self, x: float, low: float, high: float) -> str:
        """The interval of a mean; ``x`` is in pixels. An end beyond the plot has no cap."""
        top, bottom = self.y.at(high), self.y.at(low)
        upper = f"M{x - 4:.1f} {top:.1f}h8" if high <= self.y.most else ""
        lower = f"M{x - 4:.1f} {bottom:.1f}h8" if low >= self.y.least else ""
        path = f"{upper}{lower}M{x:.1f} {top:.1f}V{bottom:.1f}"
        return f'<path d="{path}" class="whisker"/>'

    def svg(self, title: str, description: str) -> str:
        """The plot as an SVG element, with its texts for screen readers."""
        size = self.size
        return (
            f'<svg class="drawing chart {size.css}" viewBox="0 0 {size.width} {size.height}" role="img" '
            f'aria-label="{escape(title, {chr(34): "&quot;"})}"><title>{escape(title)}</title>'
            f"<desc>{escape(description)}</desc>{''.join(self.parts)}</svg>"
        )


def _lines(title: str, pixels: float) -> list[str]:
    return textwrap.wrap(title, int(pixels / LETTER_PIXELS)) or [""]


LONGEST_LABEL = 52  # of a row, in letters
UNCOUNTED = " (this run does not count)"  # after the words of its marks


class RowCanvas:
    """Rows of marks over one axis, under construction: ``x`` is in pixels, ``parts`` are in painting order.

    ``left`` is the room for the names of rows in pixels; in the narrow form they stand above their rows.
    """

    def __init__(self, rows: int, axis: PlotAxis, left: float, *, narrow: bool, pitch: float, top: float = 4) -> None:
        self.axis, self.narrow, self.pitch, self.top = axis, narrow, pitch, top
        self.bottom = top + pitch * rows
        self.x = Scale(*axis.ends, *((10.0, 324.0) if narrow else (left, 1200.0)), axis.logarithmic)
        self.parts: list[str] = []

    def middle(self, row: int) -> float:
        return self.top + self.pitch * (row + 0.5) + (9 if self.narrow else 0)

    def ticks(self) -> None:
        """Draw the ticks, and the title of the axis if it has one."""
        self.parts += ticks_below(ticks(self.x, 4 if self.narrow else 10), self.x, self.x.last + 14, self.bottom)
        if self.axis.label:
            self.parts.append(text(self.x.last, self.bottom + 33, self.axis.label, "note", "end"))

    def row(self, number: int, name: str, without: str = "", ground: str = "") -> None:
        """Draw the line of a row. ``without`` is the text of a row without marks; ``ground`` is the CSS class of text
        over a tint."""
        middle = self.middle(number)
        if self.narrow:
            label = f"{name}: {without}" if without else name
            self.parts.append(text(self.x.first, middle - 15, label, f"name{ground}", "start"))
        else:
            self.parts.append(text(self.x.first - 10, middle + 4.5, shortened(name, LONGEST_LABEL), "name", "end"))
        self.parts.append(line(self.x.first, middle, self.x.last, middle, "rail"))
        if without and not self.narrow:
            self.parts.append(text(self.x.first + 6, middle - 4, without, f"note{ground}", "start"))

    def mark(self, row: int, value: float, css: str, words: str, off: float = 0.0) -> None:
        """Draw a mark ``off`` pixels below the line of its row."""
        self.parts.append(
            f'<circle cx="{self.x.at(value):.1f}" cy="{self.middle(row) + off:.1f}" r="4.5" class="mark {css}">'
            f"<title>{escape(words)}</title></circle>"
        )

    def svg(self, title: str) -> str:
        """The rows as an SVG element."""
        height = self.bottom + (38 if self.axis.label else 22)
        return svg(340 if self.narrow else 1232, height, title, self.parts, "narrow" if self.narrow else "wide")
