# SPDX-License-Identifier: Apache-2.0
"""What a path can hold, as lines of a time figure with their names beside the curves."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from howdah.number import significant
from howdah.report.drawing import line, text
from howdah.report.plot.canvas import Canvas

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]  # seconds, and values of the vertical axis
_Box = tuple[float, float, float, float]  # left, right, top and bottom pixel
_PLACES, _COLUMNS = 9, 24  # of a name across the figure; where curves are looked at behind it
_LETTER, _ABOVE, _BELOW = 6.8, 11.0, 3.0  # pixels of a letter, and of a name above and below its base line
_ROW = 6.0  # pixels from one base line that is tried to the next


def limit_lines(canvas: Canvas, limits: list[tuple[str, float]], curves: list[Curve]) -> tuple[list[str], list[str]]:
    """The lines, which curves may cover, and their names, which stand on no curve where there is room for them.

    A name that has no room at its line stands at the nearest free place, with its number.
    """
    lines, names = [], []
    levels = [canvas.y.at(value) for _, value in limits]
    taken: list[_Box] = []
    for (name, value), at in zip(limits, levels, strict=True):
        lines.append(line(canvas.left, at, canvas.right, at, "limit"))
        others = [level for level in levels if level != at]
        words, right, base = _placed(canvas, (name, f"{name} {significant(value)}"), at, others, curves, taken)
        names.append(text(right, base, words, "note over-curves", "end"))
        taken.append(_box(words, right, base))
    return lines, names


def _placed(
    canvas: Canvas, words: tuple[str, str], at: float, others: list[float], curves: list[Curve], taken: list[_Box]
) -> tuple[str, float, float]:
    """Words, right end and base line of a name: without its number above or below the limit at ``at``, as far right as
    there is room; else with it at the nearest free place; else where it covers least of the curves."""
    best, least = (words[0], canvas.right - 3, at - 4), math.inf
    for right in _ends(canvas, words[0]):
        for base in (at - 4, at + 13):
            covered = _covers(canvas, _box(words[0], right, base), others, curves, taken)
            if covered < least:
                best, least = (words[0], right, base), covered
    if least == 0:
        return best
    rows = np.arange(canvas.top + _ABOVE, canvas.bottom - _BELOW, _ROW)
    for base in sorted(rows.tolist(), key=lambda row: abs(row - at)):
        for right in _ends(canvas, words[1]):
            if not _covers(canvas, _box(words[1], right, base), [at, *others], curves, taken):
                return words[1], right, base
    return best


def _ends(canvas: Canvas, words: str) -> Iterator[float]:
    """Where words may end, from the right to the left."""
    room = canvas.right - canvas.left - _LETTER * len(words) - 6
    return (canvas.right - 3 - step * room / (_PLACES - 1) for step in range(_PLACES))


def _box(words: str, right: float, base: float) -> _Box:
    return right - _LETTER * len(words), right, base - _ABOVE, base + _BELOW


def _covers(canvas: Canvas, box: _Box, levels: list[float], curves: list[Curve], taken: list[_Box]) -> float:
    """How much a name in the box would cover of curves, other limits at ``levels`` and other names, in columns of the
    box; without bound beyond the figure."""
    left, right, top, bottom = box
    if top < canvas.top or bottom > canvas.bottom:
        return math.inf
    found = _COLUMNS * sum(top - 1 < level < bottom + 1 for level in levels)
    found += _COLUMNS * sum(left < each[1] and each[0] < right and top < each[3] and each[2] < bottom for each in taken)
    times = np.array([canvas.x.value(pixel) for pixel in np.linspace(left - 4, right + 4, _COLUMNS)])
    high, low = canvas.y.value(top - 2), canvas.y.value(bottom + 1)
    for time_s, value in curves:
        values = np.interp(times, time_s, value, math.nan, math.nan)
        below, above = values < low, values > high
        jumps = (below[1:] & above[:-1]) | (above[1:] & below[:-1])
        found += int((~(np.isnan(values) | below | above)).sum() + jumps.sum())
    return found
