# SPDX-License-Identifier: Apache-2.0
"""Data and ACKs that a capture shows at one end of a flow, and the gaps in the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.ingest.segment import segments_of
from howdah.measure.trace import Integers, Reals

_SYN, _RST, _ACK = 2, 4, 16
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DataSegments:
    """Segments with payload from the flow's sender, shape (segments,); ``order`` is their position in the capture.

    ``begin`` and ``end`` count bytes from the first one. ``segments`` is how many full segments each counts as.
    """

    order: Integers
    time_ns: Integers
    begin: Integers
    end: Integers
    segments: Integers


@dataclass(frozen=True)
class Acks:
    """ACKs of the flow's receiver from the first data on, shape (ACKs,), without SYN and RST.

    ``acked`` is the highest cumulative ACK so far. ``window_bytes`` is -1 if unknown.
    """

    order: Integers
    time_ns: Integers
    acked: Integers
    window_bytes: Integers
    sack_blocks: Integers


@dataclass(frozen=True)
class Holes:
    """Gaps in the arrived data: a segment beyond the highest byte so far opens one, which ends at its beginning."""

    order: Integers
    end: Integers


@dataclass(frozen=True)
class Conversation:
    """One flow at one end."""

    data: DataSegments
    acks: Acks

    @cached_property
    def highest(self) -> Integers:
        """The end of the data that had arrived before each data segment."""
        ends = np.maximum.accumulate(self.data.end)
        return np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]]) if ends.size else ends

    @cached_property
    def holes(self) -> Holes:
        opens = self.data.begin > self.highest
        return Holes(self.data.order[opens], self.data.begin[opens])

    @cached_property
    def missing(self) -> Flags:
        """For each ACK, whether a hole was open that it does not pass."""
        return self._hole_before(self.acks.order) > self.acks.acked

    @cached_property
    def waited_for(self) -> Integers:
        """For each ACK, the data segments that arrived since the ACK before."""
        arrived = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.data.segments)])
        return np.diff(arrived[np.searchsorted(self.data.order, self.acks.order)], prepend=0)

    @cached_property
    def delays_ns(self) -> Integers:
        """The time from each data segment that arrived in order, with nothing missing, to the ACK that covers it."""
        before = np.searchsorted(self.acks.order, self.data.order) - 1
        acked = np.where(before >= 0, self.acks.acked[np.maximum(before, 0)], 0) if self.acks.acked.size else 0
        fine = (self.data.begin == self.highest) & (self._hole_before(self.data.order) <= acked)
        covering = np.searchsorted(self.acks.acked, self.data.end[fine])
        there = covering < self.acks.acked.size
        found: Integers = self.acks.time_ns[covering[there]] - self.data.time_ns[fine][there]
        return found

    @cached_property
    def repairs_ns(self) -> Integers:
        """For each hole that was repaired, the time from the first ACK after it opened to the cumulative ACK that
        passes it. The first one acknowledges nothing new, or reports data beyond the hole (SACK).
        """
        told = np.searchsorted(self.acks.order, self.holes.order)
        passed = np.searchsorted(self.acks.acked, self.holes.end)
        repaired = passed < self.acks.acked.size
        found: Integers = self.acks.time_ns[passed[repaired]] - self.acks.time_ns[told[repaired]]
        return found

    def _hole_before(self, order: Integers) -> Integers:
        """Return the end of the last hole that opened before each position; 0 before the first."""
        ends = np.concatenate([np.zeros(1, dtype=np.int64), self.holes.end])
        return ends[np.searchsorted(self.holes.order, order)]


def conversation(table: pa.Table, flow: int, end: str, mss_bytes: int) -> Conversation:
    """Read the table ``segment``. A segment larger than ``mss_bytes`` counts as several, which a device joined."""
    columns = segments_of(table, flow, end)
    ours = columns["sent_by_sender"] > 0
    data = np.flatnonzero(ours & (columns["payload_bytes"] > 0))
    told = ~ours & (columns["flags"] & (_SYN | _RST | _ACK) == _ACK)
    acks = np.flatnonzero(told)
    acks = acks[acks > data[0]] if data.size else acks[:0]
    payload, begin = columns["payload_bytes"][data], columns["sequence_bytes"][data]
    return Conversation(
        DataSegments(data, columns["time_ns"][data], begin, begin + payload, -(-payload // mss_bytes)),
        Acks(
            acks,
            columns["time_ns"][acks],
            np.maximum.accumulate(columns["ack_bytes"][acks]),
            columns["window_bytes"][acks],
            columns["sack_blocks"][acks],
        ),
    )


def quantile_us(times_ns: Integers, share: float) -> float | None:
    """Return a quantile in microseconds, interpolated between values; None without values."""
    return float(np.quantile(times_ns, share)) / 1000 if times_ns.size else None


def shares(counts: Integers, edges: tuple[int, ...]) -> Reals:
    """Return the share of counts in each bin: below an edge and not below the one before; the last bin has the rest."""
    found = np.bincount(np.searchsorted(edges, counts, side="right"), minlength=len(edges) + 1)
    return np.asarray(found / counts.size, dtype=np.float64)
