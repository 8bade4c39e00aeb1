# SPDX-License-Identifier: Apache-2.0
"""Captures of stacks, programs and interfaces that howdah's own runs never have, made of packets of ours.

Each changes what ``made.transfer`` gives, or is written segment by segment.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.explain.damage import DAMAGES, Packet, inside, offloaded, pcap, pcapng_block
from tests.explain.made import MSS, transfer
from tests.explain.made import Path as Drawn

_ETHERNET, _IP, _TCP = 14, 14, 34
_MS = 1_000_000
_SECOND = 1000 * _MS
SYN, RST, PSH, ACK, ECE, CWR = 2, 4, 8, 16, 64, 128
QUEUE = Drawn(buffer_bytes=100_000)


def is_ours(packet: Packet) -> bool:
    return packet.data[26:30] == bytes([192, 0, 2, 1])


def flags_of(packet: Packet) -> int:
    return packet.data[_TCP + 13]


def with_flags(packet: Packet, flags: int) -> Packet:
    return replace(packet, data=packet.data[: _TCP + 13] + bytes([flags]) + packet.data[_TCP + 14 :])


def without_stamps(packets: list[Packet], scale: int = 7) -> list[Packet]:
    """As Windows sends: NOPs where the time stamps were, and a scale of its own."""
    found = []
    for each in packets:
        data = bytearray(each.data)
        if flags_of(each) & SYN:
            data[_TCP + 26 : _TCP + 36] = b"\1" * 10
            data[-1] = scale
        else:
            at = data.index(b"\x08\x0a", _TCP + 20)
            data[at : at + 10] = b"\1" * 10
            window = struct.unpack_from(">H", data, _TCP + 14)[0] << 7 >> scale
            struct.pack_into(">H", data, _TCP + 14, window)
        found.append(replace(each, data=bytes(data)))
    return found


def super_segments(packets: list[Packet]) -> list[Packet]:
    """Up to 64 kB in one, whose IP length is 0, as an interface that cuts is given them."""
    return [replace(each, data=each.data[:16] + b"\0\0" + each.data[18:]) if each.wire > 1600 else each
            for each in offloaded(packets)]  # fmt: skip


def moved_stamps(packets: list[Packet], by: int) -> list[Packet]:
    """Clocks of both ends that wrap in mid-flow."""
    found = []
    for each in packets:
        data = bytearray(each.data)
        at = data.index(b"\x08\x0a", _TCP + 20) + 2
        stamp, echo = struct.unpack_from(">II", data, at)
        struct.pack_into(">II", data, at, stamp + by & 0xFFFFFFFF, (echo + by) & 0xFFFFFFFF if echo else 0)
        found.append(replace(each, data=bytes(data)))
    return found


def from_server(packets: list[Packet]) -> list[Packet]:
    """A download, seen at the server: the receiver opens."""
    kinds = {SYN: 18, 18: SYN}
    first, second, third, *rest = packets
    opened = with_flags(replace(second, time_ns=first.time_ns), kinds[18])
    return [opened, with_flags(replace(first, time_ns=first.time_ns + 20_000), kinds[SYN]),
            replace(second, data=_turned(third), time_ns=third.time_ns), *rest]  # fmt: skip


def _turned(third: Packet) -> bytes:
    """The receiver's ACK that ends the handshake: addresses and ports turned, numbers of the receiver."""
    data = bytearray(third.data)
    data[26:34] = third.data[30:34] + third.data[26:30]
    data[34:38] = third.data[36:38] + third.data[34:36]
    struct.pack_into(">I", data, _TCP + 4, 1)
    data[_TCP + 8 : _TCP + 12] = third.data[_TCP + 4 : _TCP + 8]
    return bytes(data)


def marked(drawn: Drawn) -> list[Packet]:
    """ECN: both ends agree; the receiver reports a mark at ``marked_at``, until the sender says that it answered."""
    found, until = [], None
    assert drawn.marked_at is not None
    edge = 4_294_000_000 + drawn.marked_at
    for each in transfer(drawn):
        flags = flags_of(each)
        ahead = (struct.unpack_from(">I", each.data, _TCP + 8)[0] - edge) % (1 << 32)
        if flags & SYN:
            flags |= ECE | (CWR if is_ours(each) else 0)
        elif not is_ours(each) and ahead < 60 * MSS:
            flags |= ECE
            until = until or each.time_ns
        elif is_ours(each) and until is not None and each.wire > 1000:
            flags, until = flags | CWR, None
        found.append(with_flags(each, flags))
    return found


@dataclass
class Talk:
    """A conversation of TCP, written segment by segment, seen at the client. Times in ns since its begin."""

    scale: int = 7
    stamps: bool = True
    packets: list[Packet] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.packets = []
        self._number = 0

    def say(self, time_ns: int, ours: bool, seq: int, ack: int, size: int = 0, *, flags: int = ACK,
            window: int = 502, sack: tuple[tuple[int, int], ...] = ()) -> None:  # fmt: skip
        stamp = struct.pack(">II", 1000 + time_ns // _MS & 0xFFFFFFFF, 1000 + max(time_ns - 40 * _MS, 0) // _MS)
        options = b""
        if flags & SYN:
            options = b"\x02\x04\x05\xb4\x04\x02" + b"\x01\x03\x03" + bytes([self.scale]) + b"\x01\x01\x01"
        if self.stamps:
            options += (b"\x01\x01" if not flags & SYN else b"") + b"\x08\x0a" + stamp
        if sack:
            options += bytes([1, 1, 5, 2 + 8 * len(sack)]) + b"".join(struct.pack(">II", *each) for each in sack)
        options += b"\1" * (-len(options) % 4)
        addresses = bytes([192, 0, 2, 1, 198, 51, 100, 2])
        addresses = addresses if ours else addresses[4:] + addresses[:4]
        ports = (40000, 443) if ours else (443, 40000)
        head = 20 + len(options)
        tcp = struct.pack(">HHIIBBHHH", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, head << 2, flags, window, 0, 0)
        self._number += 1
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + head + size, self._number & 0xFFFF, 0x4000, 64, 6, 0) + addresses
        frame = b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\x00" + ip + tcp + options
        self.packets.append(Packet(1_700_000_000 * _SECOND + time_ns, frame, 34 + head + size))

    def open(self, rtt_ns: int = 40 * _MS, ours: bool = True) -> int:
        """The handshake; when it is over."""
        self.say(0, ours, 999, 0, flags=SYN, window=64240)
        self.say(rtt_ns if ours else 0, not ours, 4999, 1000, flags=SYN | ACK, window=65160)
        self.say(rtt_ns, ours, 1000, 5000)
        return rtt_ns


def keep_alive(count: int = 60) -> list[Packet]:
    """HTTP/1.1: requests, each with a response of a few segments; nothing is ever in flight for long. The sender is the
    server, the tap at the client."""
    talk = Talk()
    at = talk.open()
    request, response = 1000, 5000
    for number in range(count):
        talk.say(at, True, request, response, 400, flags=ACK | PSH)
        request += 400
        at += 40 * _MS
        sizes = [MSS] * (1 + number % 4) + [300]
        for size in sizes:
            talk.say(at, False, response, request, size)
            response += size
            at += 12_000
        talk.say(at + 5000, True, request, response)
        at += 30 * _MS
    return talk.packets


def beyond(scale: int) -> list[Packet]:
    """Ten segments and a pause, again and again, to a receiver whose window is 2**15 shifted by ``scale``."""
    talk = Talk(scale=scale)
    at, seq = talk.open(), 1000
    for _ in range(40):
        for number in range(10):
            talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
        for number in range(1, 6):
            talk.say(at + 40 * _MS + number * 24_000, False, 5000, seq + number * 2 * MSS, window=1 << 15)
        seq += 10 * MSS
        at += 540 * _MS
    return talk.packets


def stalled(probe_bytes: int, count: int = 4) -> list[Packet]:
    """The receiver's window is full, then 0, and opens after probes: of Linux, which repeat the number before, without
    data, or of Windows, with the next byte."""
    talk = Talk(scale=0)
    at = talk.open()
    seq = 1000
    for _ in range(count):
        begin = at
        for number in range(30):
            talk.say(begin + number * 12_000, True, seq + number * MSS, 5000, MSS)
        for number in range(15):
            left = 30 * MSS - (number + 1) * 2 * MSS
            talk.say(begin + 40 * _MS + number * 1_200_000, False, 5000, seq + (number + 1) * 2 * MSS, window=left)
        seq += 30 * MSS
        at = begin + 60 * _MS
        for number in range(3):
            at += (200 << number) * _MS
            talk.say(at, True, seq if probe_bytes else seq - 1, 5000, probe_bytes)
            talk.say(at + 40 * _MS, False, 5000, seq, window=0 if number < 2 else 30 * MSS)
        at += 41 * _MS
    talk.say(at, True, seq, 5000, 500, flags=ACK | PSH)
    talk.say(at + 40 * _MS, False, 5000, seq + 500, window=30 * MSS)
    return talk.packets


def fast_open() -> list[Packet]:
    """Data in the SYN, and the answer of the receiver acknowledges them; then ten rounds of ten segments."""
    talk = Talk()
    talk.say(0, True, 999, 0, 1000, flags=SYN, window=64240)
    talk.say(40 * _MS, False, 4999, 2000, flags=SYN | ACK, window=65160)
    at, seq = 40 * _MS, 2000
    for _ in range(10):
        for number in range(10):
            talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
        for number in range(1, 6):
            talk.say(at + (40 + number) * _MS, False, 5000, seq + 2 * number * MSS)
        seq += 10 * MSS
        at += 46 * _MS
    return talk.packets


def idle_for_hours() -> list[Packet]:
    """Three rounds of slow start, two hours with keepalives of the byte before, and the same three rounds again."""
    talk = Talk()
    at = talk.open()
    seq = 1000
    for turn in range(2):
        for window in (10, 20, 40):
            for number in range(window):
                talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
            for number in range(window // 2):
                talk.say(at + 40 * _MS + number * 1_200_000, False, 5000, seq + (number + 1) * 2 * MSS)
            seq += window * MSS
            at += 40 * _MS + window // 2 * 1_200_000
        for _ in range(95 if not turn else 0):
            at += 75 * _SECOND
            talk.say(at, True, seq - 1, 5000, 1)
            talk.say(at + 40 * _MS, False, 5000, seq)
        at += _SECOND
    return talk.packets


def reneged() -> list[Packet]:
    """What SACK reported is sent again, because the receiver threw it away: all of one window after a timeout."""
    talk = Talk()
    at = talk.open()
    seq = 1000
    for window in (10, 20, 40):
        for number in range(window):
            talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
        for number in range(window // 2):
            talk.say(at + 40 * _MS + number * 100_000, False, 5000, seq + (number + 1) * 2 * MSS)
        seq += window * MSS
        at += 45 * _MS
    for number in range(40):
        talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
    for number in range(10):
        talk.say(at + 40 * _MS + number * 100_000, False, 5000, seq, sack=((seq + MSS, seq + (2 + number) * MSS),))
    at += 300 * _MS
    for number in range(40):
        talk.say(at, True, seq + number * MSS, 5000, MSS)
        talk.say(at + 40 * _MS, False, 5000, seq + (number + 1) * MSS)
        at += 41 * _MS if number % 8 == 7 else 20_000
    talk.packets.sort(key=lambda each: each.time_ns)
    return talk.packets


def smaller_path() -> list[Packet]:
    """A router's message in mid-flow: from then on segments of 1348 bytes, and a window again in those."""
    talk = Talk()
    at = talk.open()
    seq = 1000
    for turn, window in enumerate((10, 20, 40, 40, 40, 40, 40, 40)):
        size = MSS if turn < 4 else MSS - 100
        sent = window * MSS // size if turn != 4 else window
        again = turn == 3
        if again:
            for number in range(window):
                talk.say(at + number * 12_000, True, seq + number * MSS, 5000, MSS)
            at += 10 * _MS
            size = MSS - 100
            sent = -(-window * MSS // size)
        end = seq + window * MSS if again else seq + sent * size
        for number in range(sent):
            first = seq + number * size
            talk.say(at + number * 12_000, True, first, 5000, min(size, end - first))
        for number in range(1, sent + 1, 2):
            talk.say(at + 40 * _MS + number * 300_000, False, 5000, min(seq + (number + 1) * size, end))
        seq = end
        at += 40 * _MS + sent * 300_000 + _MS
    return talk.packets


def reset(packets: list[Packet]) -> list[Packet]:
    """The receiver ends it in mid-flow."""
    part = packets[: len(packets) * 2 // 3]
    last = next(each for each in part[::-1] if not is_ours(each))
    return [*part, with_flags(replace(last, time_ns=part[-1].time_ns + 1000), RST | ACK)]


def of_many_interfaces(packets: list[Packet]) -> bytes:
    """pcapng with three interfaces: the first is not used, stamps of the second count 2^-20 s, of the third ns from an
    offset of its own; comments, keys of TLS, names, statistics, and a block that nobody knows."""
    block = pcapng_block
    parts = [
        block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + struct.pack("<HH8sHH", 1, 8, b"a comme", 0, 0))
    ]
    parts.append(block(1, struct.pack("<HHI", 113, 0, 0)))
    parts.append(block(1, struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3xHH", 9, 1, 0x80 | 20, 0, 0)))
    offset = 1_600_000_000
    parts.append(block(1, struct.pack("<HHI", 1, 0, 0)
                       + struct.pack("<HHB3xHHqHH", 9, 1, 9, 14, 8, offset, 0, 0)))  # fmt: skip
    parts.append(block(10, struct.pack("<II", 0x544C534B, 12) + b"CLIENT_RANDO"))
    parts.append(block(4, struct.pack("<HH4s4sHH", 1, 8, b"\x7f\0\0\1", b"a.b\0", 0, 0)))
    parts.append(block(5, struct.pack("<III", 1, 0, 0)))
    parts.append(block(0x40000001, b"whatever"))
    for each in packets:
        tap = 1 if is_ours(each) else 2
        stamp = each.time_ns * (1 << 20) // _SECOND if tap == 1 else each.time_ns - offset * _SECOND
        head = struct.pack("<IIIII", tap, stamp >> 32, stamp & 0xFFFFFFFF, len(each.data), each.wire)
        body = head + each.data + b"\0" * (-len(each.data) % 4)
        parts.append(block(6, body + struct.pack("<HH4sHHIHH", 1, 4, b"why?", 2, 4, 1, 0, 0)))
    return b"".join(parts)


def halves(packets: list[Packet], ours: bool) -> list[Packet]:
    return [each for each in packets if is_ours(each) == ours]


def radiotap(frame: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 8, 0) + b"\x88\x01" + b"\0" * 24 + b"\xaa\xaa\3\0\0\0" + frame[12:]


def strange() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Each by its name, and what writes it."""
    queue = transfer(QUEUE)
    yield "windows", lambda: pcap(without_stamps(queue, 8), unit_ns=1000)
    yield "windows at a middle", lambda: pcap(without_stamps(transfer(replace(QUEUE, before_ns=8 * _MS)), 8))
    yield "super-segments without a length", lambda: pcap(super_segments(queue))
    yield "windows super-segments", lambda: pcap(super_segments(without_stamps(queue, 8)), unit_ns=1000)
    yield "radiotap", lambda: pcap(inside(radiotap, queue), link=127)
    yield "interfaces of one pcapng", lambda: of_many_interfaces(queue)
    yield "data alone", lambda: pcap(halves(queue, True))
    yield "ACKs alone", lambda: pcap(halves(queue, False))
    yield "keep-alive", lambda: pcap(keep_alive())
    yield "reset", lambda: pcap(reset(queue))
    yield "zero windows", lambda: pcap(stalled(0))
    yield "zero windows and probes of a byte", lambda: pcap(stalled(1))
    yield "smaller path", lambda: pcap(smaller_path())
    yield "ECN", lambda: pcap(marked(Drawn(marked_at=130_000)))
    yield "reneged", lambda: pcap(reneged())
    yield "fast open", lambda: pcap(fast_open())
    yield "stamps wrap", lambda: pcap(moved_stamps(queue, (1 << 32) - 1300))
    yield "idle for hours", lambda: pcap(idle_for_hours())
    yield "gathered ACKs", lambda: pcap(transfer(replace(QUEUE, turn_ns=4 * _MS)))
    yield "from a server", lambda: pcap(from_server(queue))
    yield "on any, SLL2", lambda: DAMAGES["SLL2"](queue)
