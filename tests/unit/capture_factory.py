# SPDX-License-Identifier: Apache-2.0
"""Captures made by hand: frames with TCP headers, in files as tcpdump writes them."""

from __future__ import annotations

import ipaddress
import struct
from pathlib import Path

FIN, SYN, RST, ACK = 1, 2, 4, 16
Ends = tuple[str, int, str, int]
_ETHERNET = b"\2" * 12 + b"\x08\x00"
SNAPSHOT_BYTES = 128


def frame(
    ends: Ends,
    sequence: int,
    acknowledged: int = 0,
    *,
    flags: int = ACK,
    payload_bytes: int = 0,
    window: int = 1000,
    options: bytes = b"",
    protocol: int = 6,
    fragment: int = 0,
) -> bytes:
    """An Ethernet frame with a TCP segment; ``options`` are filled up to whole words."""
    source, source_port, target, target_port = ends
    options += b"\0" * (-len(options) % 4)
    header_bytes = 20 + len(options)
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(target).packed
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + header_bytes + payload_bytes, 0, fragment, 64, protocol, 0) + addresses
    numbers = (sequence % 2**32, acknowledged % 2**32, header_bytes << 10 | flags, window, 0, 0)
    tcp = struct.pack("!HHIIHHHH", source_port, target_port, *numbers)
    return _ETHERNET + ip + tcp + options + bytes(payload_bytes)


def scale(shift: int) -> bytes:
    """The options of a SYN, as Linux orders them."""
    return b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + bytes(8) + b"\x01\x03\x03" + bytes([shift])


def sack(*blocks: tuple[int, int]) -> bytes:
    """The options of an ACK with time stamps."""
    edges = [edge % 2**32 for block in blocks for edge in block]
    return (
        b"\1\1\x08\x0a" + bytes(8) + b"\1\1\x05" + bytes([2 + 8 * len(blocks)]) + struct.pack(f"!{len(edges)}I", *edges)
    )


def write_capture(file: Path, packets: list[tuple[int, bytes]], link_type: int = 1) -> None:
    """``packets`` have their time stamps (ns) and whole frames, of which the file has the first 128 bytes."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPSHOT_BYTES, link_type)]
    for time_ns, whole in packets:
        kept = whole[:SNAPSHOT_BYTES]
        parts += [struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(kept), len(whole)), kept]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(parts))
