# SPDX-License-Identifier: Apache-2.0
"""The bands of a page's figures: all repetitions of each line, as the page's scripts read them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from howdah.plan.plan import Plan
from howdah.record.result import Run
from howdah.record.sample import Float64
from howdah.record.shown import shown_flows
from howdah.report.axis import RunAxis
from howdah.report.band import Envelope
from howdah.report.codec import encode, scale_of
from howdah.report.source import Curves

_VALUES = 200_000  # coded values that the bands of a page may have together
_MOST_CELLS, _FEWEST_CELLS = 1500, 100


@dataclass(frozen=True)
class _Key:
    """Whose band: a value of each axis, a series, and a flow ("" for a series of the whole run)."""

    at: tuple[int, ...]
    series: str
    flow: str


class PageBands:
    """Takes the curves of runs one run after another, so that no two need be in memory together."""

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
        return tuple(axis.place(run) for axis in self._axes)

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
        """Cells over the run, each as wide as one or more steps of a curve, in ms."""
        duration_ms = plan.duration_us / 1e3
        width = max(1, step_ms) * max(1, int(np.ceil(duration_ms / max(1, step_ms) / self._cells)))
        return np.arange(int(np.ceil(duration_ms / width)) + 1, dtype=np.float64) * np.float64(width)

    def coded(self) -> list[dict[str, Any]]:
        """Of each band whose it is, how many repetitions, its even edges (first, step, count) and both sides."""
        found = []
        for key, envelope in self._envelopes.items():
            band = envelope.band()
            if band is not None:
                edges = self._edges[key]
                found.append(
                    {
                        "at": list(key.at),
                        "series": key.series,
                        "flow": key.flow,
                        "count": band.count,
                        "even": [int(edges[0]), int(edges[1] - edges[0]), len(edges)],
                        "low": encode(band.low, scale_of(band.high, 4_000)),
                        "high": encode(band.high, scale_of(band.high, 4_000)),
                    }
                )
        return found
