# SPDX-License-Identifier: Apache-2.0
"""The fair capacity of a flow: goodput capacity divided by the flows active at each instant."""

from __future__ import annotations

import numpy as np

from howdah.measure.trace import SECOND_NS, Integers, Reals


class FairCapacity:
    """Piecewise constant in time; ``spans`` are (start_ns, stop_ns) of every flow.

    ``capacity_bits_per_second`` is the goodput capacity, rate x MSS / frame (docs/measures.md).
    """

    def __init__(self, capacity_bits_per_second: float, spans: list[tuple[int, int]]) -> None:
        self._capacity = capacity_bits_per_second / 8 / SECOND_NS  # bytes per nanosecond
        edges = sorted({edge for span in spans for edge in span if span[0] < span[1]})
        self._edges = np.array(edges, dtype=np.float64)
        active = [sum(start <= edge < stop for start, stop in spans) for edge in edges]
        self._share = np.array([self._capacity / max(count, 1) for count in active])
        lengths = np.diff(self._edges) * self._share[:-1] if len(edges) else np.zeros(0)
        self._total = np.concatenate([np.zeros(1), np.cumsum(lengths)])

    def _integral(self, time_ns: Integers | Reals) -> Reals:
        """Bytes of the fair share from the first edge to ``time_ns``; outside all flows the whole capacity counts."""
        at = np.asarray(time_ns, dtype=np.float64)
        if not self._edges.size:
            return at * self._capacity
        inside = np.interp(at, self._edges, self._total)
        before = np.minimum(at - self._edges[0], 0.0) * self._capacity
        after = np.maximum(at - self._edges[-1], 0.0) * self._capacity
        return np.asarray(before + inside + after, dtype=np.float64)

    def fair_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        """Bytes one flow may expect in each interval, same shape as the arguments."""
        return self._integral(np.asarray(end_ns)) - self._integral(np.asarray(begin_ns))

    def whole_bytes(self, begin_ns: int, end_ns: int) -> float:
        """Bytes the path can carry in an interval, whoever sends them."""
        return (end_ns - begin_ns) * self._capacity
