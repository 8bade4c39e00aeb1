# SPDX-License-Identifier: Apache-2.0
"""The same packets at two taps of one connection: what passed both, and what only the one nearer to its source saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.explain.seen import Flags, Seen
from howdah.ingest.source import Integers

_ENOUGH = 0.5  # of the fewer packets: what agrees in so many is one connection
_FEW = 8
_WORD = 1 << 32

Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Matched:
    """Packets of one direction in the order in which the tap near their source saw them, shape (n,).

    ``far_ns`` is when the other tap saw each, -1 where it did not; ``lost`` are those that it did not see and that were
    sent again later, ``unseen`` counts those that were not: that capture lacks them.
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
    """The sender's segments, in pieces of at most one segment: offloaded ones are larger at one tap than at the other.
    None where the two are not one connection, or nothing tells copies of a segment apart."""
    mss = min(near.mss_bytes, far.mss_bytes)
    ours, theirs = _pieces(near, mss), _pieces(far, mss)
    found = _pair(ours, theirs)
    if found is None:
        return None
    passed = np.full(ours.time_ns.size, -1, np.int64)
    passed[found[0]] = theirs.time_ns[found[1]]
    first, last = found[0].min(), found[0].max()  # before and behind them one of the captures was not running
    span = slice(int(first), int(last) + 1)
    gone = passed[span] < 0
    arrived = np.unique(ours.number[span][~gone])
    again = np.isin(ours.number[span], arrived)
    extra = int(np.median(near.sent.extra_bytes))
    return Matched(
        ours.time_ns[span], passed[span], ours.size_bytes[span] + extra, gone & again, int((gone & ~again).sum())
    )


def match_acks(near: Seen, far: Seen) -> Matched | None:
    """The receiver's, from the tap nearer to it to the other. An ACK is not sent again: what is missing is lost."""
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
    """``number`` is the first byte's, or the one acknowledged; ``stamp`` TCP's, ``ident`` IP's."""

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
    """Places of the packets that both have. IP's number tells every copy apart; where a hop rewrites it, TCP's stamp
    tells those apart that were sent again."""
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
    """The n-th of equal packets is another one than the first."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    begin = np.maximum.accumulate(np.where(first, np.arange(keys.size), 0))
    rank = np.empty(keys.size, np.uint64)
    rank[order] = (np.arange(keys.size) - begin).astype(np.uint64)
    return np.asarray(keys + rank * np.uint64(0x9E3779B97F4A7C15))
