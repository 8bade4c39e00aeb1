# SPDX-License-Identifier: Apache-2.0
"""The options of TCP segments in packets, as arrays: RFC 9293 (MSS), RFC 2018 (SACK), RFC 7323 (scale, time stamps)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.ingest.source import Integers

_END, _NOP, _MSS, _SCALE, _SACK_PERMITTED, _SACK, _TIME_STAMPS = 0, 1, 2, 3, 4, 5, 8
_LENGTHS = {_MSS: 4, _SCALE: 3, _SACK_PERMITTED: 2, _TIME_STAMPS: 10}  # of an option that is what its kind says
_MOST_SCALE = 14  # RFC 7323, 2.3: a larger shift is taken for this
_BLOCK_BYTES = 8


@dataclass(frozen=True)
class TcpOptions:
    """Arrays of shape (segments,): -1 without an option that has a value, 1 and 0 with and without one that has none.

    ``stamp`` and ``echo`` are 0 without time stamps. ``sack`` has rows (segment, left edge, right edge), the edges as
    they stand in the packet, by segment and in the order of the option.
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
    """Options between ``begin`` and ``end`` of the segments ``rows``. Behind a malformed option nothing is read."""
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
        scale[here[_SCALE]] = np.minimum(octets[place[here[_SCALE]] + 2], _MOST_SCALE)
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
    """Numbers of ``count`` bytes in the order of the network, at ``places``."""
    value = np.zeros(places.size, dtype=np.int64)
    for offset in range(count):
        value = value << 8 | octets[places + offset]
    return value
