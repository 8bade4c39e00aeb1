# SPDX-License-Identifier: Apache-2.0
"""What the receiver's ACKs and SACK blocks together report as received, and as received twice."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

import numpy as np

from howdah.explain.connection import TapConnection
from howdah.ingest.source import Integers

HALF = 1 << 31  # half of the space of sequence numbers
MOST_EVENTS = 300_000  # blocks, or jumps of sequence numbers, that are looked at
_SPARE_BYTES = 65_536  # bytes beyond the data seen, or before them, in which a block may lie
Double = tuple[int, int, int]  # the ACK that reports bytes as received twice, and the range of these bytes


def signed(difference: int) -> int:
    return (int(difference) + HALF) % (1 << 32) - HALF


@dataclass(frozen=True)
class Reported:
    """``delivered`` are the bytes that ACKs and SACK together report, ``top`` the highest number that SACK reports.

    ``doubles`` are the DSACKs. ``reneged`` has rows (left, right), disjoint and in order, of what was reported and
    later requested. ``unsent`` counts blocks of bytes that had not been sent.
    """

    delivered: Integers
    top: Integers
    doubles: list[Double]
    reneged: Integers
    unsent: int


def reported(connection: TapConnection, back: Integers, una: Integers, base: int, sent_top: Integers) -> Reported:
    """What the ACKs ``back`` report. ``base`` is the number of the first byte, ``sent_top`` the end of what had been
    sent when each ACK came."""
    if not connection.sack.size:
        return Reported(una.copy(), una.copy(), [], np.zeros((0, 2), np.int64), 0)
    rows, lows, highs = _blocks(connection.sack, back, una, base)
    real = (highs <= int(sent_top.max()) + _SPARE_BYTES) & (lows >= int(una[0]) - _SPARE_BYTES)
    rows, lows, highs = rows[real], lows[real], highs[real]
    board = _Scoreboard()
    has_blocks = np.zeros(back.size, bool)
    sacked, tops = np.zeros(back.size, np.int64), np.zeros(back.size, np.int64)
    for row, low, high in list(zip(rows.tolist(), lows.tolist(), highs.tolist(), strict=True))[:MOST_EVENTS]:
        board.add(row, low, high, int(una[row]))
        has_blocks[row], sacked[row], tops[row] = True, board.total, board.top
    # Between two ACKs with blocks nothing is forgotten, but what una passed counts there.
    latest = np.maximum.accumulate(np.where(has_blocks, np.arange(back.size), -1))
    known = latest >= 0
    delivered, highest = una.copy(), una.copy()
    delivered[known] = np.maximum(una[known], (una + sacked)[latest[known]])
    highest[known] = np.maximum(una[known], tops[latest[known]])
    return Reported(
        np.maximum.accumulate(delivered),
        np.maximum.accumulate(highest),
        board.doubles,
        _reneged(rows, lows, highs, una),
        int((~real).sum()),
    )


def _blocks(sack: Integers, back: Integers, una: Integers, base: int) -> tuple[Integers, Integers, Integers]:
    """The blocks of SACK of the ACKs ``back``: the place of the ACK, and both ends, counted as ``una``."""
    rows = np.searchsorted(back, sack[:, 0])
    good = (rows < back.size) & (back[np.minimum(rows, back.size - 1)] == sack[:, 0])
    rows, sack = rows[good], sack[good]
    # Each block is taken to be near its own ACK: something on the path may change the sequence numbers of segments and
    # not those of blocks, so that a block need not be near the one before it.
    edges = una[rows]
    lows = edges + ((sack[:, 1] - edges - base + HALF) % (1 << 32) - HALF)
    return rows, lows, lows + ((sack[:, 2] - sack[:, 1]) & 0xFFFFFFFF)


@dataclass
class _Scoreboard:
    """What SACK has reported beyond ``una``: ``blocks``, which lie apart and are in order, and their ``total`` bytes.

    ``doubles`` are the DSACKs so far: the first block of an ACK, below ``una`` or inside a later block of that ACK.
    """

    blocks: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0
    doubles: list[Double] = field(default_factory=list)
    _row: int = -1
    _first: tuple[int, int] | None = None

    @property
    def top(self) -> int:
        return self.blocks[-1][1] if self.blocks else 0

    def add(self, row: int, low: int, high: int, una: int) -> None:
        """Take in a block of the ACK at ``row``, which acknowledges all below ``una``."""
        if row != self._row:
            self._row, self._first = row, (low, high)
            self.blocks = [block for block in self.blocks if block[1] > una]
            self.total = sum(end - max(begin, una) for begin, end in self.blocks)
            if high <= una:
                self.doubles.append((row, low, high))
                return
        elif (first := self._first) and first != (low, high) and low <= first[0] <= first[1] <= high:
            self.doubles.append((row, *first))
            self._first = None
        if high > una and high - low < HALF // 2:
            self.total += _insert(self.blocks, max(low, una), high)


def _reneged(rows: Integers, lows: Integers, highs: Integers, una: Integers) -> Integers:
    """Blocks inside which a later ACK ends: a receiver that had kept them would have acknowledged up to their end."""
    until = np.searchsorted(una, highs)
    lost = (highs > lows) & (lows > una[rows]) & (until - 1 > rows) & (np.searchsorted(una, lows) < until)
    found: list[tuple[int, int]] = []
    for low, high in sorted(set(zip(lows[lost].tolist(), highs[lost].tolist(), strict=True))):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return np.array(found, np.int64).reshape(-1, 2)


def _insert(blocks: list[tuple[int, int]], low: int, high: int) -> int:
    """Add a block to disjoint sorted blocks; return the number of bytes that this adds."""
    first = bisect.bisect_left(blocks, (low, -1))
    if first and blocks[first - 1][1] >= low:
        first -= 1
    last, before, begin, end = first, 0, low, high
    while last < len(blocks) and blocks[last][0] <= high:
        before += blocks[last][1] - blocks[last][0]
        begin, end = min(begin, blocks[last][0]), max(end, blocks[last][1])
        last += 1
    blocks[first:last] = [(begin, end)]
    return end - begin - before
