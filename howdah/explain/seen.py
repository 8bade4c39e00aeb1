# SPDX-License-Identifier: Apache-2.0
"""One connection as its tap saw it: the sender's data and the receiver's ACKs, as continuous numbers, without copies
that the capture made. Each segment has its kind: new, sent again, late, or one that was lost before the tap.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from howdah.explain.connection import TapConnection
from howdah.explain.sacked import HALF, MOST_EVENTS, Double, Reported, reported, signed
from howdah.ingest.capture import ACK, FIN, MOST_SCALE, RST, SYN
from howdah.ingest.source import Integers
from howdah.ingest.tracepoint import unwrap

Flags = npt.NDArray[np.bool_]
NEW, AGAIN, LATE, FILLS = range(4)  # FILLS: bytes that were missing here, sent again
_MANY, _DUPLICATES = 8, 3
_COPY_NS = 20_000_000  # a copy by the capture follows at once
_MOST_DOUBLES, _MOST_COPIES = 50_000, 64
_LATE_SHARE = 0.5  # of a round trip: what fills a hole sooner was only overtaken


@dataclass(frozen=True)
class SeenSent:
    """Segments with data, in order of time. ``place`` is that in the connection. ``kind`` is NEW, AGAIN, LATE or FILLS.

    ``top`` is the end of all that was seen up to and with each.
    """

    place: Integers
    time_ns: Integers
    begin: Integers
    end: Integers
    stamp: Integers
    echo: Integers
    extra_bytes: Integers
    kind: Integers
    top: Integers


@dataclass(frozen=True)
class SeenAcks:
    """The receiver's segments, in order of time. ``una`` is the highest number acknowledged up to and with each,
    ``window_bytes`` scaled, -1 where the scale is not known; ``delivered`` adds what SACK reports. ``repeats`` are
    those that acknowledge nothing new while data are outstanding.
    """

    place: Integers
    time_ns: Integers
    una: Integers
    window_bytes: Integers
    stamp: Integers
    delivered: Integers
    repeats: Flags
    sack_top: Integers


@dataclass(frozen=True)
class Seen:
    """``syn_ns``: stamps of SYN, SYN-ACK and the ACK that ends the handshake, where they were captured.

    ``missing_bytes`` were acknowledged and never seen: the capture lost them. ``spurious`` segments were sent again
    though the receiver had them (DSACK, or the echo of an earlier stamp), ``needless`` are those of them that are
    known, as places in ``sent``. ``closed`` says whether a FIN or RST of the sender is there. ``reneged_bytes`` has
    rows (left, right) of what SACK reported and an ACK later asked for; ``unsent_blocks`` counts blocks of what was not
    sent.
    """

    connection: TapConnection
    sent: SeenSent
    acks: SeenAcks
    syn_ns: tuple[int | None, int | None, int | None]
    opener: str | None
    copies: int
    missing_bytes: int
    spurious: int
    needless: Integers
    has_stamps: bool
    closed: bool
    mss_bytes: int
    reneged_bytes: Integers
    unsent_blocks: int

    @property
    def sent_again(self) -> int:
        """How many segments were; offloaded ones count as what they hold."""
        again = np.isin(self.sent.kind, (AGAIN, FILLS))
        return int((-(-(self.sent.end - self.sent.begin)[again] // self.mss_bytes)).sum())

    @property
    def excess_scale(self) -> int:
        """By how much the receiver's shift is above what TCP has: a sender that takes it at its word sees windows
        beyond the numbers of a connection."""
        receiver = self.connection.options["receiver"]
        return max((receiver.scale or 0) - MOST_SCALE, 0) if receiver is not None else 0

    @cached_property
    def narrowed_bytes(self) -> int | None:
        """What full segments hold from the first retransmission on, where that is less than before: a path that takes
        no larger ones any more had dropped those. None where they stay."""
        said = [each.mss_bytes for each in self.connection.options.values() if each is not None and each.mss_bytes]
        again = np.flatnonzero(self.sent.kind == AGAIN)
        if not said or not again.size:
            return None
        size = self.sent.end - self.sent.begin
        before, after = size[: again[0]], size[again[0] :]
        full = int(before[before <= min(said)].max(initial=0))
        narrow = int(after.max())
        many = int((after == narrow).sum()) >= _MANY and int((before == full).sum()) >= _DUPLICATES
        return narrow if many and narrow < full else None


def look(connection: TapConnection, rtt_ns: int | None = None) -> Seen | None:
    """Read a connection; None where it has no data or nothing acknowledges them. ``rtt_ns`` helps to tell late segments
    from those sent again, where time stamps do not."""
    time, flags = connection.column("time_ns"), connection.column("flags")
    payload, ours = connection.column("payload_bytes"), connection.ours
    keep = ~_copies(connection)
    opening = (flags & SYN) != 0
    data = np.flatnonzero(ours & keep & (payload > 0) & ~opening)
    back = np.flatnonzero(~ours & keep & ((flags & ACK) != 0) & ~opening & ((flags & RST) == 0))
    if not data.size or not back.size:
        return None
    sequence, acknowledged = connection.column("sequence"), connection.column("acknowledged")
    data = data[~_probes(connection, data, back)]
    if not data.size:
        return None
    base = _base(connection, data, back)
    begin = unwrap(sequence[data]) + signed(sequence[data[0]] - base)
    end = begin + payload[data]
    una = np.maximum.accumulate(unwrap(acknowledged[back]) + signed(acknowledged[back[0]] - base))
    whole = int(np.argmax(una >= end.max())) if (una >= end.max()).any() else una.size - 1
    back, una = back[: whole + 1], una[: whole + 1]  # what follows acknowledges no data
    stamps = connection.column("has_stamps")
    has_stamps = bool(stamps[data].mean() > 0.9)
    stamp = unwrap(connection.column("stamp")[data]) if has_stamps else np.zeros(data.size, np.int64)
    echo, ack_stamp = _echoes(connection, data, back) if has_stamps else (np.zeros(data.size, np.int64),) * 2
    if not has_stamps:
        ack_stamp = np.zeros(back.size, np.int64)
    top = np.maximum.accumulate(end)
    kind, missing = _kinds(connection, data, begin, end, top, stamp, has_stamps, rtt_ns)
    mss = _segment_bytes(connection, payload[data])
    sent = SeenSent(data, time[data], begin, end, stamp, echo, connection.column("extra_bytes")[data], kind, top)
    told = reported(connection, back, una, base, _top_before(sent, back))
    acks = _acks(connection, back, una, ack_stamp, sent, told)
    doubles = told.doubles
    early = _answered_before(connection, sent, acks) if has_stamps else np.zeros(0, np.int64)
    needless = np.union1d(early, _sent_twice(sent, acks, doubles))
    closed = bool((flags[ours] & (FIN | RST)).any())
    gone = int(max(una[-1] - closed - top[-1], 0)) + missing(int(una[-1]))
    return Seen(
        connection,
        sent,
        acks,
        _handshake(connection, keep),
        _opener(connection),
        int((~keep).sum()),
        gone,
        max(len(doubles), int(early.size)),
        needless,
        has_stamps,
        closed,
        mss,
        told.reneged,
        told.unsent,
    )


def _probes(connection: TapConnection, data: Integers, back: Integers) -> Flags:
    """Segments of one byte that ask whether the other end is there, or has room: behind an ACK of all before that byte,
    or of the byte itself. They are no data, and no repair of a loss."""
    if not (connection.column("payload_bytes")[data] == 1).any():
        return np.zeros(data.size, bool)
    last = np.searchsorted(back, data) - 1
    said = back[np.maximum(last, 0)]
    ahead = connection.column("sequence")[data] - connection.column("acknowledged")[said]
    at_edge = ((ahead & 0xFFFFFFFF) == 0) & (connection.column("window")[said] == 0)
    before = (ahead & 0xFFFFFFFF) == 0xFFFFFFFF
    return np.asarray((last >= 0) & (connection.column("payload_bytes")[data] == 1) & (at_edge | before))


def _base(connection: TapConnection, data: Integers, back: Integers) -> int:
    """The number of the first byte of data, where the handshake says it; else that of the first byte that is seen."""
    flags, sequence = connection.column("flags"), connection.column("sequence")
    opened = np.flatnonzero(connection.ours & ((flags & SYN) != 0))
    if opened.size:
        return int(sequence[opened[0]]) + 1 & 0xFFFFFFFF
    first, acked = int(sequence[data[0]]), int(connection.column("acknowledged")[back[0]])
    return acked if 0 < signed(first - acked) < HALF // 2 else first


def _copies(connection: TapConnection) -> Flags:
    """Segments that the capture holds twice: equal in all that is here, with the number that IP gives each packet, at
    almost the same time. A retransmission has another number, or another stamp of TCP."""
    time = connection.column("time_ns")
    count = time.size
    found = np.zeros(count, bool)
    names = ("sequence", "acknowledged", "payload_bytes", "window", "flags", "stamp", "echo", "ident", "from_first")
    columns = [connection.column(name) for name in names]
    mixed = np.zeros(count, np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed, kind="stable")
    same = (mixed[order][1:] == mixed[order][:-1]) & (np.diff(time[order]) <= _COPY_NS)
    later, earlier = order[1:][same], order[:-1][same]
    ident = connection.column("ident")
    stamps = connection.column("has_stamps")
    opens = (connection.column("flags") & SYN) != 0
    told = opens | ((connection.column("payload_bytes") > 0) & (stamps > 0))
    # Without a number of IP only SYNs, and data with equal stamps, are known to be one packet.
    sure = (ident[later] != 0) | (told[later] & (time[later] - time[earlier] < 1_000_000))
    found[later[sure]] = True
    return found


def _echoes(connection: TapConnection, data: Integers, back: Integers) -> tuple[Integers, Integers]:
    """Echoes of the data and stamps of the ACKs, both counted from the ACKs' first stamp."""
    stamps, echoes = connection.column("stamp")[back], connection.column("echo")[data]
    first = int(stamps[0])
    mine = unwrap(stamps)
    theirs = unwrap(echoes) + signed(int(echoes[0]) - first)
    return np.maximum.accumulate(theirs), np.maximum.accumulate(mine)


def _segment_bytes(connection: TapConnection, payload: Integers) -> int:
    """The usual full segment: what the options allow, or what most segments have; offloaded ones are multiples."""
    said = [each.mss_bytes for each in connection.options.values() if each is not None and each.mss_bytes]
    stamps = bool(connection.column("has_stamps").mean() > 0.5)
    most = (min(said) if said else 65535) - (12 if stamps else 0)
    sizes, counts = np.unique(payload[payload <= most], return_counts=True)
    if not sizes.size:
        return most if said else int(np.bincount(np.minimum(payload, 65535)).argmax())
    usual = int(sizes[np.argmax(counts * sizes)])
    return usual if counts.max() > 3 or not said else max(usual, most)


def _kinds(
    connection: TapConnection,
    data: Integers,
    begin: Integers,
    end: Integers,
    top: Integers,
    stamp: Integers,
    has_stamps: bool,
    rtt_ns: int | None,
) -> tuple[Integers, _Missing]:
    time = connection.column("time_ns")[data]
    ident = connection.column("ident")[data]
    before = np.concatenate([begin[:1], top[:-1]])
    kind = np.zeros(begin.size, np.int64)
    holes: list[tuple[int, int, int]] = []  # begin, end, the segment behind it
    for at in np.flatnonzero(begin != before)[:MOST_EVENTS].tolist():
        first, last, edge = int(begin[at]), int(end[at]), int(before[at])
        if first > edge:
            holes.append((edge, first, at))
            continue
        place = max(bisect.bisect_right(holes, (first, 1 << 62, 0)) - 1, 0)
        hit = [hole for hole in holes[place : place + 64] if hole[0] < last and hole[1] > first]
        if not hit:
            kind[at] = AGAIN if last <= edge else NEW
            continue
        maker = hit[0][2]
        kind[at] = _filling(at, maker, time, stamp, ident, has_stamps, rtt_ns)
        for hole in hit:
            holes.remove(hole)
            rest = [(hole[0], min(hole[1], first), hole[2]), (max(hole[0], last), hole[1], hole[2])]
            for part in rest:
                if part[0] < part[1]:
                    bisect.insort(holes, part)
    return kind, _Missing(holes)


@dataclass(frozen=True)
class _Missing:
    """Holes that nothing filled."""

    holes: list[tuple[int, int, int]]

    def __call__(self, una: int) -> int:
        """Bytes of them that were acknowledged."""
        return sum(max(min(hole[1], una) - hole[0], 0) for hole in self.holes)


def _filling(
    at: int, maker: int, time: Integers, stamp: Integers, ident: Integers, has_stamps: bool, rtt_ns: int | None
) -> int:
    """Whether what fills a hole was overtaken, or sent again after it was lost."""
    if has_stamps and stamp[at] != stamp[maker]:
        return FILLS if stamp[at] > stamp[maker] else LATE
    if ident[at] and ident[maker]:
        ahead = (int(ident[at]) - int(ident[maker]) + (1 << 15)) % (1 << 16) - (1 << 15)
        if ahead and abs(ahead) < 1 << 12:
            return FILLS if ahead > 0 else LATE
    lag = int(time[at]) - int(time[maker])
    return LATE if rtt_ns is not None and lag < _LATE_SHARE * rtt_ns else FILLS


def _acks(
    connection: TapConnection, back: Integers, una: Integers, stamp: Integers, sent: SeenSent, told: Reported
) -> SeenAcks:
    time, window = connection.column("time_ns")[back], connection.column("window")[back]
    scale = _scale(connection)
    before = np.concatenate([una[:1], una[:-1]])
    outstanding = _top_before(sent, back) > una
    payload = connection.column("payload_bytes")[back]
    repeats = (una == before) & outstanding & (payload == 0)
    repeats[0] = False
    scaled = window << scale if scale is not None else np.full(window.size, -1, np.int64)
    return SeenAcks(back, time, una, scaled, stamp, told.delivered, repeats, told.top)


def _sent_twice(sent: SeenSent, acks: SeenAcks, doubles: list[Double]) -> Integers:
    """The segments whose bytes a DSACK reports: of several the last one that had left."""
    again = np.flatnonzero(sent.kind == AGAIN)
    again = again[np.argsort(sent.begin[again], kind="stable")]
    begins = sent.begin[again]
    found: set[int] = set()
    for row, left, right in doubles[:_MOST_DOUBLES]:
        first, stop = np.searchsorted(begins, (left, right)).tolist()
        mine = again[first : min(stop, first + _MOST_COPIES)]
        mine = mine[sent.place[mine] < acks.place[row]]
        if mine.size:
            found.add(int(mine.max()))
    return np.array(sorted(found), np.int64)


def _answered_before(connection: TapConnection, sent: SeenSent, acks: SeenAcks) -> Integers:
    """Segments sent again whose first ACK echoes a stamp from before that (the Eifel detection, RFC 3522): the first
    copy had arrived."""
    again = np.flatnonzero(sent.kind == AGAIN)
    first = np.searchsorted(acks.una, sent.begin[again], side="right")
    good = first < acks.una.size
    again, first = again[good], first[good]
    good = acks.time_ns[first] >= sent.time_ns[again]
    again, first = again[good], first[good]
    echoed = connection.column("echo")[acks.place[first]]
    stamps = connection.column("stamp")[sent.place[again]]
    behind = ((echoed - stamps + HALF) % (1 << 32)) - HALF
    return np.asarray(again[(behind < 0) & (behind > -HALF // 2)])


def _scale(connection: TapConnection) -> int | None:
    """The shift of the receiver's window, as a sender takes it; None where no SYN says it."""
    sender, receiver = connection.options["sender"], connection.options["receiver"]
    for said in (sender, receiver):
        if said is not None and said.scale is None:
            return 0 if said.whole else None
    return min(receiver.scale, MOST_SCALE) if receiver is not None and receiver.scale is not None else None


def _top_before(sent: SeenSent, places: Integers) -> Integers:
    """The end of all data seen before each place in the capture."""
    at = np.searchsorted(sent.place, places) - 1
    return np.where(at >= 0, sent.top[np.maximum(at, 0)], sent.begin[0])


def _handshake(connection: TapConnection, keep: Flags) -> tuple[int | None, int | None, int | None]:
    flags, time = connection.column("flags"), connection.column("time_ns")
    opens = np.flatnonzero(keep & ((flags & (SYN | ACK)) == SYN))
    answers = np.flatnonzero(keep & ((flags & (SYN | ACK)) == (SYN | ACK)))
    if opens.size > 1 or answers.size > 1:  # sent again: nobody knows which one was answered
        return None, None, None
    opened = int(opens[0]) if opens.size else None
    answered = int(answers[0]) if answers.size else None
    if answered is None:
        return None, None, None
    client = ~connection.ours[answered]
    ends = np.flatnonzero((connection.ours == client) & ((flags & (SYN | ACK)) == ACK))
    ends = ends[ends > answered]
    return (
        int(time[opened]) if opened is not None else None,
        int(time[answered]),
        int(time[ends[0]]) if ends.size else None,
    )


def _opener(connection: TapConnection) -> str | None:
    flags = connection.column("flags")
    opens = np.flatnonzero((flags & (SYN | ACK)) == SYN)
    answers = np.flatnonzero((flags & (SYN | ACK)) == (SYN | ACK))
    if opens.size:
        return "sender" if connection.ours[opens[0]] else "receiver"
    if answers.size:
        return "receiver" if connection.ours[answers[0]] else "sender"
    return None
