# SPDX-License-Identifier: Apache-2.0
"""Reference values of a flow. Its fair capacity is the goodput capacity divided by the flows active at each instant;
the bandwidth-delay product, for windows, is that of the moment if the path's rate changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from howdah.measure.trace import SECOND_NS, Integers, Reals
from howdah.plan.path import Path
from howdah.plan.plan import Flow


class Steps:
    """A step function: ``base`` until the first of ``changes`` (time in ns, value from then on), which are sorted."""

    def __init__(self, base: float, changes: list[tuple[int, float]]) -> None:
        self._times = np.array([time for time, _ in changes], dtype=np.float64)
        self._values = np.array([base, *(value for _, value in changes)], dtype=np.float64)
        lengths = np.diff(self._times) * self._values[1:-1] if len(changes) else np.zeros(0)
        self._total = np.concatenate([np.zeros(1), np.cumsum(lengths)])

    @property
    def times(self) -> list[int]:
        return [int(time) for time in self._times]

    def at(self, time_ns: float) -> float:
        return float(self._values[np.searchsorted(self._times, time_ns, side="right")])

    def integral(self, time_ns: Integers | Reals | int) -> NDArray[np.float64]:
        """Return value x nanoseconds from the first change (or time 0 without any) to ``time_ns``; negative before."""
        at = np.asarray(time_ns, dtype=np.float64)
        if not self._times.size:
            return np.asarray(at * self._values[0], dtype=np.float64)
        inside = np.interp(at, self._times, self._total)
        before = np.minimum(at - self._times[0], 0.0) * self._values[0]
        after = np.maximum(at - self._times[-1], 0.0) * self._values[-1]
        return np.asarray(before + inside + after, dtype=np.float64)

    def weights(self, begin_ns: Integers, end_ns: Integers, weights: list[float]) -> NDArray[np.float64]:
        """Return the sum of the weights of the changes in each interval, including its ends; one weight per change."""
        total = np.concatenate([np.zeros(1), np.cumsum(weights)])
        first = np.searchsorted(self._times, begin_ns, side="left")
        last = np.searchsorted(self._times, end_ns, side="right")
        return np.asarray(total[last] - total[first], dtype=np.float64)


class Stairs:
    """A capacity with steps: ``rate`` until time 0 and from ``end_ns`` on; in between, ``height`` at each of the
    instants that ``until`` counts."""

    def __init__(self, rate: float, end_ns: int, until: Callable[[Reals], Integers], height: float) -> None:
        self._rate, self._end_ns = rate, end_ns
        self._until, self._height = until, height

    def integral(self, time_ns: Integers | Reals | int) -> NDArray[np.float64]:
        """Return the capacity from time 0 to ``time_ns``, including what comes then; negative before time 0."""
        at = np.asarray(time_ns, dtype=np.float64)
        outside = np.minimum(at, 0.0) + np.maximum(at - self._end_ns, 0.0)
        come = self._until(np.minimum(at, float(self._end_ns)))
        return np.asarray(outside * self._rate + come * self._height, dtype=np.float64)


class FairCapacity:
    """The fair share of the capacity, piecewise constant in time; ``spans`` are (start_ns, stop_ns) of every flow.

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
        """Return the bytes of the fair share until ``time_ns``; while no flow is active, the whole capacity counts."""
        at = np.asarray(time_ns, dtype=np.float64)
        if not self._edges:
            return self._capacity.integral(at)
        first, last = float(self._edges[0]), float(self._edges[-1])
        inside = self._share.integral(np.clip(at, first, last))
        before = self._capacity.integral(np.minimum(at, first)) - self._capacity.integral(self._edges[0])
        after = self._capacity.integral(np.maximum(at, last)) - self._capacity.integral(self._edges[-1])
        return np.asarray(before + inside + after, dtype=np.float64)

    def fair_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        """Return the bytes that one flow may expect in each interval, same shape as the arguments."""
        return self._integral(np.asarray(end_ns)) - self._integral(np.asarray(begin_ns))

    def whole_bytes(self, begin_ns: int, end_ns: int) -> float:
        """Return the bytes that the path can carry in an interval, for all flows together."""
        return float(self.carried_bytes(begin_ns, end_ns))

    def carried_bytes(self, begin_ns: Integers | int, end_ns: Integers | int) -> Reals:
        """Return the same for each of several intervals, same shape as the arguments."""
        return self._capacity.integral(end_ns) - self._capacity.integral(begin_ns)


class LinkCapacity(FairCapacity):
    """The fair capacity of a link that carries bytes at instants, divided between the flows that are active then."""

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
    """Return the number of spans that contain each time; a span includes its start, but not its stop."""
    whole = [span for span in spans if span[0] < span[1]]
    starts, stops = (np.sort(np.array([span[end] for span in whole], dtype=np.int64)) for end in (0, 1))
    begun, ended = (np.searchsorted(edges, times, side="right") for edges in (starts, stops))
    counts: list[int] = (begun - ended).tolist()
    return counts


def bdp_packets(capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers | int) -> Reals:
    """Return the BDP of a flow at instants, in full frames, same shape as ``time_ns``.

    rate · RTT of the flow / frame. If the path's rate changes, it is what the link could carry in the flow's RTT
    (without queues) before the instant, at the rates during it: 0 if it carried nothing.
    """
    if not path.rate_changes:
        return np.full(np.shape(time_ns), flow.bdp_packets(path))
    at = np.asarray(time_ns, dtype=np.int64)
    return capacity.carried_bytes(at - flow.rtt_us * 1000, at) / path.mss_bytes


def held_packets(capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers) -> Reals:
    """Return BDP + buffer at instants, in full frames, same shape as ``time_ns``."""
    if not path.rate_changes:
        return np.full(np.shape(time_ns), (flow.bdp_bytes(path) + path.buffer_bytes) / path.frame_bytes)
    return bdp_packets(capacity, flow, path, time_ns) + path.buffer_bytes / path.frame_bytes


def share_of_bdp(
    packets: float | None, capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers | int | None
) -> float | None:
    """Return a window as a multiple of the BDP at an instant; None without a window, or if the link carried nothing."""
    if packets is None or time_ns is None:
        return None
    bdp = float(bdp_packets(capacity, flow, path, time_ns))
    return packets / bdp if bdp else None


def buffer_drain_ns(capacity: FairCapacity, path: Path, until_ns: int) -> int:
    """Return how long the link took to send a full buffer, at the rates before an instant."""
    if not path.rate_changes:
        return path.buffer_bytes * 8 * SECOND_NS // path.rate_bits_per_second
    goodput_bytes = path.buffer_bytes * path.mss_bytes / path.frame_bytes
    longest = path.buffer_bytes * 8 * SECOND_NS // max(min([path.rate_bits_per_second, *_rates(path)]), 1)
    if path.link is not None:
        longest += max(until_ns, 0)  # the link may carry nothing at all after the epoch, but has its rate before it
    shortest = 0
    while longest - shortest > 1:
        middle = (shortest + longest) // 2
        enough = capacity.whole_bytes(until_ns - middle, until_ns) >= goodput_bytes
        shortest, longest = (shortest, middle) if enough else (middle, longest)
    return longest


def _rates(path: Path) -> list[int]:
    return [rate for _, rate in path.rate_steps]
