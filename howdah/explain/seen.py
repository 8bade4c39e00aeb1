# SPDX-License-Identifier: Apache-2.0
"""One connection as its tap saw it: the sender's data and the receiver's ACKs, with continuous numbers and without
duplicates that the capture made. Each segment has a kind: new, sent again, late, or sent again after it was lost before
the tap.
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
NEW, AGAIN, LATE, FILLS = range(4)  # FILLS: sent again after it was lost before the tap
_MANY, _SOME = 8, 3  # segments of the smaller and of the larger size that show that segments became smaller
_COPY_NS = 20_000_000  # longest time from a segment to the copy that the capture made of it
_MOST_DOUBLES, _MOST_COPIES = 50_000, 64  # DSACKs that are looked at, and copies of one segment
_LATE_SHARE = 0.5  # share of a round trip: what fills a hole sooner was only overtaken


@dataclass(frozen=True)
class SeenSent:
    """Segments with data, in order of time. ``place`` is their place in the connection, ``kind`` one of NEW, AGAIN,
    LATE and FILLS.

    ``top`` is the highest end seen so far, including this segment.
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
    """The receiver's segments, in order of time. ``una`` is the highest number acknowledged so far; ``window_bytes`` is
    scaled, -1 if the scale is not known; ``delivered`` adds what SACK reports. ``repeats`` are those that acknowledge
    nothing new while data are outstanding.
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
    """``syn_ns`` are the stamps of SYN, SYN-ACK and the ACK that ends the handshake, if captured.

    ``missing_bytes`` were acknowledged and never seen: the capture lost them. ``spurious`` counts segments sent again
    although the receiver had them (DSACK, or the echo of an earlier stamp); ``needless`` are the known ones of these,
    as places in ``sent``. ``closed``: the sender sent a FIN or RST. ``reneged_bytes`` has rows (left, right) of what
    SACK reported and an ACK later requested; ``unsent_blocks`` counts blocks of bytes that were not sent.
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
        """The number of retransmitted segments; an offloaded one counts as the segments that it holds."""
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
        """The payload of full segments from the first retransmission on, if it is less than before: the path had
        dropped the larger ones. None if it is the same."""
        said = [each.mss_bytes for each in self.connection.options.values() if each is not None and each.mss_bytes]
        again = np.flatnonzero(self.sent.kind == AGAIN)
        if not said or not again.size:
            return None
        size = self.sent.end - self.sent.begin
        before, after = size[: again[0]], size[again[0] :]
        full = int(before[before <= min(said)].max(initial=0))
        narrow = int(after.max())
        many = int((after == narrow).sum()) >= _MANY and int((before == full).sum()) >= _SOME
        return narrow if many and narrow < full else None


def seen_of(connection: TapConnection, rtt_ns: int | None = None) -> Seen | None:
    """Read a connection; None if it has no data or nothing acknowledges them. ``rtt_ns`` helps to distinguish late
    segments from retransmitted ones where time stamps do not."""
    keep = ~_copies(connection)
    data, back = _data_and_acks(connection, keep)
    if not data.size or not back.size:
        return None
    payload = connection.column("payload_bytes")[data]
    base = _base(connection, data, back)
    begin = _counted_from(base, connection.column("sequence")[data])
    end = begin + payload
    top = np.maximum.accumulate(end)
    una = np.maximum.accumulate(_counted_from(base, connection.column("acknowledged")[back]))
    whole = int(np.argmax(una >= end.max())) if (una >= end.max()).any() else una.size - 1
    back, una = back[: whole + 1], una[: whole + 1]  # what follows acknowledges no data
    has_stamps, stamp, echo, ack_stamp = _time_stamps(connection, data, back)
    kind, holes = _kinds(connection, data, begin, end, top, stamp, has_stamps, rtt_ns)
    time, extra = connection.column("time_ns")[data], connection.column("extra_bytes")[data]
    sent = SeenSent(data, time, begin, end, stamp, echo, extra, kind, top)
    report = reported(connection, back, una, base, _top_before(sent, back))
    acks = _acks(connection, back, una, ack_stamp, sent, report)
    early = _answered_before(connection, sent, acks) if has_stamps else np.zeros(0, np.int64)
    closed = bool((connection.column("flags")[connection.ours] & (FIN | RST)).any())
    return Seen(
        connection,
        sent,
        acks,
        _handshake(connection, keep),
        _opener(connection),
        int((~keep).sum()),
        int(max(una[-1] - closed - top[-1], 0)) + holes.acknowledged_bytes(int(una[-1])),
        max(len(report.doubles), int(early.size)),
        np.union1d(early, _sent_twice(sent, acks, report.doubles)),
        has_stamps,
        closed,
        _segment_bytes(connection, payload),
        report.reneged,
        report.unsent,
    )


def _data_and_acks(connection: TapConnection, keep: Flags) -> tuple[Integers, Integers]:
    flags, ours = connection.column("flags"), connection.ours
    wanted = keep & ((flags & SYN) == 0)
    data = np.flatnonzero(ours & wanted & (connection.column("payload_bytes") > 0))
    back = np.flatnonzero(~ours & wanted & ((flags & ACK) != 0) & ((flags & RST) == 0))
    if data.size and back.size:
        data = data[~_probes(connection, data, back)]
    return data, back


def _counted_from(base: int, numbers: Integers) -> Integers:
    """Sequence numbers as bytes since ``base``, across any number of wraps."""
    return unwrap(numbers) + signed(numbers[0] - base)


def _probes(connection: TapConnection, data: Integers, back: Integers) -> Flags:
    """Whether each segment is a keepalive or window probe of one byte: after an ACK of everything before that byte, or
    of the byte itself. Probes are neither data nor repairs."""
    if not (connection.column("payload_bytes")[data] == 1).any():
        return np.zeros(data.size, bool)
    last = np.searchsorted(back, data) - 1
    said = back[np.maximum(last, 0)]
    ahead = connection.column("sequence")[data] - connection.column("acknowledged")[said]
    at_edge = ((ahead & 0xFFFFFFFF) == 0) & (connection.column("window")[said] == 0)
    before = (ahead & 0xFFFFFFFF) == 0xFFFFFFFF
    return np.asarray((last >= 0) & (connection.column("payload_bytes")[data] == 1) & (at_edge | before))


def _base(connection: TapConnection, data: Integers, back: Integers) -> int:
    """The number of the first byte of data, by the handshake; without one, the first byte seen."""
    flags, sequence = connection.column("flags"), connection.column("sequence")
    opened = np.flatnonzero(connection.ours & ((flags & SYN) != 0))
    if opened.size:
        return int(sequence[opened[0]]) + 1 & 0xFFFFFFFF
    first, acked = int(sequence[data[0]]), int(connection.column("acknowledged")[back[0]])
    return acked if 0 < signed(first - acked) < HALF // 2 else first


def _copies(connection: TapConnection) -> Flags:
    """Whether each segment is captured twice: equal in all columns, including IP identification, at almost the same
    time. A retransmission differs in IP identification or TCP's stamp."""
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
    # Without IP identification, only SYNs and data with equal stamps are known to be one packet.
    sure = (ident[later] != 0) | (told[later] & (time[later] - time[earlier] < 1_000_000))
    found[later[sure]] = True
    return found


def _time_stamps(
    connection: TapConnection, data: Integers, back: Integers
) -> tuple[bool, Integers, Integers, Integers]:
    """Return whether data have time stamps; the stamps of the data, their echoes, and the stamps of the ACKs. Echoes
    and ACKs count from the ACKs' first stamp; without stamps all are zeros."""
    if not connection.column("has_stamps")[data].mean() > 0.9:
        return False, np.zeros(data.size, np.int64), np.zeros(data.size, np.int64), np.zeros(back.size, np.int64)
    stamps, echoes = connection.column("stamp"), connection.column("echo")[data]
    ack_stamp = unwrap(stamps[back])
    echo = unwrap(echoes) + signed(int(echoes[0]) - int(stamps[back[0]]))
    return True, unwrap(stamps[data]), np.maximum.accumulate(echo), np.maximum.accumulate(ack_stamp)


def _segment_bytes(connection: TapConnection, payload: Integers) -> int:
    """The payload of a full segment: what the options allow, or what most segments have; offloaded ones are multiples
    of it."""
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
) -> tuple[Integers, _Holes]:
    time = connection.column("time_ns")[data]
    ident = connection.column("ident")[data]
    before = np.concatenate([begin[:1], top[:-1]])
    kind = np.zeros(begin.size, np.int64)
    holes: list[tuple[int, int, int]] = []  # begin, end, the segment that opened it
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
    return kind, _Holes(holes)


@dataclass(frozen=True)
class _Holes:
    """Holes that nothing filled: begin, end, and the segment that opened each."""

    holes: list[tuple[int, int, int]]

    def acknowledged_bytes(self, una: int) -> int:
        return sum(max(min(hole[1], una) - hole[0], 0) for hole in self.holes)


def _filling(
    at: int, maker: int, time: Integers, stamp: Integers, ident: Integers, has_stamps: bool, rtt_ns: int | None
) -> int:
    """LATE if what fills a hole was only overtaken, FILLS if it was lost and sent again."""
    if has_stamps and stamp[at] != stamp[maker]:
        return FILLS if stamp[at] > stamp[maker] else LATE
    if ident[at] and ident[maker]:
        ahead = (int(ident[at]) - int(ident[maker]) + (1 << 15)) % (1 << 16) - (1 << 15)
        if ahead and abs(ahead) < 1 << 12:
            return FILLS if ahead > 0 else LATE
    lag = int(time[at]) - int(time[maker])
    return LATE if rtt_ns is not None and lag < _LATE_SHARE * rtt_ns else FILLS


def _acks(
    connection: TapConnection, back: Integers, una: Integers, stamp: Integers, sent: SeenSent, report: Reported
) -> SeenAcks:
    time, window = connection.column("time_ns")[back], connection.column("window")[back]
    scale = _scale(connection)
    before = np.concatenate([una[:1], una[:-1]])
    outstanding = _top_before(sent, back) > una
    payload = connection.column("payload_bytes")[back]
    repeats = (una == before) & outstanding & (payload == 0)
    repeats[0] = False
    scaled = window << scale if scale is not None else np.full(window.size, -1, np.int64)
    return SeenAcks(back, time, una, scaled, stamp, report.delivered, repeats, report.top)


def _sent_twice(sent: SeenSent, acks: SeenAcks, doubles: list[Double]) -> Integers:
    """The segments whose bytes a DSACK reports; of several copies, the last one sent."""
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
    """Retransmissions whose first ACK echoes an earlier stamp (the Eifel detection, RFC 3522): the original had
    arrived."""
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
    """The shift of the receiver's window, as a sender takes it; None if no SYN was captured that tells it."""
    sender, receiver = connection.options["sender"], connection.options["receiver"]
    for said in (sender, receiver):
        if said is not None and said.scale is None:
            return 0 if said.whole else None
    return min(receiver.scale, MOST_SCALE) if receiver is not None and receiver.scale is not None else None


def _top_before(sent: SeenSent, places: Integers) -> Integers:
    at = np.searchsorted(sent.place, places) - 1
    return np.where(at >= 0, sent.top[np.maximum(at, 0)], sent.begin[0])


def _handshake(connection: TapConnection, keep: Flags) -> tuple[int | None, int | None, int | None]:
    flags, time = connection.column("flags"), connection.column("time_ns")
    opens = np.flatnonzero(keep & ((flags & (SYN | ACK)) == SYN))
    answers = np.flatnonzero(keep & ((flags & (SYN | ACK)) == (SYN | ACK)))
    if opens.size > 1 or answers.size > 1:  # sent again: which one was answered is not known
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
