# SPDX-License-Identifier: Apache-2.0
"""Captures made without a kernel: a sender in slow start over one queue, packet by packet, with a tap on the way.

The sender doubles what is in flight each round until a loss, the receive window or the end of the data; then it keeps
half. It is no TCP: it is what a reader of captures must tell apart, with numbers that are known exactly.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.explain.damage import Packet

MSS, HEADERS = 1448, 66
_NS = 1_000_000_000
_TIMEOUT_NS = 400_000_000
_CLIENT, _SERVER = bytes([192, 0, 2, 1]), bytes([198, 51, 100, 2])


@dataclass
class Path:
    """``before_ns`` lies between the sender and the tap, of the way there and of the way back; the queue is behind the
    tap. ``policed`` drops what finds no token instead of queueing it. ``split_ns``: a proxy answers the handshake."""

    rate: float = 20e6
    rtt_ns: int = 40_000_000
    buffer_bytes: float = 1e9
    before_ns: int = 0
    policed: float | None = None
    bucket_bytes: float = 20_000.0
    split_ns: int | None = None
    window_bytes: int = 4_000_000
    total_bytes: int = 4_000_000
    first_window: int = 10
    overtakes: Callable[[int], int] = field(default=lambda _number: 0)  # ns by which a segment comes late
    loses: Callable[[int], bool] = field(default=lambda _number: False)  # whether chance takes the n-th one sent
    turn_ns: int = 1  # of a link that hands ACKs over together, at its turns
    marked_at: int | None = None  # bytes acknowledged: there the sender halves its window by a mark of ECN


class Written:
    """Writes packets of one connection: ``stamps`` says whether they have time stamps of TCP."""

    EPOCH_NS = 1_700_000_000 * _NS

    def __init__(self, stamps: bool = True) -> None:
        self._stamps = stamps
        self._idents = itertools.count(1)

    def packet(self, time_ns: int, ours: bool, seq: int, ack: int, payload: int, window: int, stamps: tuple[int, int],
               *, flags: int = 0x10, sack: list[tuple[int, int]] | None = None) -> Packet:  # fmt: skip
        said = struct.pack(">II", *(each & 0xFFFFFFFF for each in stamps))
        options = b"\x01\x01\x08\x0a" + said if self._stamps else b""
        if flags & 2:
            clock = b"\x08\x0a" + said if self._stamps else b"\x01\x01"
            options = b"\x02\x04\x05\xb4\x04\x02" + clock + b"\x01\x03\x03\x07"
        elif sack:
            options += struct.pack(">BBBB", 1, 1, 5, 2 + 8 * len(sack))
            options += b"".join(struct.pack(">II", a & 0xFFFFFFFF, b & 0xFFFFFFFF) for a, b in sack)
        size = 20 + len(options)
        addresses = _CLIENT + _SERVER if ours else _SERVER + _CLIENT
        ports = (40000, 443) if ours else (443, 40000)
        tcp = struct.pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, size << 2, flags, window, 0, 0)
        length = 20 + size + payload
        ip = struct.pack(">BBHHHBBH", 0x45, 0, length, next(self._idents) & 0xFFFF, 0x4000, 64, 6, 0) + addresses
        frame = b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\x00" + ip + tcp + options
        return Packet(self.EPOCH_NS + time_ns, frame, 14 + length)


class _Capture:
    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self._written = Written()

    def add(self, time_ns: int, ours: bool, seq: int, ack: int, payload: int, window: int, stamps: tuple[int, int],
            *, flags: int = 0x10, sack: list[tuple[int, int]] | None = None) -> None:  # fmt: skip
        self.packets.append(
            self._written.packet(time_ns, ours, seq, ack, payload, window, stamps, flags=flags, sack=sack)
        )


def transfer(path: Path, first: int = 4_294_000_000, far: list[Packet] | None = None) -> list[Packet]:
    """What the tap saw of one transfer; ``first`` is the sender's first number, so that it wraps. What a tap at the
    receiver saw is added to ``far``."""
    seen = _Capture()
    there: list[Packet] = [] if far is None else far
    count = itertools.count()
    shift = path.before_ns
    scaled = path.window_bytes >> 7
    shake = path.rtt_ns if path.split_ns is None else path.split_ns

    def stamp(time_ns: int) -> int:
        return 1000 + time_ns // 1_000_000

    def arrived(number: int, time_ns: int) -> None:
        there.append(Packet(Written.EPOCH_NS + time_ns, seen.packets[number].data, seen.packets[number].wire))

    start = shake  # the sender has its answer
    seen.add(shift, True, first - 1, 0, 0, 64240, (stamp(0), 0), flags=2)
    seen.add(shake - shift, False, 0, first, 0, 65160, (5000, stamp(0)), flags=0x12)
    seen.add(shake + shift, True, first, 1, 0, 502, (stamp(shake), 5000))
    for number, half in enumerate((1, 1, 3)):
        arrived(number, half * path.rtt_ns // 2)
    events: list[tuple[int, int, str, tuple[int, ...]]] = []
    order = itertools.count()
    free_ns, tokens, tokens_ns = 0.0, path.bucket_bytes, 0
    nxt = una = 0
    cwnd = path.first_window * MSS
    growing, recover = True, -1
    interface_ns = 0
    received: list[tuple[int, int]] = []
    edge = 0  # all before it came in order; ``received`` is behind it
    last_echo, held = 5000, 0

    def push(time_ns: float, what: str, *values: int) -> None:
        heapq.heappush(events, (round(time_ns), next(order), what, values))

    def send(now: int, begin: int, size: int) -> None:
        nonlocal free_ns, tokens, tokens_ns
        seen.add(now + shift, True, first + begin, 1, size, 502, (stamp(now), last_echo))
        at, frame, number = now + shift, size + HEADERS, len(seen.packets) - 1
        if path.loses(next(count)):
            return
        if path.policed is not None:
            tokens = min(path.bucket_bytes, tokens + (at - tokens_ns) * path.policed / 8 / _NS)
            tokens_ns = at
            if tokens < frame:
                return
            tokens -= frame
        queued = max(free_ns - at, 0.0) * path.rate / 8 / _NS
        if queued + frame > path.buffer_bytes:
            return
        free_ns = max(free_ns, at) + frame * 8 * _NS / path.rate
        late = path.overtakes(begin // MSS)
        push(free_ns + path.rtt_ns / 2 - shift + late, "data", begin, begin + size, stamp(now), number)

    def fill(now: int) -> None:
        nonlocal nxt, interface_ns
        while nxt < path.total_bytes and nxt + MSS - una <= min(cwnd, path.window_bytes):
            size = min(MSS, path.total_bytes - nxt)
            interface_ns = max(interface_ns, now)
            push(interface_ns, "send", nxt, size)
            nxt += size
            interface_ns += 12_112  # an interface of 1 Gbit/s

    fill(start)
    while events:
        now, _, what, values = heapq.heappop(events)
        if what == "send":
            send(now, *values)
        elif what == "timer":
            if values[0] == una < nxt:
                growing, recover, cwnd = False, nxt, 2 * MSS
                push(now, "send", una, MSS)
                push(now + _TIMEOUT_NS, "timer", una)
        elif what == "data":
            begin, end, echoed, number = values
            arrived(number, now)
            if end > edge:
                received = _merged([*received, (begin, end)])
            fresh = edge
            while received and received[0][0] <= edge:
                edge = max(edge, received.pop(0)[1])
            held = held + 1 if edge > fresh and not received else 2
            if held >= 2 or edge >= path.total_bytes:
                held = 0
                at_turn = -(-round(now + path.rtt_ns / 2) // path.turn_ns) * path.turn_ns
                push(at_turn, "ack", edge, echoed, *itertools.chain(*received[-3:][::-1]))
        else:
            acked, echoed, *blocks = values
            pairs = [(first + a, first + b) for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
            seen.add(now - shift, False, 1, first + acked, 0, scaled, (5000 + now // 1_000_000, echoed), sack=pairs)
            arrived(len(seen.packets) - 1, now - path.rtt_ns // 2)
            last_echo = 5000 + now // 1_000_000
            fresh_ack = acked > una
            if fresh_ack:
                if path.marked_at is not None and una < path.marked_at <= acked:
                    growing, cwnd = False, max(cwnd // 2, 2 * MSS)
                cwnd += acked - una if growing else 0
                una = acked
            top = max(blocks, default=0)
            if blocks and top - una > 3 * MSS and una >= recover:
                growing, recover = False, nxt
                cwnd = max(cwnd // 2, 2 * MSS)
                holes: list[int] = []
                at = una
                for a, b in _merged([*zip(blocks[::2], blocks[1::2], strict=True)]):
                    holes += list(range(at, a, MSS))
                    at = b
                for number, hole in enumerate(holes):
                    push(now + number * 12_112, "send", hole, MSS)
            elif fresh_ack and una < recover:
                push(now, "send", una, MSS)  # a partial ACK: that one was lost as well
            fill(now)
            if una < nxt:
                push(now + _TIMEOUT_NS, "timer", una)
    there.sort(key=lambda each: each.time_ns)
    seen.packets.sort(key=lambda each: each.time_ns)
    return seen.packets


def _merged(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for begin, end in sorted(blocks):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
