# SPDX-License-Identifier: Apache-2.0
"""What befalls captures on their way to a reader: each damage makes another file of the packets of a capture."""

from __future__ import annotations

import gzip
import lzma
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zstandard

_ETHERNET = 14


@dataclass
class Packet:
    time_ns: int
    data: bytes
    wire: int


def read(path: Path) -> list[Packet]:
    """The packets of a capture that howdah made, plain or compressed."""
    content = path.read_bytes()
    if path.suffix == ".zst":
        content = zstandard.ZstdDecompressor().decompress(content)
    elif path.suffix == ".xz":
        content = lzma.decompress(content)
    place, found = 24, []
    while place + 16 <= len(content):
        seconds, fraction, here, wire = struct.unpack_from("<IIII", content, place)
        found.append(Packet(seconds * 10**9 + fraction, content[place + 16 : place + 16 + here], wire))
        place += 16 + here
    return found


def pcap(packets: list[Packet], *, link: int = 1, unit_ns: int = 1, order: str = "<") -> bytes:
    magic = {1: 0xA1B23C4D, 1000: 0xA1B2C3D4}[unit_ns]
    parts = [struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 262144, link)]
    for each in packets:
        seconds, rest = divmod(each.time_ns, 10**9)
        parts += [struct.pack(f"{order}IIII", seconds, rest // unit_ns, len(each.data), each.wire), each.data]
    return b"".join(parts)


def pcapng_block(kind: int, body: bytes, order: str = "<") -> bytes:
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(packets: list[Packet], *, resolution: int = 9, order: str = "<") -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        return pcapng_block(kind, body, order)

    units = 10**resolution
    parts = [block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    option = struct.pack(f"{order}HHB3xHH", 9, 1, resolution, 0, 0)
    parts.append(block(1, struct.pack(f"{order}HHI", 1, 0, 0) + option))
    for each in packets:
        stamp = each.time_ns * units // 10**9
        head = struct.pack(f"{order}IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(each.data), each.wire)
        parts.append(block(6, head + each.data + b"\0" * (-len(each.data) % 4)))
    return b"".join(parts)


def inside(before: Callable[[bytes], bytes], packets: list[Packet]) -> list[Packet]:
    """Each frame rewritten by ``before``, which adds to it what it adds to its length on the wire."""
    found = []
    for each in packets:
        data = before(each.data)
        found.append(Packet(each.time_ns, data, each.wire + len(data) - len(each.data)))
    return found


def _tagged(frame: bytes, *tags: bytes) -> bytes:
    return frame[:12] + b"".join(tags) + frame[12:]


def _tunnelled(
    protocol: int, between: bytes, inner: bytes, *, outer: bytes = b"\x0a\x09\x08\x07\x0a\x09\x08\x06"
) -> bytes:
    length = 20 + len(between) + len(inner)
    header = struct.pack(">BBHHHBBH", 0x45, 0, length, 7, 0, 64, protocol, 0) + outer
    return header + between + inner


def _six(frame: bytes) -> bytes:
    """The same segment over IPv6, with a header of destination options."""
    packet = frame[_ETHERNET:]
    size = (packet[0] & 15) * 4
    total = struct.unpack_from(">H", packet, 2)[0] - size
    addresses = b"\x20\x01\x0d\xb8" + b"\0" * 8 + packet[12:16] + b"\x20\x01\x0d\xb8" + b"\0" * 8 + packet[16:20]
    options = struct.pack(">BBBB4x", 6, 0, 1, 4)
    return (
        frame[:12]
        + b"\x86\xdd"
        + struct.pack(">IHBB", 0x60000000, total + 8, 60, 64)
        + addresses
        + options
        + packet[size:]
    )


def _cooked(frame: bytes) -> bytes:
    return struct.pack(">HHH8s", 0, 1, 6, frame[6:12] + b"\0\0") + frame[12:]


def _cooked_two(frame: bytes) -> bytes:
    return frame[12:14] + struct.pack(">HIHBB8s", 0, 3, 1, 0, 6, frame[6:12] + b"\0\0") + frame[14:]


def _ip(frame: bytes) -> bytes:
    return frame[_ETHERNET:]


def _short(packets: list[Packet], size: int) -> list[Packet]:
    return [Packet(each.time_ns, each.data[:size], each.wire) for each in packets]


def _twice(packets: list[Packet]) -> list[Packet]:
    return [again for each in packets for again in (each, Packet(each.time_ns + 3000, each.data, each.wire))]


def _coarse(packets: list[Packet], step_ns: int) -> list[Packet]:
    return [Packet(each.time_ns // step_ns * step_ns, each.data, each.wire) for each in packets]


def _backward(packets: list[Packet]) -> list[Packet]:
    """Neighbours in the file that are in another order than their stamps, as two queues of an interface give."""
    drawn, found = random.Random(1), list(packets)
    for at in range(0, len(found) - 1, 2):
        if drawn.random() < 0.2:
            found[at], found[at + 1] = found[at + 1], found[at]
    return found


def _mpls(frame: bytes) -> bytes:
    return frame[:12] + b"\x88\x47" + struct.pack(">II", 100 << 12 | 0x40, 200 << 12 | 0x140) + frame[_ETHERNET:]


def _gre(frame: bytes) -> bytes:
    return frame[:_ETHERNET] + _tunnelled(47, struct.pack(">HHI", 0x2000, 0x0800, 5), frame[_ETHERNET:])


def _vxlan(frame: bytes) -> bytes:
    udp = struct.pack(">HHHH", 51000, 4789, 16 + len(frame), 0) + struct.pack(">II", 0x08000000, 42 << 8)
    return frame[:_ETHERNET] + _tunnelled(17, udp, frame)


def tunnelled(frame: bytes) -> bytes:
    return frame[:_ETHERNET] + _tunnelled(4, b"", frame[_ETHERNET:])


def _six_in_four(frame: bytes) -> bytes:
    return frame[:_ETHERNET] + _tunnelled(41, b"", _six(frame)[_ETHERNET:])


def _geneve(frame: bytes) -> bytes:
    """With an option of eight bytes."""
    head = struct.pack(">BBHI", 2, 0, 0x6558, 42 << 8) + b"\x01\x02\x03\x01" + b"\0" * 4
    udp = struct.pack(">HHHH", 51000, 6081, 8 + len(head) + len(frame), 0)
    return frame[:_ETHERNET] + _tunnelled(17, udp + head, frame)


def _erspan(frame: bytes) -> bytes:
    """Version II: a number of the packet, and eight bytes of its own in front of the mirrored frame."""
    head = struct.pack(">HHI", 0x1000, 0x88BE, 7) + struct.pack(">II", 0x10050001, 0)
    return frame[:_ETHERNET] + _tunnelled(47, head, frame)


def _pppoe(frame: bytes) -> bytes:
    size = len(frame) - _ETHERNET + 2
    return frame[:12] + b"\x88\x64" + struct.pack(">BBHH", 0x11, 0, 5, size) + b"\x00\x21" + frame[_ETHERNET:]


def _repeated(packets: list[Packet]) -> list[Packet]:
    """Frames that the link layer sent again, some milliseconds later, because it heard no answer."""
    drawn = random.Random(2)
    found = [Packet(each.time_ns + drawn.randrange(500_000, 4_000_000), each.data, each.wire)
             for each in packets if drawn.random() < 0.02]  # fmt: skip
    return sorted([*packets, *found], key=lambda each: each.time_ns)


def _without_length(frame: bytes) -> bytes:
    """What an interface that cuts segments itself is given has no length yet."""
    return frame[:16] + b"\0\0" + frame[18:]


def fragmented(packets: list[Packet], before: Callable[[bytes], bytes] = lambda frame: frame) -> list[Packet]:
    """Packets of IPv4 with more than 1000 bytes in two fragments, as a router makes them; ``before`` puts a tunnel
    around each first."""
    found: list[Packet] = []
    for number, each in enumerate(packets):
        frame = before(each.data.ljust(each.wire, b"\0"))
        ip, data = frame[_ETHERNET : _ETHERNET + 20], frame[_ETHERNET + 20 :]
        if len(data) <= 1000:
            found.append(Packet(each.time_ns, frame, len(frame)))
            continue
        for place, part, mark in ((0, data[:1000], 0x2000), (1000, data[1000:], 0)):
            head = ip[:2] + struct.pack(">HHH", 20 + len(part), number & 0xFFFF, mark | place // 8) + ip[8:]
            whole = frame[:_ETHERNET] + head + part
            found.append(Packet(each.time_ns + place, whole, len(whole)))
    return found


def segment(packet: Packet) -> tuple[bytes, int, int]:
    """Which way it goes, the number of its first byte, and how many bytes of data it has; Ethernet and IPv4."""
    ip = packet.data[_ETHERNET:]
    tcp = (ip[0] & 15) * 4
    header = tcp + (ip[tcp + 12] >> 4) * 4
    size = struct.unpack_from(">H", ip, 2)[0] - header
    return ip[12:20], int(struct.unpack_from(">I", ip, tcp + 4)[0]), size


def offloaded(packets: list[Packet]) -> list[Packet]:
    """Segments of the sender that leave one right behind the other are one of up to 64 kB, as its kernel hands them to
    the interface."""
    found: list[Packet] = []
    most = max(packets, key=lambda each: each.wire)
    sender = segment(most)[0]
    for packet in packets:
        ends, sequence, size = segment(packet)
        if found and size and ends == sender:
            last = found[-1]
            _, first, before = segment(last)
            near = packet.time_ns - last.time_ns < 500_000
            if before and first + before & 0xFFFFFFFF == sequence and near and before + size < 65_000:
                total = struct.pack(">H", last.wire - _ETHERNET + size)
                found[-1] = Packet(last.time_ns, last.data[:16] + total + last.data[18:], last.wire + size)
                continue
        found.append(packet)
    return found


DAMAGES: dict[str, Callable[[list[Packet]], bytes]] = {
    "none": pcap,
    "snaplen 64": lambda packets: pcap(_short(packets, 64)),
    "microseconds": lambda packets: pcap(packets, unit_ns=1000),
    "big-endian": lambda packets: pcap(packets, order=">"),
    "pcapng": pcapng,
    "pcapng microseconds big-endian": lambda packets: pcapng(packets, resolution=6, order=">"),
    "gz": lambda packets: gzip.compress(pcap(packets), 1),
    "zst": lambda packets: zstandard.ZstdCompressor(write_content_size=False).compress(pcap(packets)),
    "xz": lambda packets: lzma.compress(pcap(packets), preset=0),
    "VLAN": lambda packets: pcap(inside(lambda frame: _tagged(frame, b"\x81\x00\x00\x05"), packets)),
    "QinQ": lambda packets: pcap(
        inside(lambda frame: _tagged(frame, b"\x88\xa8\x00\x05", b"\x81\x00\x00\x06"), packets)
    ),
    "MPLS": lambda packets: pcap(inside(_mpls, packets)),
    "IPv6": lambda packets: pcap(inside(_six, packets)),
    "GRE": lambda packets: pcap(inside(_gre, packets)),
    "VXLAN": lambda packets: pcap(inside(_vxlan, packets)),
    "IPIP": lambda packets: pcap(inside(tunnelled, packets)),
    "6in4": lambda packets: pcap(inside(_six_in_four, packets)),
    "SLL": lambda packets: pcap(inside(_cooked, packets), link=113),
    "SLL2": lambda packets: pcap(inside(_cooked_two, packets), link=276),
    "RAW": lambda packets: pcap(inside(_ip, packets), link=101),
    "NULL": lambda packets: pcap(inside(lambda frame: b"\2\0\0\0" + frame[_ETHERNET:], packets), link=0),
    "LOOP": lambda packets: pcap(inside(lambda frame: b"\0\0\0\2" + frame[_ETHERNET:], packets), link=108),
    "PPP": lambda packets: pcap(inside(lambda frame: b"\xff\x03\x00\x21" + frame[_ETHERNET:], packets), link=9),
    "PPPoE": lambda packets: pcap(inside(_pppoe, packets)),
    "Geneve": lambda packets: pcap(inside(_geneve, packets)),
    "ERSPAN": lambda packets: pcap(inside(_erspan, packets)),
    "repeated frames": lambda packets: pcap(_repeated(packets)),
    "no length": lambda packets: pcap(inside(_without_length, packets)),
    "offloaded": lambda packets: pcap(offloaded(packets)),
    "captured twice": lambda packets: pcap(_twice(packets)),
    "cut off": lambda packets: pcap(packets)[: -(len(packets[-1].data) // 2)],
    "cut start": lambda packets: pcap(packets[len(packets) // 20 :]),
    "clock of 1 ms": lambda packets: pcap(_coarse(packets, 1_000_000)),
    "clock of 10 ms": lambda packets: pcap(_coarse(packets, 10_000_000)),
    "backward stamps": lambda packets: pcap(_backward(packets)),
}
# Those that take nothing from what the packets tell.
HARMLESS = tuple(name for name in DAMAGES if name not in ("cut start", "clock of 1 ms", "clock of 10 ms"))
