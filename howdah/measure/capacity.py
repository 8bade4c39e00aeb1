# SPDX-License-Identifier: Apache-2.0
"""The fair capacity of a flow: goodput capacity divided by the flows active at each instant."""

from __future__ import annotations

import numpy as np

from howdah.measure.steps import Stairs, Steps
from howdah.measure.trace import SECOND_NS, Integers, Reals


class FairCapacity:
    """Piecewise constant in time; ``spans`` are (start_ns, stop_ns) of every flow.

    ``capacity_bits_per_second`` is the goodput capacity, rate x MSS / frame (docs/measures.md); ``changes`` are times
    in nanoseconds and the goodput capacity from then on.
    """

    def __init__(
        self,
        capacity_bits_per_second: float,
        spans: list[tuple[int, int]],
        changes: list[tuple[int, float]] | None = None,
    ) -> None:
        bytes_per_ns = [(time, rate / 8 / SECOND_NS) for time, rate in changes or []]
        self._capacity = Steps(capacity_bits_per_second / 8 / SECOND_NS, bytes_per_ns)
        edges = {edge for span in spans for edge in span if span[0] < span[1]}
        if edges:
            edges |= {time for time in self._capacity.times if min(edges) < time < max(edges)}
        self._edges = sorted(edges)
        active = _active(spans, self._edges)
        shares = [(edge, self._capacity.at(edge) / max(n, 1)) for edge, n in zip(self._edges, active, strict=True)]
        self._share = Steps(0.0, shares)

    def _integral(self, time_ns: Integers | Reals) -> Reals:
        """Bytes of the fair share until ``time_ns``; outside all flows the whole capacity counts."""
        at = np.asarray(time_ns, dtype=np.float64)
        if not self._edges:
            return self._capacity.integral(at)
        first, last = float(self._edges[0]), float(self._edges[-1])
        inside = self._share.integral(np.clip(at, first, last))
        before = self._capacity.integral(np.minimum(at, first)) - self._capacity.integral(self._edges[0])
        after = self._capacity.integral(np.maximum(at, last)) - self._capacity.integral(self._edges[-1])
        return np.asarray(before + inside + after, dtype=np.float64)

    def fair_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        """Bytes one flow may expect in each interval, same shape as the arguments."""
        return self._integral(np.asarray(end_ns)) - self._integral(np.asarray(begin_ns))

    def whole_bytes(self, begin_ns: int, end_ns: int) -> float:
        """Bytes the path can carry in an interval, whoever sends them."""
        return float(self.carried_bytes(begin_ns, end_ns))

    def carried_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        """The same of each interval, same shape as the arguments."""
        return self._capacity.integral(end_ns) - self._capacity.integral(begin_ns)


class LinkCapacity(FairCapacity):
    """The same of a link that carries bytes at instants: each flow's share of them is what the others leave it."""

    def __init__(self, carried: Stairs, spans: list[tuple[int, int]]) -> None:
        super().__init__(0.0, spans)
        self._carried = carried
        whole = carried.integral(np.array(self._edges, dtype=np.int64))
        active = np.maximum(_active(spans, self._edges), 1)
        self._whole = whole
        self._shares = np.concatenate([np.zeros(1), np.cumsum(np.diff(whole) / active[:-1])]) if self._edges else whole

    def _integral(self, time_ns: Integers | Reals) -> Reals:
        at = self._carried.integral(time_ns)
        if not self._edges:
            return at
        first, last = self._whole[0], self._whole[-1]
        inside = np.interp(np.clip(at, first, last), self._whole, self._shares)
        return np.asarray(np.minimum(at - first, 0.0) + inside + np.maximum(at - last, 0.0), dtype=np.float64)

    def carried_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        return self._carried.integral(end_ns) - self._carried.integral(begin_ns)


def _active(spans: list[tuple[int, int]], times: list[int]) -> list[int]:
    """How many spans hold each time; their starts belong to them, their stops do not."""
    whole = [span for span in spans if span[0] < span[1]]
    starts, stops = (np.sort(np.array([span[end] for span in whole], dtype=np.int64)) for end in (0, 1))
    begun, ended = (np.searchsorted(edges, times, side="right") for edges in (starts, stops))
    counts: list[int] = (begun - ended).tolist()
    return counts
