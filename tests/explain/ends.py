# SPDX-License-Identifier: Apache-2.0
"""Captures of a sender, a path and a receiver that each misbehave in one way, packet by packet, without a kernel.

The sender has SACK's and NewReno's repair, timeouts, tail loss probes, the undoing of both, and probes of a closed
window. What each did is known, so a reader of its captures can be told what it must not say.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.explain.damage import Packet
from tests.explain.made import HEADERS, MSS, Written

MS = 1_000_000
SECOND = 1000 * MS
_WIRE_NS = 12_112  # a full segment on an interface of 1 Gbit/s
_DELAYED_ACK_NS, _LEAST_TIMEOUT_NS = 40 * MS, 200 * MS
_FIRST, _SCALE = 4_294_000_000, 7
_STARTUP, _DRAIN, _STEADY = 2.89, 0.35, 1.0
Span = tuple[int, int]  # of time, in ns
Blocks = list[tuple[int, int]]


def never(_number: int) -> bool:
    return False


@dataclass
class Ends:
    """Times in ns since the SYN. Of the sender: ``writes`` says how many bytes its application has written by a time.
    Of the path: ``longer`` is by how much a packet that enters at a time takes longer; while it ``stalls``, the link
    lets nothing through; ``late`` is what the n-th packet takes longer, and may be overtaken. Of the receiver: it
    ``discards`` what comes out of order; at ``reneges_at`` it throws that away once; while it ``sleeps``, what arrives
    waits; its application does not read while it ``rests``; its host ``refuses`` the n-th packet that arrives.
    ``alters`` is what something on the way makes of the blocks of SACK."""

    rate: float = 20e6
    rtt_ns: int = 40 * MS
    buffer_bytes: float = 100_000
    total_bytes: int = 4_000_000
    writes: Callable[[int], int] = lambda _time: 1 << 60
    sack: bool = True
    stamps: bool = True
    undoes: bool = False
    probes_tail: bool = False
    paced: bool = False
    keeps: float = 0.5
    longer: Callable[[int], int] = lambda _time: 0
    stalls: tuple[Span, ...] = ()
    late: Callable[[int], int] = lambda _number: 0
    loses: Callable[[int], bool] = never
    loses_ack: Callable[[int], bool] = never  # by time
    gathers_ns: int = 1
    discards: bool = False
    reneges_at: int | None = None
    sleeps: tuple[Span, ...] = ()
    rests: tuple[Span, ...] = ()
    refuses: Callable[[int], bool] = never
    room_bytes: int = 4_000_000
    alters: Callable[[Blocks], Blocks] = lambda blocks: blocks


@dataclass
class _Segment:
    begin: int
    size: int
    sent_ns: int = 0
    delivered: int = 0
    times: int = 0
    sacked: bool = False
    lost: bool = False


@dataclass
class Play:
    """``near`` is what a tap at the sender saw, ``far`` what one at the receiver did."""

    ends: Ends
    near: list[Packet] = field(default_factory=list)
    far: list[Packet] = field(default_factory=list)

    def __post_init__(self) -> None:
        ends = self.ends
        self._written = Written(ends.stamps)
        self._events: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._order, self._count, self._arrivals = itertools.count(), itertools.count(), itertools.count()
        self._segments: dict[int, _Segment] = {}
        self._una = self._nxt = self._recover = self._duplicates = self._backoff = 0
        self._window, self._room = 10 * MSS, ends.room_bytes
        self._threshold: float = 1 << 60
        self._before: tuple[int, float] | None = None
        self._free_ns = 0.0
        self._interface_ns = 0
        self._timer = self._wake = 0
        self._srtt = ends.rtt_ns
        self._echo = self._recent = 5000
        self._delivered, self._rate, self._full, self._rounds, self._round_end = 0, 0.0, 0.0, 0, 0
        self._gain = _STARTUP
        self._edge = self._said = self._unread = self._held = self._delayed = 0
        self._received: Blocks = []
        self._reneged = False
        self._play()

    # The course of events
    def _at(self, time_ns: float, what: Callable[..., None], *values: object) -> None:
        heapq.heappush(self._events, (round(time_ns), next(self._order), what, values))

    def _play(self) -> None:
        rtt = self.ends.rtt_ns
        w = self._written
        opened = w.packet(0, True, _FIRST - 1, 0, 0, 64240, (_stamp(0), 0), flags=2)
        answered = w.packet(rtt, False, 0, _FIRST, 0, 65160, (5000, _stamp(0)), flags=0x12)
        ended = w.packet(rtt, True, _FIRST, 1, 0, 502, (_stamp(rtt), 5000))
        self.near += [opened, answered, ended]
        self.far += [_later(opened, rtt // 2), _later(answered, -rtt // 2), _later(ended, rtt // 2)]
        self._at(rtt, self._fill)
        for span in self.ends.rests:
            self._at(span[1], self._read)
        while self._events and self._una < self.ends.total_bytes:
            now, _, what, values = heapq.heappop(self._events)
            what(now, *values)
        self.near.sort(key=lambda each: each.time_ns)
        self.far.sort(key=lambda each: each.time_ns)

    # The sender
    @property
    def _flight(self) -> int:
        return sum(each.size for each in self._segments.values() if not each.sacked and not each.lost)

    def _fill(self, now: int) -> None:
        """Send what the window allows: what was lost first."""
        flight = before = self._flight
        lost = [each for each in self._segments.values() if each.lost]
        end = min(self.ends.total_bytes, self.ends.writes(now))
        if self.ends.paced and now < self._interface_ns:
            return
        while flight + MSS <= self._window:
            if lost:
                each = lost.pop(0)
            elif self._nxt < end and self._nxt + MSS - self._una <= self._room:
                each = self._segments[self._nxt] = _Segment(self._nxt, min(MSS, end - self._nxt))
                self._nxt += each.size
            else:
                break
            flight += each.size
            self._send(max(now, self._interface_ns), each)
            gap = _WIRE_NS
            if self.ends.paced and self._rate:
                gap = round(each.size * 8 * SECOND / (self._gain * self._rate))
            self._interface_ns = max(now, self._interface_ns) + gap
            if self.ends.paced and self._rate:
                self._at(self._interface_ns, self._fill)
                break
        if flight > before or self._nxt == self._una:
            self._arm(now)
        if end < self.ends.total_bytes and self._nxt >= end and self._wake <= now:
            self._wake = now + MS
            self._at(self._wake, self._fill)

    def _send(self, now: int, each: _Segment) -> None:
        each.lost, each.sent_ns, each.delivered = False, now, self._delivered
        each.times += 1
        self._at(now, self._leave, each.begin, each.size)

    def _leave(self, now: int, begin: int, size: int) -> None:
        packet = self._written.packet(now, True, _FIRST + begin, 1, size, 502, (_stamp(now), self._echo))
        self.near.append(packet)
        number, frame = next(self._count), size + HEADERS
        if self.ends.loses(number):
            return
        queued = max(self._free_ns - now, 0.0) * self.ends.rate / 8 / SECOND
        if queued + frame > self.ends.buffer_bytes:
            return
        begin_ns = max(self._free_ns, float(now))
        took = frame * 8 * SECOND / self.ends.rate
        for first, last in self.ends.stalls:
            if begin_ns < last and begin_ns + took > first:
                begin_ns = float(last)
        self._free_ns = begin_ns + took
        way = self.ends.rtt_ns / 2 + self.ends.longer(now) + self.ends.late(number)
        arrives = _awake(round(self._free_ns + way), self.ends.sleeps)
        self._at(arrives, self._arrive, packet, begin, begin + size, _stamp(now))

    def _arm(self, now: int) -> None:
        self._timer += 1
        if self._nxt > self._una:
            wait = (self._srtt + _LEAST_TIMEOUT_NS) << min(self._backoff, 6)
            if self.ends.probes_tail and not self._recover > self._una and not self._backoff:
                self._at(now + 2 * self._srtt, self._probe_tail, self._timer)
            else:
                self._at(now + wait, self._time_out, self._timer)
        elif self._room < MSS and self._nxt < self.ends.total_bytes:
            self._at(now + (_LEAST_TIMEOUT_NS << min(self._backoff, 6)), self._probe_window, self._timer)

    def _probe_tail(self, now: int, timer: int) -> None:
        if timer == self._timer:
            last = max(self._segments.values(), key=lambda each: each.begin)
            if not last.sacked:
                self._send(now, last)
            self._timer += 1
            self._at(now + self._srtt + _LEAST_TIMEOUT_NS, self._time_out, self._timer)

    def _probe_window(self, now: int, timer: int) -> None:
        if timer == self._timer:
            packet = self._written.packet(now, True, _FIRST + self._una - 1, 1, 0, 502, (_stamp(now), self._echo))
            self.near.append(packet)
            self._backoff += 1
            self._at(now + self.ends.rtt_ns // 2, self._answer, _later(packet, self.ends.rtt_ns // 2))
            self._arm(now)

    def _answer(self, now: int, packet: Packet) -> None:
        self.far.append(packet)
        self._acknowledge(now)

    def _time_out(self, now: int, timer: int) -> None:
        if timer != self._timer or self._una >= self._nxt:
            return
        first = self._segments[min(self._segments)]
        reneged = first.sacked
        self._before = (self._window, self._threshold)
        if self._una >= self._recover:
            self._threshold = max(self.ends.keeps * self._flight, 2 * MSS)
        self._recover, self._window, self._duplicates = self._nxt, MSS, 0
        self._backoff += 1
        for each in self._segments.values():
            each.sacked &= not reneged
            each.lost = not each.sacked
        self._fill(now)

    def _acked(self, now: int, edge: int, room: int, echo: int, blocks: Blocks, stamp: int) -> None:
        self._echo, self._room = max(self._echo, stamp), room
        advanced = edge - self._una
        mine = [each for each in self._segments.values() if each.begin < edge]
        for each in mine:
            del self._segments[each.begin]
            if each.times == 1:
                self._srtt = max(self._srtt * 7 // 8 + (now - each.sent_ns) // 8, self.ends.rtt_ns)
            if not each.sacked:
                self._measure(now, each)
            if each.times > 1 and self._before is not None and self.ends.undoes and echo < _stamp(each.sent_ns):
                (self._window, self._threshold), self._before, self._recover = self._before, None, edge
                for other in self._segments.values():
                    other.lost = False
        for left, right in blocks:
            if not self._una <= left < right <= self._nxt:
                continue
            for each in self._segments.values():
                if not each.sacked and left <= each.begin and each.begin + each.size <= right:
                    each.sacked, each.lost = True, False
                    self._measure(now, each)
        if advanced > 0:
            self._una, self._duplicates, self._backoff = edge, 0, 0
            if edge >= self._recover:
                self._grow(advanced)
                self._before = None if edge > self._recover else self._before
            elif not self.ends.sack and edge in self._segments:
                self._segments[edge].lost = True
        elif self._nxt > self._una:
            self._duplicates += 1
        if advanced > 0:
            self._arm(now)
        self._find_lost()
        self._fill(now)

    def _grow(self, advanced: int) -> None:
        if self.ends.paced:
            self._window = max(round(2 * self._rate / 8 * self.ends.rtt_ns / SECOND), 10 * MSS)
            self._window = self._window * 3 // 2 if self._gain == _STARTUP else self._window
        elif self._window < self._threshold:
            self._window += advanced
        else:
            self._window += max(MSS * advanced // self._window, 1)

    def _measure(self, now: int, each: _Segment) -> None:
        """What BBR looks at: what was delivered while a segment was on its way."""
        self._delivered += each.size
        if not self.ends.paced:
            return
        self._rate = max(self._rate, (self._delivered - each.delivered) * 8 * SECOND / (now - each.sent_ns))
        if each.begin >= self._round_end:
            self._round_end = self._nxt
            grew = self._rate > 1.25 * self._full
            self._full, self._rounds = (self._rate, 0) if grew else (self._full, self._rounds + 1)
            if self._gain == _STARTUP and self._rounds >= 3:
                self._gain = _DRAIN
        if self._gain == _DRAIN and self._flight <= self._rate / 8 * self.ends.rtt_ns / SECOND:
            self._gain = _STEADY

    def _find_lost(self) -> None:
        if self.ends.sack:
            above = 0
            found = []
            for each in sorted(self._segments.values(), key=lambda each: -each.begin):
                above += each.sacked
                if not each.sacked and not each.lost and above >= 3 and each.times == 1:
                    found.append(each)
        else:
            found = [self._segments[self._una]] if self._duplicates == 3 and self._una >= self._recover else []
        if not found:
            return
        if self._una >= self._recover:
            self._before = (self._window, self._threshold)
            self._recover = self._nxt
            if not self.ends.paced:
                self._threshold = max(self.ends.keeps * self._window, 2 * MSS)
                self._window = round(self._threshold)
        for each in found:
            each.lost = True

    # The receiver
    def _arrive(self, now: int, packet: Packet, begin: int, end: int, stamp: int) -> None:
        self.far.append(_moved(packet, now))
        if self.ends.refuses(next(self._arrivals)):
            return
        ends = self.ends
        if ends.reneges_at is not None and now >= ends.reneges_at and self._received and not self._reneged:
            self._received, self._reneged = [], True
        double = [(begin, end)] if end <= self._edge else []
        in_order = begin <= self._edge
        if begin <= self._said:
            self._recent = stamp
        if end > self._edge and (in_order or not ends.discards):
            others = [each for each in self._received if each[1] < begin or each[0] > end]
            joined = [each for each in self._received if each not in others]
            self._received = [(min([begin, *(a for a, _ in joined)]), max([end, *(b for _, b in joined)])), *others]
        before = self._edge
        for left, right in sorted(self._received):
            if left <= self._edge:
                self._edge = max(self._edge, right)
        self._received = [each for each in self._received if each[0] > self._edge]
        if any(first <= now < last for first, last in ends.rests):
            self._unread += self._edge - before
        self._held += 1
        if self._held >= 2 or not in_order or self._received or double or end >= ends.total_bytes or self._unread:
            self._acknowledge(now, double)
        else:
            self._delayed += 1
            self._at(now + _DELAYED_ACK_NS, self._late_ack, self._delayed)

    def _late_ack(self, now: int, number: int) -> None:
        if number == self._delayed and self._held:
            self._acknowledge(now)

    def _read(self, now: int) -> None:
        self._unread = 0
        self._acknowledge(now)

    def _acknowledge(self, now: int, double: Blocks | None = None) -> None:
        self._held, self._said = 0, self._edge
        self._delayed += 1
        blocks = [*(double or []), *self._received][: 3 if self.ends.stamps else 4] if self.ends.sack else []
        blocks = self.ends.alters(blocks)
        room = max(self.ends.room_bytes - self._unread, 0) >> _SCALE
        named = [(_FIRST + a, _FIRST + b) for a, b in blocks]
        stamp, back = _stamp(now) + 4000, -(-(now + self.ends.rtt_ns // 2) // self.ends.gathers_ns)
        when = back * self.ends.gathers_ns
        packet = self._written.packet(when, False, 1, _FIRST + self._edge, 0, room, (stamp, self._recent), sack=named)
        self.far.append(_moved(packet, now))
        if not self.ends.loses_ack(now):
            self._at(when, self._heard, packet, self._edge, room << _SCALE, self._recent, blocks, stamp)

    def _heard(self, now: int, packet: Packet, *told: object) -> None:
        self.near.append(packet)
        self._acked(now, *told)  # type: ignore[arg-type]


def _stamp(time_ns: int) -> int:
    return 1000 + time_ns // MS


def _awake(time_ns: int, sleeps: tuple[Span, ...]) -> int:
    return max([time_ns, *(last for first, last in sleeps if first <= time_ns < last)])


def _later(packet: Packet, by_ns: int) -> Packet:
    return Packet(packet.time_ns + by_ns, packet.data, packet.wire)


def _moved(packet: Packet, time_ns: int) -> Packet:
    return Packet(Written.EPOCH_NS + time_ns, packet.data, packet.wire)
