# SPDX-License-Identifier: Apache-2.0
"""The band of a curve: where the curves of all repetitions run, from the least to the largest.

Reports and paper figures draw one repetition as a line, and this behind it. The band is the envelope of every
repetition, whatever their number, so the line never leaves it. An interval of the median would have to stand beside a
median, which no repetition is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.record.sample import Float64

_SAME = 1e-9  # of the largest value: closer than that, repetitions are one line


@dataclass(frozen=True)
class Band:
    """``low`` and ``high`` hold between each two of ``edges``, one fewer; NaN where fewer than two curves run.

    ``count`` curves were taken together.
    """

    edges: Float64
    low: Float64
    high: Float64
    count: int


class Envelope:
    """Takes the curves of repetitions one after another. ``edges`` divide the axis into cells, in rising order."""

    def __init__(self, edges: Float64) -> None:
        self._edges = edges
        self._low = np.full(len(edges) - 1, np.inf)
        self._high = np.full(len(edges) - 1, -np.inf)
        self._curves = np.zeros(len(edges) - 1, dtype=np.int64)
        self._count = 0
        self._first: tuple[Float64, Float64] | None = None
        self._differ = False

    def add(self, x: Float64, y: Float64) -> None:
        """A curve with straight lines between its points, ``x`` in rising order; points whose y is NaN are no points.

        A cell's extremes are those of the curve's points in it and of the curve at both of its edges.
        """
        known = ~np.isnan(y)
        x, y = x[known], y[known]
        if not len(x):
            return
        self._count += 1
        at_edges = np.interp(self._edges, x, y, left=np.nan, right=np.nan)
        low = np.fmin(at_edges[:-1], at_edges[1:])
        high = np.fmax(at_edges[:-1], at_edges[1:])
        cells = np.searchsorted(self._edges, x, side="right") - 1
        inside = (cells >= 0) & (cells < len(low))
        np.fmin.at(low, cells[inside], y[inside])
        np.fmax.at(high, cells[inside], y[inside])
        self._first = self._first or (low, high)
        self._differ = self._differ or not all(map(_alike, self._first, (low, high)))
        runs_here = ~np.isnan(low)
        self._curves += runs_here
        self._low[runs_here] = np.minimum(self._low, low)[runs_here]
        self._high[runs_here] = np.maximum(self._high, high)[runs_here]

    def band(self) -> Band | None:
        """None with fewer than two curves, and where all of them are one line."""
        several = self._curves > 1
        if not self._differ or not several.any():
            return None
        low, high = np.where(several, self._low, np.nan), np.where(several, self._high, np.nan)
        return Band(self._edges, low, high, self._count)


def _alike(first: Float64, second: Float64) -> bool:
    largest = float(np.nanmax(np.abs(first), initial=0.0))
    return bool(np.allclose(first, second, rtol=0.0, atol=_SAME * largest, equal_nan=True))
