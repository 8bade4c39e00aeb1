# SPDX-License-Identifier: Apache-2.0
"""The TCP segments of a batch as columns, with their options. Layout: RFC 9293."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.explain.layers import FoundTcp, Octets
from howdah.explain.records import PacketBatch
from howdah.frame import ETHERNET_BYTES
from howdah.ingest.capture import SYN, TcpOptions, big_endian, read_options
from howdah.ingest.source import Integers

_USUAL = 0x0101080A  # the usual options: NOP, NOP, time stamps of ten bytes
# Multipliers that mix the bits of keys.
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_MORE = np.uint64(0xBF58476D1CE4E5B9)

COLUMNS: dict[str, type] = {
    "time_ns": np.int64,
    "sequence": np.uint32,
    "acknowledged": np.uint32,
    "payload_bytes": np.uint32,
    "window": np.uint16,
    "flags": np.uint8,
    "has_stamps": np.uint8,
    "stamp": np.uint32,
    "echo": np.uint32,
    "ident": np.uint16,
    "extra_bytes": np.uint16,
    "from_first": np.uint8,
    "sack_blocks": np.uint8,
}


@dataclass(frozen=True)
class TcpColumns:
    """``columns`` as :data:`COLUMNS`; ``key`` identifies the connection, ``from_first`` which end sent a segment.

    ``extra_bytes`` is what the Ethernet frame has beside the payload. ``sack`` has rows (segment, left, right) in the
    order of the options; ``syn`` has rows (segment, MSS, scale, SACK permitted, whole), -1 without the option, and
    whole is 0 if the capture cut the options. ``ip`` is where each IP header begins; ``ports`` has the source port in
    the upper half.
    """

    columns: dict[str, npt.NDArray[np.generic]]
    key: npt.NDArray[np.uint64]
    sack: Integers
    syn: Integers
    ip: Integers
    ports: Integers
    tap: Integers

    def __len__(self) -> int:
        return self.key.size


def read_segments(batch: PacketBatch, found: FoundTcp) -> TcpColumns:
    """Read the TCP segments of a batch; those with an impossible header length are left out."""
    octets = batch.data
    header = (octets[found.tcp + 12] >> 4).astype(np.int64) * 4
    good = header >= 20
    row, ip, tcp, end, header = (each[good] for each in (found.row, found.ip, found.tcp, found.end, header))
    more = found.more_bytes[good]
    six = (octets[ip] >> 4) == 6
    wire = batch.wire_bytes[row] + more
    payload = np.maximum(_ip_bytes(octets, ip, six, more, batch.places[row] + wire - ip) - (tcp - ip) - header, 0)
    ports = big_endian(octets, tcp, 4)
    key, from_first = _keys(octets, ip, six, ports)
    tap = batch.tap[row]
    key = key + tap.astype(np.uint64) * _MIX_MORE
    options_end = np.minimum(tcp + header, end)
    options = _options(octets, tcp, header, options_end, end)
    flags = octets[tcp + 13].astype(np.int64)
    opened = np.flatnonzero((flags & SYN) != 0)
    whole = (options_end >= tcp + header).astype(np.int64)
    permitted = np.where(options.sack_permitted, 1, -1)
    syn = np.column_stack(
        [each[opened] for each in (np.arange(row.size), options.mss_bytes, options.scale, permitted, whole)]
    )
    columns = {
        "time_ns": batch.time_ns[row],
        "sequence": big_endian(octets, tcp + 4, 4),
        "acknowledged": big_endian(octets, tcp + 8, 4),
        "payload_bytes": payload,
        "window": big_endian(octets, tcp + 14, 2),
        "flags": flags,
        "has_stamps": options.time_stamps,
        "stamp": options.stamp,
        "echo": options.echo,
        "ident": np.where(six, 0, big_endian(octets, ip + 4, 2)),
        "extra_bytes": np.clip(wire - found.link_bytes[good] + ETHERNET_BYTES - payload, 0, 65535),
        "from_first": from_first,
        "sack_blocks": options.sack_blocks,
    }
    typed: dict[str, npt.NDArray[np.generic]] = {
        name: np.asarray(columns[name]).astype(kind) for name, kind in COLUMNS.items()
    }
    return TcpColumns(typed, key, options.sack, syn, ip, ports, tap)


def _ip_bytes(octets: Octets, ip: Integers, six: npt.NDArray[np.bool_], more: Integers, on_wire: Integers) -> Integers:
    """The length of each IP packet: what its header says, with the other fragments' ``more``, but at most ``on_wire``.

    Offloaded packets are longer than the field holds, which is 0 then; ``on_wire`` takes its place.
    """
    total = np.where(six, big_endian(octets, ip + 4, 2) + 40, big_endian(octets, ip + 2, 2))
    total += np.where(six | ((octets[ip + 6] & 0x20) == 0), 0, more)  # of a tunnel's fragments the inner one is whole
    total = np.where((total == 0) | (six & (total == 40)), on_wire, total)
    return np.minimum(total, on_wire)


def _options(octets: Octets, tcp: Integers, header: Integers, options_end: Integers, end: Integers) -> TcpOptions:
    usual = (header >= 32) & (tcp + 32 <= end)
    usual[usual] = big_endian(octets, tcp[usual] + 20, 4) == _USUAL
    begin = np.where(usual, tcp + 32, tcp + 20)
    options = read_options(octets, begin, options_end, np.flatnonzero(~(usual & (header == 32))))
    options.stamp[usual] = big_endian(octets, tcp[usual] + 24, 4)
    options.echo[usual] = big_endian(octets, tcp[usual] + 28, 4)
    options.time_stamps[usual] = 1
    return options


def _keys(
    octets: Octets, ip: Integers, six: npt.NDArray[np.bool_], ports: Integers
) -> tuple[npt.NDArray[np.uint64], Integers]:
    """One number for each connection, the same in both directions, and which of its ends sent each segment."""
    source = np.where(six, 0, big_endian(octets, ip + np.where(six, 0, 12), 4)).astype(np.uint64)
    target = np.where(six, 0, big_endian(octets, ip + np.where(six, 0, 16), 4)).astype(np.uint64)
    wide = np.flatnonzero(six)
    if wide.size:
        for end, at in ((source, 8), (target, 24)):
            high, low = (big_endian(octets, ip[wide] + at + part, 8).astype(np.uint64) for part in (0, 8))
            end[wide] = _mixed(high) ^ (low * _MIX_MORE)
    source = _mixed(source ^ ((ports >> 16).astype(np.uint64) << np.uint64(44)))
    target = _mixed(target ^ ((ports & 0xFFFF).astype(np.uint64) << np.uint64(44)))
    from_first = source <= target
    return np.minimum(source, target) * _MIX ^ np.maximum(source, target), from_first.astype(np.int64)


def _mixed(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    value = (value ^ (value >> np.uint64(31))) * _MIX
    return np.asarray((value ^ (value >> np.uint64(29))) * _MIX_MORE)
