# SPDX-License-Identifier: Apache-2.0
"""The band of a curve: the range of the curves of all repetitions, from least to greatest.

Reports and paper figures draw one repetition as a line and this band behind it. The band is the envelope of all
repetitions, so the line never leaves it. An interval of the median would need the median as its line, and no single
repetition is the median.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from howdah.plan.plan import Plan
from howdah.record.result import Run
from howdah.record.sample import Float64, shown_flows
from howdah.report.axis import RunAxis
from howdah.report.codec import EncodedColumn, encode, scale_of
from howdah.report.source import Curves

_SAME = 1e-9  # of the largest value: closer than that, repetitions are one line


@dataclass(frozen=True)
class Band:
    """The envelope of ``count`` curves. ``low`` and ``high`` hold between neighbouring ``edges``, so they are one
    shorter; NaN where fewer than two curves have values.
    """

    edges: Float64
    low: Float64
    high: Float64
    count: int


class Envelope:
    """Accumulates the curves of repetitions. ``edges`` divide the axis into cells, in rising order."""

    def __init__(self, edges: Float64) -> None:
        self._edges = edges
        self._low = np.full(len(edges) - 1, np.inf)
        self._high = np.full(len(edges) - 1, -np.inf)
        self._curves = np.zeros(len(edges) - 1, dtype=np.int64)
        self._count = 0
        self._first: tuple[Float64, Float64] | None = None
        self._differ = False

    def add(self, x: Float64, y: Float64) -> None:
        """Add a curve with straight lines between its points, ``x`` in rising order; points whose y is NaN are ignored.

        A cell's extremes are those of the points in it and of the interpolated curve at its two edges.
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
        """The band; None if there are fewer than two curves or all of them coincide."""
        several = self._curves > 1
        if not self._differ or not several.any():
            return None
        low, high = np.where(several, self._low, np.nan), np.where(several, self._high, np.nan)
        return Band(self._edges, low, high, self._count)


def _alike(first: Float64, second: Float64) -> bool:
    largest = float(np.nanmax(np.abs(first), initial=0.0))
    return bool(np.allclose(first, second, rtol=0.0, atol=_SAME * largest, equal_nan=True))


_VALUES = 200_000  # coded values that the bands of a page may have together
_MOST_CELLS, _FEWEST_CELLS = 1500, 100


@dataclass(frozen=True)
class _Key:
    """What a band belongs to: a value of each axis, a series, and a flow ("" for a series of the whole run)."""

    at: tuple[int, ...]
    series: str
    flow: str


@dataclass(frozen=True)
class CodedBand:
    """One band: the curve it belongs to, its number of repetitions, its time axis (first, step, count), and its lower
    and upper values."""

    at: list[int]
    series: str
    flow: str
    count: int
    even: list[int]
    low: EncodedColumn
    high: EncodedColumn


class PageBands:
    """Accumulates the bands of a page one run at a time, so that the curves of no two runs are in memory together."""

    def __init__(self, runs: list[Run], axes: list[RunAxis], series: list[str]) -> None:
        self._axes, self._series = axes, series
        counts = Counter(self._at(run) for run in runs if run.counts)
        self._several = {at for at, count in counts.items() if count > 1}
        plans = {self._at(run): run.plan for run in runs if run.plan and self._at(run) in self._several}
        bands = len(series) * sum(len(shown_flows(plan)) for plan in plans.values())
        self._cells = max(_FEWEST_CELLS, min(_MOST_CELLS, _VALUES // max(1, 2 * bands)))
        self._edges: dict[_Key, Float64] = {}
        self._envelopes: dict[_Key, Envelope] = {}

    def _at(self, run: Run) -> tuple[int, ...]:
        return tuple(axis.index(run) for axis in self._axes)

    def add(self, run: Run, curves: Curves) -> None:
        at = self._at(run)
        if not run.counts or at not in self._several or run.plan is None:
            return
        flows = {"", *(str(flow.id) for flow in shown_flows(run.plan))}
        for name in self._series:
            for flow, curve in curves.get(name, {}).items():
                if flow in flows and len(curve.time_ms) > 1:
                    key = _Key(at, name, flow)
                    if key not in self._envelopes:
                        self._edges[key] = self._divided(run.plan, int(np.diff(curve.time_ms).min()))
                        self._envelopes[key] = Envelope(self._edges[key])
                    self._envelopes[key].add(curve.time_ms.astype(np.float64), curve.value)

    def _divided(self, plan: Plan, step_ms: int) -> Float64:
        """Edges of cells over the run, in ms; each cell is as wide as one or more steps of a curve."""
        duration_ms = plan.duration_us / 1e3
        width = max(1, step_ms) * max(1, int(np.ceil(duration_ms / max(1, step_ms) / self._cells)))
        return np.arange(int(np.ceil(duration_ms / width)) + 1, dtype=np.float64) * np.float64(width)

    def coded(self) -> list[CodedBand]:
        found = []
        for key, envelope in self._envelopes.items():
            band = envelope.band()
            if band is not None:
                edges = self._edges[key]
                even = [int(edges[0]), int(edges[1] - edges[0]), len(edges)]
                low, high = (encode(each, scale_of(band.high, 4_000)) for each in (band.low, band.high))
                found.append(CodedBand(list(key.at), key.series, key.flow, band.count, even, low, high))
        return found
