# SPDX-License-Identifier: Apache-2.0
"""The TCP segments of a batch as columns, with their options. Layouts: RFC 9293, RFC 2018, RFC 7323."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.explain.layers import FoundTcp, Octets
from howdah.explain.records import PacketBatch
from howdah.frame import ETHERNET_BYTES
from howdah.ingest.capture import SYN
from howdah.ingest.source import Integers

_NOP, _END, _MSS, _SCALE, _SACK_PERMITTED, _SACK, _TIME_STAMPS = 1, 0, 2, 3, 4, 5, 8
_USUAL = 0x0101080A  # NOP, NOP, time stamps of ten bytes
_MOST_SCALE = 14
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
    """``columns`` as :data:`COLUMNS`; ``key`` tells connections apart, ``from_first`` which end sent a segment.

    ``extra_bytes`` is what the Ethernet frame has beside the payload. ``sack`` has rows (segment, left, right) in the
    order of the options, ``syn`` rows (segment, MSS, scale, SACK permitted, whole), -1 without the option; whole is 0
    where the capture cut the options. ``ip`` is where
    the IP header of each begins, ``ports`` has that of the source in the upper half.
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
    octets = batch.data
    header = (octets[found.tcp + 12] >> 4).astype(np.int64) * 4
    good = header >= 20
    row, ip, tcp, end, header = (each[good] for each in (found.row, found.ip, found.tcp, found.end, header))
    link = found.link_bytes[good]
    wire = batch.wire_bytes[row]
    six = (octets[ip] >> 4) == 6
    total = np.where(six, _number(octets, ip + 4, 2) + 40, _number(octets, ip + 2, 2))
    on_wire = batch.places[row] + wire - ip
    total = np.where((total == 0) | (six & (total == 40)), on_wire, total)  # offloaded: the length does not fit
    payload = np.maximum(np.minimum(total, on_wire) - (tcp - ip) - header, 0)
    ports = _number(octets, tcp, 4)
    key, from_first = _keys(octets, ip, six, ports)
    tap = batch.tap[row]
    key = key + tap.astype(np.uint64) * _MIX_MORE
    stamp = np.zeros(row.size, np.int64)
    echo, has = stamp.copy(), np.zeros(row.size, np.int64)
    blocks = stamp.copy()
    options_end = np.minimum(tcp + header, end)
    usual = (header >= 32) & (tcp + 32 <= end)
    usual[usual] = _number(octets, tcp[usual] + 20, 4) == _USUAL
    stamp[usual] = _number(octets, tcp[usual] + 24, 4)
    echo[usual] = _number(octets, tcp[usual] + 28, 4)
    has[usual] = 1
    flags = octets[tcp + 13].astype(np.int64)
    begin = np.where(usual, tcp + 32, tcp + 20)
    more = np.flatnonzero((begin < options_end) & ~(usual & (header == 32)))
    sack, syn = _options(octets, begin, options_end, tcp + header, more, (stamp, echo, has, blocks), (flags & SYN) != 0)
    columns = {
        "time_ns": batch.time_ns[row],
        "sequence": _number(octets, tcp + 4, 4),
        "acknowledged": _number(octets, tcp + 8, 4),
        "payload_bytes": payload,
        "window": _number(octets, tcp + 14, 2),
        "flags": flags,
        "has_stamps": has,
        "stamp": stamp,
        "echo": echo,
        "ident": np.where(six, 0, _number(octets, ip + 4, 2)),
        "extra_bytes": np.clip(wire - link + ETHERNET_BYTES - payload, 0, 65535),
        "from_first": from_first,
        "sack_blocks": blocks,
    }
    typed: dict[str, npt.NDArray[np.generic]] = {
        name: np.asarray(columns[name]).astype(kind) for name, kind in COLUMNS.items()
    }
    return TcpColumns(typed, key, sack, syn, ip, ports, tap)


def _keys(
    octets: Octets, ip: Integers, six: npt.NDArray[np.bool_], ports: Integers
) -> tuple[npt.NDArray[np.uint64], Integers]:
    """One number for each connection, whoever sends, and which of its ends did."""
    source = np.where(six, 0, _number(octets, ip + np.where(six, 0, 12), 4)).astype(np.uint64)
    target = np.where(six, 0, _number(octets, ip + np.where(six, 0, 16), 4)).astype(np.uint64)
    wide = np.flatnonzero(six)
    if wide.size:
        for end, at in ((source, 8), (target, 24)):
            high, low = (_number(octets, ip[wide] + at + part, 8).astype(np.uint64) for part in (0, 8))
            end[wide] = _mixed(high) ^ (low * _MIX_MORE)
    source = _mixed(source ^ ((ports >> 16).astype(np.uint64) << np.uint64(44)))
    target = _mixed(target ^ ((ports & 0xFFFF).astype(np.uint64) << np.uint64(44)))
    from_first = source <= target
    return np.minimum(source, target) * _MIX ^ np.maximum(source, target), from_first.astype(np.int64)


def _mixed(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    value = (value ^ (value >> np.uint64(31))) * _MIX
    return np.asarray((value ^ (value >> np.uint64(29))) * _MIX_MORE)


def _options(
    octets: Octets,
    begin: Integers,
    end: Integers,
    header_end: Integers,
    rows: Integers,
    filled: tuple[Integers, Integers, Integers, Integers],
    is_syn: npt.NDArray[np.bool_],
) -> tuple[Integers, Integers]:
    """Read further options; time stamps and counts of blocks are ``filled`` in. Behind a malformed one nothing is."""
    stamp, echo, has, blocks = filled
    place = begin.copy()
    syn = np.full((begin.size, 3), -1, np.int64)
    parts: list[Integers] = []
    while rows.size:
        kind = octets[place[rows]]
        alone = kind == _NOP
        going = alone | ((kind != _END) & (place[rows] + 2 <= end[rows]))
        rows, kind, alone = rows[going], kind[going], alone[going]
        length = np.ones(rows.size, np.int64)
        length[~alone] = octets[place[rows[~alone]] + 1]
        good = (alone | (length >= 2)) & (place[rows] + length <= end[rows])
        rows, kind, length = rows[good], kind[good], length[good]
        for option, size, column, count in ((_MSS, 4, 0, 2), (_SCALE, 3, 1, 1), (_SACK_PERMITTED, 2, 2, 0)):
            here = rows[(kind == option) & (length == size)]
            syn[here, column] = _number(octets, place[here] + 2, count) if count else 1
        here = rows[(kind == _TIME_STAMPS) & (length == 10)]
        stamp[here] = _number(octets, place[here] + 2, 4)
        echo[here] = _number(octets, place[here] + 6, 4)
        has[here] = 1
        reports = kind == _SACK
        here, count_of = rows[reports], np.minimum((length[reports] - 2) // 8, 4)
        blocks[here] = count_of
        for number in range(int(count_of.max()) if count_of.size else 0):
            some = here[count_of > number]
            at = place[some] + 2 + 8 * number
            parts.append(
                np.column_stack([some, np.full(some.size, number), _number(octets, at, 4), _number(octets, at + 4, 4)])
            )
        place[rows] += length
        rows = rows[place[rows] < end[rows]]
    syn[:, 1] = np.minimum(syn[:, 1], _MOST_SCALE)
    opened = np.flatnonzero(is_syn)
    whole = (end[opened] >= header_end[opened]).astype(np.int64)
    found = np.concatenate([np.zeros((0, 4), np.int64), *parts])
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    return found[:, [0, 2, 3]], np.column_stack([opened, syn[opened], whole])


def _number(octets: Octets, places: Integers, count: int) -> Integers:
    """Numbers of ``count`` bytes in the order of the network."""
    value = np.zeros(places.size, dtype=np.int64)
    for offset in range(count):
        value = value << 8 | octets[places + offset]
    return value
