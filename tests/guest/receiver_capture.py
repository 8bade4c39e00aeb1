# SPDX-License-Identifier: Apache-2.0
"""What a receiver saw and said, from a capture on its own interface: data and ACKs in the order of the wire."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CAPTURE = "collect.pcap=[r1:r1-eth0]"
# Standard slow start into a buffer of one BDP (412 frames): some 800 packets are lost, every other one.
HEAVY_LOSS = ("algorithm=cubic-no-hystart", "path.rate=50 Mbit/s", "path.rtt=100 ms", "duration=3 s")

_ETHERNET_BYTES = 14
_TCP = 6
_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_NOP, _END, _SACK_PERMITTED, _SACK = 1, 0, 4, 5
_WRAP = 2**32


@dataclass(frozen=True)
class Segment:
    """A TCP segment. Times are ns of the capture's clock; sequence numbers are relative to the first byte of data."""

    time_ns: int
    sent: bool  # by the receiver
    flags: int
    sequence: int
    acknowledged: int
    payload_bytes: int
    sack_permitted: bool
    sack: tuple[tuple[int, int], ...]  # relative to the first byte of data
    checksum_ok: bool | None  # None where the device had not computed it

    @property
    def is_data(self) -> bool:
        return not self.sent and self.payload_bytes > 0

    @property
    def end(self) -> int:
        """Behind its last byte; a FIN counts as one."""
        return self.sequence + self.payload_bytes + bool(self.flags & _FIN)

    @property
    def takes_room(self) -> bool:
        """Whether what the other end sent is to be acknowledged: data, or the FIN."""
        return not self.sent and self.end > self.sequence

    @property
    def is_ack(self) -> bool:
        """An ACK without data that neither opens nor closes."""
        return self.sent and not self.payload_bytes and self.flags & (_SYN | _FIN | _RST | _ACK) == _ACK


@dataclass(frozen=True)
class Conversation:
    """All segments of one connection, ``handshake`` those with SYN."""

    handshake: list[Segment]
    segments: list[Segment]

    @property
    def data(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.is_data]

    @property
    def acks(self) -> list[Segment]:
        return [segment for segment in self.segments if segment.is_ack]

    def until_disorder(self) -> list[Segment]:
        """Everything before the first data segment that is not the next one."""
        found: list[Segment] = []
        expected = 0
        for segment in self.segments:
            if segment.is_data:
                if segment.sequence != expected:
                    return found
                expected += segment.payload_bytes
            found.append(segment)
        return found


def read_conversation(path: Path, receiver_port: int) -> Conversation:
    """The connection to ``receiver_port`` in a nanosecond capture of IPv4 (collect.pcap) at the receiver."""
    parsed = [found for time_ns, frame in _frames(path) if (found := _parse(time_ns, frame, receiver_port))]
    handshake = [segment for segment in parsed if segment.flags & _SYN]
    origin = next(segment.sequence for segment in handshake if not segment.sent) + 1
    segments = [_relative(segment, origin) for segment in parsed if not segment.flags & _SYN]
    return Conversation(handshake, segments)


def waits(segments: list[Segment]) -> Iterator[tuple[int, int]]:
    """For each ACK: data segments since the ACK before it, and ns from the first of them to the ACK."""
    waiting: list[Segment] = []
    for segment in segments:
        if segment.is_data:
            waiting.append(segment)
        elif segment.is_ack:
            yield len(waiting), segment.time_ns - waiting[0].time_ns if waiting else 0
            waiting = []


@dataclass(frozen=True)
class Disorder:
    """An ACK and what lay out of order when it left: blocks of data above what it acknowledges, sorted."""

    ack: Segment
    blocks: list[tuple[int, int]]


def disorder(segments: list[Segment]) -> Iterator[Disorder]:
    """What a receiver that keeps everything would hold at each ACK it sends."""
    blocks: list[tuple[int, int]] = []
    for segment in segments:
        if segment.takes_room:
            blocks = _joined([*blocks, (segment.sequence, segment.end)])
        elif segment.is_ack:
            yield Disorder(segment, [block for block in blocks if block[0] > segment.acknowledged])


@dataclass(frozen=True)
class Suppressing:
    """An ACK, and what a receiver with a limit would acknowledge and hold; ``discarded`` counts segments until then."""

    ack: Segment
    expected: int
    blocks: list[tuple[int, int]]
    suppressed: bool
    discarded: int


def suppressing(segments: list[Segment], limit_blocks: int) -> Iterator[Suppressing]:
    """A receiver that takes nothing more out of order once it holds so many blocks, until it holds none."""
    expected, discarded = 0, 0
    blocks: list[tuple[int, int]] = []
    suppressed = False
    for segment in segments:
        if segment.takes_room:
            start, end = segment.sequence, segment.end
            if start > expected and suppressed:
                discarded += 1
            else:
                blocks = _joined([*blocks, (start, end)])
            while blocks and blocks[0][0] <= expected:
                expected = max(expected, blocks.pop(0)[1])
            suppressed = bool(blocks) and (suppressed or len(blocks) >= limit_blocks)
        elif segment.is_ack:
            yield Suppressing(segment, expected, list(blocks), suppressed, discarded)


def _joined(blocks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(blocks):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _relative(segment: Segment, origin: int) -> Segment:
    shift = {
        "sequence": segment.sequence if segment.sent else (segment.sequence - origin) % _WRAP,
        "acknowledged": (segment.acknowledged - origin) % _WRAP if segment.sent else segment.acknowledged,
        "sack": tuple(((start - origin) % _WRAP, (end - origin) % _WRAP) for start, end in segment.sack),
    }
    return Segment(**{**segment.__dict__, **shift})


def _parse(time_ns: int, frame: bytes, receiver_port: int) -> Segment | None:
    packet = frame[_ETHERNET_BYTES:]
    header_bytes = (packet[0] & 15) * 4
    if packet[9] != _TCP:
        return None
    tcp = packet[header_bytes:]
    source, destination, sequence, acknowledged = struct.unpack_from("!HHII", tcp)
    if receiver_port not in (source, destination):
        return None
    options_end = (tcp[12] >> 4) * 4
    payload_bytes = struct.unpack_from("!H", packet, 2)[0] - header_bytes - options_end
    sack_permitted, sack = _options(tcp[20:options_end])
    return Segment(
        time_ns=time_ns,
        sent=source == receiver_port,
        flags=tcp[13],
        sequence=sequence,
        acknowledged=acknowledged,
        payload_bytes=payload_bytes,
        sack_permitted=sack_permitted,
        sack=sack,
        checksum_ok=_checksum(packet[12:20], tcp[:options_end]) if not payload_bytes else None,
    )


def _options(options: bytes) -> tuple[bool, tuple[tuple[int, int], ...]]:
    permitted, position = False, 0
    sack: tuple[tuple[int, int], ...] = ()
    while position < len(options) and options[position] != _END:
        kind = options[position]
        length = 1 if kind == _NOP else options[position + 1]
        assert length and position + length <= len(options), "malformed TCP options"
        if kind == _SACK_PERMITTED:
            permitted = True
        elif kind == _SACK:
            numbers = struct.unpack_from(f"!{(length - 2) // 4}I", options, position + 2)
            sack = tuple(zip(numbers[::2], numbers[1::2], strict=True))
        position += length
    return permitted, sack


def _checksum(addresses: bytes, tcp: bytes) -> bool | None:
    """Of a segment without payload; None where only the pseudo header's sum is there (checksum offload)."""
    pseudo = addresses + struct.pack("!HH", _TCP, len(tcp))
    if _sum(pseudo) == struct.unpack_from("!H", tcp, 16)[0]:
        return None
    return _sum(pseudo + tcp) == 0xFFFF


def _sum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Time (ns) and captured bytes of every packet."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D, "not a little-endian nanosecond capture"
    position = 24
    while position < len(data):
        seconds, nanoseconds, length = struct.unpack_from("<III", data, position)
        yield seconds * 10**9 + nanoseconds, data[position + 16 : position + 16 + length]
        position += 16 + length
