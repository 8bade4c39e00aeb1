# SPDX-License-Identifier: Apache-2.0
"""Read the packets of a tcpdump file, and their TCP headers, as arrays.

Formats: draft-ietf-opsawg-pcap (the file), RFC 791 (IPv4), RFC 9293 (TCP).
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howdah.frame import ETHERNET_BYTES, IPV4_BYTES, TCP_BYTES, UDP_BYTES
from howdah.ingest.source import Integers, SourceReport
from howdah.plan.plan import Plan
from howdah.record.raw import raw_value, read_raw_bytes

_END, _NOP, _MSS, _SCALE, _SACK_PERMITTED, _SACK, _TIME_STAMPS = 0, 1, 2, 3, 4, 5, 8
_LENGTHS = {_MSS: 4, _SCALE: 3, _SACK_PERMITTED: 2, _TIME_STAMPS: 10}  # of an option that is what its kind says
MOST_SCALE = 14  # RFC 7323, 2.3: a larger shift of a window is taken for this
_BLOCK_BYTES = 8


@dataclass(frozen=True)
class TcpOptions:
    """TCP options: RFC 9293 (MSS), RFC 2018 (SACK), RFC 7323 (scale, time stamps).

    Arrays have the shape (segments,). An absent option with a value is -1; an option without a value is 1 if present,
    else 0.

    ``stamp`` and ``echo`` are 0 without time stamps. ``sack`` has rows (segment, left edge, right edge), by segment and
    in the order of the option, with the edges as in the packet.
    """

    mss_bytes: Integers
    scale: Integers
    sack_permitted: Integers
    time_stamps: Integers
    stamp: Integers
    echo: Integers
    sack_blocks: Integers
    sack: Integers


def read_options(octets: npt.NDArray[np.uint8], begin: Integers, end: Integers, rows: Integers) -> TcpOptions:
    """Read the options between ``begin`` and ``end`` of the segments ``rows``, up to the first malformed one."""
    absent, nothing = np.full(begin.size, -1, dtype=np.int64), np.zeros(begin.size, dtype=np.int64)
    mss, scale = absent.copy(), absent
    permitted, stamps, stamp, echo, blocks = (nothing.copy() for _ in range(5))
    parts: list[Integers] = []
    place = begin.copy()
    rows = rows[place[rows] < end[rows]]
    while rows.size:
        kind = octets[place[rows]]
        alone = kind == _NOP
        going = alone | ((kind != _END) & (place[rows] + 2 <= end[rows]))
        rows, kind, alone = rows[going], kind[going], alone[going]
        length = np.ones(rows.size, dtype=np.int64)
        length[~alone] = octets[place[rows[~alone]] + 1]
        good = (alone | (length >= 2)) & (place[rows] + length <= end[rows])
        rows, kind, length = rows[good], kind[good], length[good]
        here = {option: rows[(kind == option) & (length == size)] for option, size in _LENGTHS.items()}
        mss[here[_MSS]] = big_endian(octets, place[here[_MSS]] + 2, 2)
        scale[here[_SCALE]] = octets[place[here[_SCALE]] + 2]
        permitted[here[_SACK_PERMITTED]] = 1
        stamps[here[_TIME_STAMPS]] = 1
        stamp[here[_TIME_STAMPS]] = big_endian(octets, place[here[_TIME_STAMPS]] + 2, 4)
        echo[here[_TIME_STAMPS]] = big_endian(octets, place[here[_TIME_STAMPS]] + 6, 4)
        reports = kind == _SACK
        told, count = rows[reports], (length[reports] - 2) // _BLOCK_BYTES
        blocks[told] = count
        for number in range(int(count.max()) if count.size else 0):
            some = told[count > number]
            left = place[some] + 2 + _BLOCK_BYTES * number
            edges = (big_endian(octets, at, 4) for at in (left, left + 4))
            parts.append(np.column_stack([some, np.full(some.size, number), *edges]))
        place[rows] += length
        rows = rows[place[rows] < end[rows]]
    sack = np.concatenate([np.zeros((0, 4), dtype=np.int64), *parts])
    sack = sack[np.lexsort((sack[:, 1], sack[:, 0]))][:, [0, 2, 3]]
    return TcpOptions(mss, scale, permitted, stamps, stamp, echo, blocks, sack)


def big_endian(octets: npt.NDArray[np.uint8], places: Integers, count: int) -> Integers:
    """Numbers of ``count`` bytes in network byte order, at ``places``."""
    value = np.zeros(places.size, dtype=np.int64)
    for offset in range(count):
        value = value << 8 | octets[places + offset]
    return value


FIN, SYN, RST, ACK, ECE, CWR = 1, 2, 4, 16, 64, 128
_FILE = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")  # seconds, nanoseconds, bytes that are here, bytes that there were
_MAGIC = 0xA1B23C4D  # times in nanoseconds, in this machine's order
_ETHERNET = 1
_IPV4, _TCP, _UDP = 0x0800, 6, 17
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Packets:
    """The packets of a capture, in the order of the file: ``places`` and ``lengths`` in bytes of ``data``.

    ``problem`` says what is wrong with the file, None if nothing; the packets before it are read.
    """

    data: bytes
    places: Integers
    lengths: Integers
    ethernet: bool
    problem: str | None

    def __len__(self) -> int:
        return self.places.size

    @cached_property
    def octets(self) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self.data, dtype=np.uint8)

    @cached_property
    def realtime_ns(self) -> Integers:
        """Time stamps of the packets, by the CLOCK_REALTIME of the kernel that captured them."""
        seconds, fraction = (_little_endian(self.octets, self.places - _RECORD.size + at) for at in (0, 4))
        return seconds * _SECOND_NS + fraction


def read_packets(path: Path) -> Packets:
    """Read the packets of a capture with times in nanoseconds; other files have none."""
    try:
        data = read_raw_bytes(path)
    except OSError as error:
        return _none(f"{path.name} cannot be read: {error.strerror}")
    if len(data) < _FILE.size or _FILE.unpack_from(data)[0] != _MAGIC:
        return _none(f"{path.name} is not a capture with nanosecond timestamps")
    place, places, lengths = _FILE.size, [], []
    while place + _RECORD.size <= len(data):
        here = _RECORD.unpack_from(data, place)[2]
        begin = place + _RECORD.size
        if begin + here > len(data):
            break
        places.append(begin)
        lengths.append(here)
        place = begin + here
    problem = None if place == len(data) else f"{path.name} is cut off after {len(places)} packets"
    ethernet = _FILE.unpack_from(data)[6] & 0xFFFF == _ETHERNET
    return Packets(data, np.array(places, np.int64), np.array(lengths, np.int64), ethernet, problem)


def _none(problem: str) -> Packets:
    nothing = np.zeros(0, dtype=np.int64)
    return Packets(b"", nothing, nothing, True, problem)


@dataclass(frozen=True)
class Headers:
    """TCP headers in the order of the capture, all of shape (segments,).

    ``addresses`` and ``ports`` have the source in the upper half. ``window`` is the field of the header, not scaled.
    """

    realtime_ns: Integers
    addresses: Integers
    ports: Integers
    sequence: Integers
    acknowledged: Integers
    flags: Integers
    window: Integers
    payload_bytes: Integers
    options: TcpOptions


def _over_ipv4(packets: Packets, protocol: int, header_bytes: int) -> tuple[Integers, Integers, Integers]:
    """Unfragmented packets of a protocol over Ethernet and IPv4: their numbers, the place of the IP header, and that of
    the next header."""
    octets = packets.octets
    ip = packets.places + ETHERNET_BYTES
    rows = np.flatnonzero(packets.lengths >= ETHERNET_BYTES + IPV4_BYTES + header_bytes)
    rows = rows[big_endian(octets, ip[rows] - 2, 2) == _IPV4] if packets.ethernet else rows[:0]
    rows = rows[(octets[ip[rows] + 9] == protocol) & (big_endian(octets, ip[rows] + 6, 2) & 0x3FFF == 0)]
    ip = ip[rows]
    return rows, ip, ip + (octets[ip] & 15).astype(np.int64) * 4


def tcp_headers(packets: Packets) -> Headers:
    """Read the TCP segments of a capture over Ethernet and IPv4. Fragments are left out, and packets that are cut off
    within their TCP options."""
    octets = packets.octets
    rows, ip, tcp = _over_ipv4(packets, _TCP, TCP_BYTES)
    end = packets.places[rows] + packets.lengths[rows]
    whole = tcp + TCP_BYTES <= end
    header = np.zeros(rows.size, dtype=np.int64)
    header[whole] = (octets[tcp[whole] + 12] >> 4).astype(np.int64) * 4
    whole &= (header >= TCP_BYTES) & (tcp + header <= end)
    rows, ip, tcp, header = rows[whole], ip[whole], tcp[whole], header[whole]
    options = read_options(octets, tcp + TCP_BYTES, tcp + header, np.arange(rows.size))
    return Headers(
        realtime_ns=packets.realtime_ns[rows],
        addresses=big_endian(octets, ip + 12, 4) << 32 | big_endian(octets, ip + 16, 4),
        ports=big_endian(octets, tcp, 4),
        sequence=big_endian(octets, tcp + 4, 4),
        acknowledged=big_endian(octets, tcp + 8, 4),
        flags=octets[tcp + 13].astype(np.int64),
        window=big_endian(octets, tcp + 14, 2),
        payload_bytes=big_endian(octets, ip + 2, 2) - (tcp - ip) - header,
        options=options,
    )


def udp_payload(packets: Packets, address: str, port: int) -> tuple[int, int]:
    """Count the datagrams that an address sent from a port, and their payload in bytes; over Ethernet and IPv4, without
    fragments."""
    octets = packets.octets
    rows, ip, udp = _over_ipv4(packets, _UDP, UDP_BYTES)
    whole = udp + UDP_BYTES <= packets.places[rows] + packets.lengths[rows]
    ip, udp = ip[whole], udp[whole]
    sent = (big_endian(octets, ip + 12, 4) == int(ipaddress.IPv4Address(address))) & (
        big_endian(octets, udp, 2) == port
    )
    return int(sent.sum()), int((big_endian(octets, udp[sent] + 4, 2) - UDP_BYTES).sum())


def _little_endian(octets: npt.NDArray[np.uint8], places: Integers) -> Integers:
    value = np.zeros(places.size, dtype=np.int64)
    for offset in reversed(range(4)):
        value = value << 8 | octets[places + offset]
    return value


ACCOUNT = "pcap.json"
CAPTURES = "pcap"


def count_packets(path: Path) -> tuple[int, str | None]:
    """Count the whole packets of a capture, and say what is wrong with the file, None if nothing."""
    packets = read_packets(path)
    return len(packets), packets.problem


def ingest_captures(raw: Path, machines: list[str], plan: Plan) -> SourceReport:
    """Report on captures, raw/pcap/NODE-INTERFACE.pcap with pcap.json, for the judge, who compares them with the plan.

    ``counts.captures`` has for each place of the plan what tcpdump reported, and ``in_file``, the packets in the file.

    ``machines`` names the directories of several machines; empty for a single one.
    """
    report = SourceReport()
    accounts: dict[str, tuple[Path, dict[str, Any]]] = {}
    for place in [raw / name for name in machines] or [raw]:
        try:
            value = raw_value(read_raw_bytes(place / ACCOUNT))
            accounts |= {f"{item['node']}:{item['interface']}": (place, item) for item in value["captures"]}
        except FileNotFoundError:
            continue  # a machine on which nothing was to be captured; what is missing is told below
        except (OSError, ValueError, KeyError, TypeError) as error:
            report.problems.append(f"{ACCOUNT} cannot be read: {type(error).__name__}: {error}")
    captures = []
    for name in plan.collect.pcap:
        if name not in accounts:
            report.problems.append(f"there is no account of the capture at {name}")
            continue
        place, account = accounts[name]
        packets, problem = count_packets(place / "pcap" / f"{name.replace(':', '-')}.pcap")
        report.problems += [problem] if problem else []
        report.rows += packets
        captures.append({**account, "place": name, "in_file": packets})
    report.counts["captures"] = captures
    return report


@dataclass(frozen=True)
class CaptureClock:
    """Conversion from CLOCK_REALTIME, which captures use, to CLOCK_MONOTONIC, which the run uses: read at two instants,
    linear between them."""

    realtime_ns: tuple[int, int]
    offset_ns: tuple[int, int]

    def monotonic(self, realtime_ns: Integers) -> Integers:
        (begin, end), (first, last) = self.realtime_ns, self.offset_ns
        gain = (last - first) / (end - begin) if end > begin else 0.0
        moved: Integers = realtime_ns - first - np.rint(gain * (realtime_ns - begin)).astype(np.int64)
        return moved


def read_clock(place: Path) -> CaptureClock | None:
    """Read the clock of the kernel whose captures are in ``place``; None if pcap.json is missing, damaged, or without
    clocks, as in older versions."""
    try:
        first, *_, last = raw_value(read_raw_bytes(place / ACCOUNT))["clocks"]
        realtime = (int(first["realtime_ns"]), int(last["realtime_ns"]))
        monotonic = (int(first["monotonic_ns"]), int(last["monotonic_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return CaptureClock(realtime, (realtime[0] - monotonic[0], realtime[1] - monotonic[1]))
