# SPDX-License-Identifier: Apache-2.0
"""Match the packets of one connection at two taps: which passed both, and which only the one nearer to their source
saw. Packets that passed both, in either direction, show the offset and the skew of the taps' clocks.

No capture shows how the least round trip divides between both directions, so the offset is known only within it. The
skew is the slope of the line under the delays of one direction (Moon, Skelly and Towsley, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from howdah.explain.delay import Reals
from howdah.explain.estimate import Estimate, absent
from howdah.explain.seen import Flags, Seen
from howdah.ingest.source import Integers

_ENOUGH = 0.5  # share of the packets of the smaller recording that must match, for one connection
_FEW = 8  # packets that must match at least
_WORD = 1 << 32  # space of sequence numbers

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Matched:
    """Packets of one direction in the order in which the tap near their source saw them, shape (n,).

    ``far_ns`` is when the other tap saw each, -1 if it did not. ``lost`` are those that it did not see and that were
    sent again later; ``unseen`` counts those that were not sent again: that capture lacks them.
    """

    near_ns: Integers
    far_ns: Integers
    size_bytes: Integers
    lost: Flags
    unseen: int

    @property
    def passed(self) -> Flags:
        return self.far_ns >= 0


def match_data(near: Seen, far: Seen) -> Matched | None:
    """Match the sender's data, divided into pieces of at most one segment, because offloaded segments differ between
    taps. None if the two are different connections, or if nothing distinguishes copies of a segment."""
    mss = min(near.mss_bytes, far.mss_bytes)
    ours, theirs = _pieces(near, mss), _pieces(far, mss)
    found = _pair(ours, theirs)
    if found is None:
        return None
    passed = np.full(ours.time_ns.size, -1, np.int64)
    passed[found[0]] = theirs.time_ns[found[1]]
    first, last = found[0].min(), found[0].max()  # before and after them one of the captures was not running
    span = slice(int(first), int(last) + 1)
    gone = passed[span] < 0
    arrived = np.unique(ours.number[span][~gone])
    again = np.isin(ours.number[span], arrived)
    extra = int(np.median(near.sent.extra_bytes))
    return Matched(
        ours.time_ns[span], passed[span], ours.size_bytes[span] + extra, gone & again, int((gone & ~again).sum())
    )


def match_acks(near: Seen, far: Seen) -> Matched | None:
    """Match the receiver's ACKs, from the tap nearer to it to the other. ACKs are not sent again, so a missing one is
    lost."""
    ours, theirs = _ack_packets(near), _ack_packets(far)
    found = _pair(ours, theirs)
    if found is None:
        return None
    passed = np.full(ours.time_ns.size, -1, np.int64)
    passed[found[0]] = theirs.time_ns[found[1]]
    span = slice(int(found[0].min()), int(found[0].max()) + 1)
    gone = passed[span] < 0
    return Matched(ours.time_ns[span], passed[span], ours.size_bytes[span], gone, 0)


@dataclass(frozen=True)
class _Packets:
    """Packets to match: ``number`` is that of the first byte, or the one acknowledged; ``stamp`` is TCP's, ``ident``
    IP's."""

    time_ns: Integers
    number: Integers
    stamp: Integers
    ident: Integers
    size_bytes: Integers
    has_stamps: bool


def _pieces(seen: Seen, mss: int) -> _Packets:
    sent, connection = seen.sent, seen.connection
    size = sent.end - sent.begin
    parts = np.maximum(-(-size // mss), 1)
    row = np.repeat(np.arange(size.size), parts)
    part = np.arange(row.size) - np.repeat(np.cumsum(parts) - parts, parts)
    place = sent.place[row]
    return _Packets(
        sent.time_ns[row],
        (connection.column("sequence")[place] + part * mss) % _WORD,
        connection.column("stamp")[place],
        (connection.column("ident")[place] + part) % (1 << 16),
        np.minimum(size[row] - part * mss, mss),
        seen.has_stamps,
    )


def _ack_packets(seen: Seen) -> _Packets:
    place, connection = seen.acks.place, seen.connection
    return _Packets(
        seen.acks.time_ns,
        connection.column("acknowledged")[place],
        connection.column("stamp")[place],
        connection.column("ident")[place],
        np.zeros(place.size, np.int64),
        seen.has_stamps,
    )


def _pair(near: _Packets, far: _Packets) -> tuple[Integers, Integers] | None:
    """Places of the packets that both taps have. IP identification distinguishes all copies of a segment; if a hop
    rewrites it, TCP's time stamp distinguishes retransmissions."""
    least = min(near.time_ns.size, far.time_ns.size)
    for with_ident in (True, False):
        if not with_ident and not (near.has_stamps and far.has_stamps):
            return None
        ours, theirs = (_coded(near, with_ident), _coded(far, with_ident))
        _, mine, other = np.intersect1d(_ranked(ours), _ranked(theirs), assume_unique=True, return_indices=True)
        if mine.size >= max(_FEW, _ENOUGH * least):
            return mine, other
    return None


def _coded(packets: _Packets, with_ident: bool) -> Keys:
    key = packets.number.astype(np.uint64) << np.uint64(32) | packets.stamp.astype(np.uint64)
    if with_ident:
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) ^ packets.ident.astype(np.uint64)
    key = (key ^ (key >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return key ^ (key >> np.uint64(27))


def _ranked(keys: Keys) -> Keys:
    """Make equal keys different: the n-th of equal packets matches the n-th at the other tap."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    begin = np.maximum.accumulate(np.where(first, np.arange(keys.size), 0))
    rank = np.empty(keys.size, np.uint64)
    rank[order] = (np.arange(keys.size) - begin).astype(np.uint64)
    return np.asarray(keys + rank * np.uint64(0x9E3779B97F4A7C15))


_MOST_PPM = 500.0  # largest skew: the kernel's adjtimex() allows no more
_HULL_POINTS = 2000  # points that the hull is made of, at most


@dataclass(frozen=True)
class Clocks:
    """``offset_ns`` is the far tap's clock less the near one's when the first packet passed, and ``skew_ppm`` how fast
    it grows. ``data_ns`` and ``ack_ns`` are the one-way delays of packets that passed, beyond the least, which is
    ``data_least_ns`` for the data."""

    offset_ns: Estimate
    skew_ppm: Estimate
    data_ns: Reals
    ack_ns: Reals
    data_least_ns: Estimate


def clocks_of(data: Matched, acks: Matched | None, step_ns: int) -> Clocks:
    """Compare two taps' clocks; ``step_ns`` is the resolution of the stamps."""
    there = data.passed
    begin = int(data.near_ns[there][0])
    x = (data.near_ns[there] - begin).astype(np.float64)
    forward = (data.far_ns[there] - data.near_ns[there]).astype(np.float64)
    if acks is None or acks.passed.sum() < _FEW:
        reason = "the ACKs at the two taps are not the same packets"
        least = float(forward.min())
        return Clocks(absent(reason), absent(reason), forward - least, np.zeros(0), absent(reason))
    back = acks.passed
    y = (acks.far_ns[back] - begin).astype(np.float64)
    backward = (acks.far_ns[back] - acks.near_ns[back]).astype(np.float64)
    skew = _skew(x, forward, y, backward, step_ns)
    slope = (skew.value or 0.0) * 1e-6
    forward = forward - slope * x
    backward = backward + slope * y
    least, other = float(forward.min()), float(backward.min())
    whole = max(least + other, 0.0)
    how = "half of the least there and back; nothing tells how that divides"
    offset = Estimate((least - other) / 2, -other - step_ns, least + step_ns, "the same way there and back supposed")
    one_way = Estimate(whole / 2, 0.0, whole + 2 * step_ns, how)
    return Clocks(offset, skew, forward - least, backward - other, one_way)


def _skew(x: Reals, forward: Reals, y: Reals, backward: Reals, step_ns: int) -> Estimate:
    span = float(min(np.ptp(x), np.ptp(y)))
    if span <= 0:
        return absent("all packets passed at once")
    finest = (2 * step_ns + 1000) / span * 1e6
    found = [slope * 1e6 for slope in (_floor_slope(x, forward), -_floor_slope(y, backward))]
    good = [each for each in found if abs(each) <= _MOST_PPM + finest]
    if not good:
        return absent("the least delays change by more than clocks do")
    value = good[-1]  # that of the ACKs, which seldom meet a queue
    low, high = min(good) - finest, max(good) + finest
    if low <= 0 <= high:
        return Estimate(0.0, low, high, "within what the stamps tell")
    return Estimate(value, low, high, "the slope of the least delays")


def _floor_slope(time_ns: Reals, delay_ns: Reals) -> float:
    """The slope of the line that lies as close to the delays as possible without exceeding one: the edge of their lower
    hull at the middle of the times."""
    order = np.argsort(time_ns, kind="stable")
    x, y = time_ns[order], delay_ns[order]
    x, y = _lowest(x, y)
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1 and _turns(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    middle = float(time_ns.mean())
    for first, second in pairwise(hull):
        if second[0] >= middle:
            return (second[1] - first[1]) / (second[0] - first[0]) if second[0] > first[0] else 0.0
    return 0.0


def _lowest(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """The lowest point of each stretch, if there are many points: the others hardly change the hull."""
    if x.size <= _HULL_POINTS:
        return x, y
    edges = np.linspace(0, x.size, _HULL_POINTS + 1).astype(np.int64).tolist()
    places = np.array([begin + int(np.argmin(y[begin:end])) for begin, end in pairwise(edges)])
    return x[places], y[places]


def _turns(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (c[0] - a[0]) * (b[1] - a[1])
