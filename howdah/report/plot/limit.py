# SPDX-License-Identifier: Apache-2.0
"""Placement of the names of limits in a figure over time, clear of the curves; used for pages and print."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from howdah.number import significant
from howdah.report.plot.scale import Scale

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]  # seconds, and values of the vertical axis
_Box = tuple[float, float, float, float]  # left, right, top and bottom pixel
_PLACES, _COLUMNS = 9, 24  # of a name across the figure; where curves are looked at behind it
_LETTER, _ABOVE, _BELOW = 6.8, 11.0, 3.0  # pixels of a letter, and of a name above and below its base line
_ROW = 6.0  # pixels from one base line that is tried to the next


@dataclass(frozen=True)
class Frame:
    """The drawing area: its scales, whose pixels go right and up. Marks extend ``marks`` pixels beyond the curves."""

    x: Scale
    y: Scale
    marks: float = 0.0

    @property
    def left(self) -> float:
        return self.x.first

    @property
    def right(self) -> float:
        return self.x.last

    @property
    def top(self) -> float:
        return self.y.last

    @property
    def bottom(self) -> float:
        return self.y.first


def placed(
    frame: Frame, limits: list[tuple[str, float]], curves: list[Curve], *, numbered: bool = False
) -> list[tuple[str, float, float]]:
    """Return each limit's name with the pixel of its right end and of its base line, clear of the curves if there is
    room.

    A name without room at its line goes to the nearest free place and gets its number; ``numbered`` names always have
    it.
    """
    found: list[tuple[str, float, float]] = []
    levels = [frame.y.at(value) for _, value in limits]
    for (name, value), at in zip(limits, levels, strict=True):
        others = [level for level in levels if level != at]
        taken = [_box(*each) for each in found]
        full = f"{name} {significant(value)}"
        found.append(_placed(frame, (full if numbered else name, full), at, others, curves, taken))
    return found


def _placed(
    frame: Frame, words: tuple[str, str], at: float, others: list[float], curves: list[Curve], taken: list[_Box]
) -> tuple[str, float, float]:
    """Words, right end and base line of a name: the first words above or below the limit at ``at``, as far right as
    there is room; else the second words at the nearest free place; else the first words where they cover least."""
    best, least = (words[0], frame.right - 3, at - 4), math.inf
    for right in _ends(frame, words[0]):
        for base in (at - 4, at + 13):
            covered = _covers(frame, _box(words[0], right, base), others, curves, taken)
            if covered < least:
                best, least = (words[0], right, base), covered
    if least == 0:
        return best
    rows = np.arange(frame.top + _ABOVE, frame.bottom - _BELOW, _ROW)
    for base in sorted(rows.tolist(), key=lambda row: abs(row - at)):
        for right in _ends(frame, words[1]):
            if not _covers(frame, _box(words[1], right, base), [at, *others], curves, taken):
                return words[1], right, base
    return best


def _ends(frame: Frame, words: str) -> Iterator[float]:
    """Candidate right ends for words, from right to left."""
    room = frame.right - frame.left - _LETTER * len(words) - 6
    return (frame.right - 3 - step * room / (_PLACES - 1) for step in range(_PLACES))


def _box(words: str, right: float, base: float) -> _Box:
    return right - _LETTER * len(words), right, base - _ABOVE, base + _BELOW


def _covers(frame: Frame, box: _Box, levels: list[float], curves: list[Curve], taken: list[_Box]) -> float:
    """How much a name in the box would cover of curves, other limits at ``levels`` and other names, in columns of the
    box; infinite outside the figure."""
    left, right, top, bottom = box
    if top < frame.top or bottom > frame.bottom:
        return math.inf
    found = _COLUMNS * sum(top - 1 < level < bottom + 1 for level in levels)
    found += _COLUMNS * sum(left < each[1] and each[0] < right and top < each[3] and each[2] < bottom for each in taken)
    beside = 4 + frame.marks
    times = np.array([frame.x.value(pixel) for pixel in np.linspace(left - beside, right + beside, _COLUMNS)])
    high, low = frame.y.value(top - 2 - frame.marks), frame.y.value(bottom + 1 + frame.marks)
    for time_s, value in curves:
        values = np.interp(times, time_s, value, math.nan, math.nan)
        below, above = values < low, values > high
        jumps = (below[1:] & above[:-1]) | (above[1:] & below[:-1])
        found += int((~(np.isnan(values) | below | above)).sum() + jumps.sum())
    return found
