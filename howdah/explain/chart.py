# SPDX-License-Identifier: Apache-2.0
"""The frame that the pictures of recorded flows share: a value over time, with its axes, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from howdah.explain.delay import Reals
from howdah.ingest.source import Integers
from howdah.number import significant
from howdah.report.drawing import line, svg, text

WIDTHS = {"wide": 900, "narrow": 400}
_LEFT, _RIGHT, _BOTTOM, _TOP = 70, 10, 40, 12
_MOST_POINTS = 2500
_TICKS = 6


@dataclass(frozen=True)
class Chart:
    """``end_s`` is where its time ends, ``most`` where its values do; ``css`` is one of :data:`WIDTHS`."""

    end_s: float
    most: float
    height: int
    css: str

    @property
    def width(self) -> int:
        return WIDTHS[self.css]

    def x(self, time_s: Reals | float) -> Reals:
        share = np.asarray(time_s, np.float64) / max(self.end_s, 1e-9)
        return np.asarray(_LEFT + share * (self.width - _LEFT - _RIGHT))

    def y(self, value: Reals | Integers | float) -> Reals:
        share = np.asarray(value, np.float64) / max(self.most, 1e-9)
        return np.asarray(self.height - _BOTTOM - share * (self.height - _BOTTOM - _TOP))

    def drawn(self, label: str, parts: list[str], since: str, written: Callable[[float], str] | None = None) -> str:
        """The whole picture: axes, then ``parts``. ``since`` says when time begins, ``written`` how a value is."""
        axes = self._axes(since, written or (lambda value: significant(value)))
        return svg(self.width, self.height, label, [*axes, *parts], self.css)

    def _axes(self, since: str, written: Callable[[float], str]) -> Iterator[str]:
        foot, right = self.height - _BOTTOM, self.width - _RIGHT
        step = tick_step(self.end_s)
        for number in range(int(self.end_s / step) + 1):
            at = float(self.x(number * step))
            yield line(at, foot, at, foot + 4, "tick")
            yield text(at, foot + 18, significant(number * step), "note")
        yield text(right, self.height - 4, f"seconds since {since}", "note", "end")
        step = tick_step(self.most)
        for number in range(int(self.most / step) + 1):
            at = float(self.y(number * step))
            yield line(_LEFT, at, right, at, "rail")
            yield text(_LEFT - 6, at + 4, written(number * step) if number else "0", "note", "end")

    def upright(self, time_s: float, css: str) -> str:
        """A line over the whole height."""
        at = float(self.x(time_s))
        return line(at, _TOP, at, self.height - _BOTTOM, css)

    def points(self, time_s: Reals, value: Reals | Integers, css: str) -> str:
        pairs = zip(self.x(time_s).tolist(), self.y(value).tolist(), strict=True)
        return f'<path d="{"".join(f"M{x - 0.9:.1f} {y - 0.9:.1f}h1.8v1.8h-1.8z" for x, y in pairs)}" class="{css}"/>'

    def crosses(self, time_s: Reals, value: Reals | Integers, css: str) -> str:
        pairs = zip(self.x(time_s).tolist(), self.y(value).tolist(), strict=True)
        shapes = "".join(f"M{x - 3:.1f} {y - 3:.1f}l6 6M{x + 3:.1f} {y - 3:.1f}l-6 6" for x, y in pairs)
        return f'<path d="{shapes}" class="{css}"/>'


def some(rows: Integers) -> Integers:
    """As many of the rows as a picture shows."""
    return rows[:: max(math.ceil(rows.size / _MOST_POINTS), 1)]


def tick_step(span: float) -> float:
    """Between ticks: 1, 2 or 5 of a power of ten."""
    raw = max(span, 1e-9) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= raw)
