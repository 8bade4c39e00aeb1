# SPDX-License-Identifier: Apache-2.0
"""What the receiver's ACKs and blocks of SACK report together as arrived, and what as arrived twice."""

from __future__ import annotations

import bisect
from dataclasses import dataclass

import numpy as np

from howdah.explain.connection import TapConnection
from howdah.ingest.source import Integers

HALF = 1 << 31
MOST_EVENTS = 300_000
_SPARE_BYTES = 65_536
Double = tuple[int, int, int]  # the ACK that reports bytes as received twice, and these


def signed(difference: int) -> int:
    return (int(difference) + HALF) % (1 << 32) - HALF


@dataclass(frozen=True)
class Reported:
    """``delivered``: bytes that ACKs and SACK report together; ``top``: the highest number that SACK reports.

    ``doubles`` are the DSACKs; ``reneged`` has rows (left, right), apart and in order, of what was reported and later
    asked for. ``unsent`` counts blocks of bytes that nobody had sent.
    """

    delivered: Integers
    top: Integers
    doubles: list[Double]
    reneged: Integers
    unsent: int


def reported(connection: TapConnection, back: Integers, una: Integers, base: int, sent_top: Integers) -> Reported:
    """``sent_top`` is the end of what had been sent when each ACK came."""
    delivered, highest = una.copy(), una.copy()
    sack = connection.sack
    nothing = np.zeros((0, 2), np.int64)
    if not sack.size:
        return Reported(delivered, highest, [], nothing, 0)
    rows = np.searchsorted(back, sack[:, 0])
    good = (rows < back.size) & (back[np.minimum(rows, back.size - 1)] == sack[:, 0])
    rows, sack = rows[good], sack[good]
    # Something on the way may change the numbers of segments and not those of blocks (RFC 2018 has none of that).
    edges = una[rows]
    lows = edges + ((sack[:, 1] - edges - base + HALF) % (1 << 32) - HALF)
    highs = lows + ((sack[:, 2] - sack[:, 1]) & 0xFFFFFFFF)
    real = (highs <= int(sent_top.max()) + _SPARE_BYTES) & (lows >= int(una[0]) - _SPARE_BYTES)
    unsent = int((~real).sum())
    rows, lows, highs = rows[real], lows[real], highs[real]
    blocks: list[tuple[int, int]] = []
    total, last = 0, -1
    doubles: list[Double] = []
    extra = np.zeros(back.size, np.int64)
    tops = np.zeros(back.size, np.int64)
    changed: list[int] = []
    previous: tuple[int, int] | None = None
    for row, low, high in list(zip(rows.tolist(), lows.tolist(), highs.tolist(), strict=True))[:MOST_EVENTS]:
        edge = int(una[row])
        is_first = row != last
        if is_first:
            last, previous = row, (low, high)
            blocks = [block for block in blocks if block[1] > edge]
            total = sum(b - max(a, edge) for a, b in blocks)
            if high <= edge:
                doubles.append((row, low, high))
                extra[row], tops[row] = total, blocks[-1][1] if blocks else 0
                changed.append(row)
                continue
        elif previous is not None and low <= previous[0] and previous[1] <= high and previous != (low, high):
            doubles.append((row, *previous))
            previous = None
        if high > edge and high - low < HALF // 2:
            total += _insert(blocks, max(low, edge), high)
        extra[row], tops[row] = total, blocks[-1][1] if blocks else 0
        changed.append(row)
    # Between two reports nothing is forgotten, but what una passed counts there.
    reported = np.zeros(back.size, bool)
    reported[changed] = True
    latest = np.maximum.accumulate(np.where(reported, np.arange(back.size), -1))
    known = latest >= 0
    delivered[known] = np.maximum(una[known], (una + extra)[latest[known]])
    highest[known] = np.maximum(una[known], tops[latest[known]])
    reneged = _reneged(rows, lows, highs, una)
    return Reported(np.maximum.accumulate(delivered), np.maximum.accumulate(highest), doubles, reneged, unsent)


def _reneged(rows: Integers, lows: Integers, highs: Integers, una: Integers) -> Integers:
    """Blocks within which a later ACK ends: a receiver that had kept them would have gone on to their end."""
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
    """Add a block to blocks that lie apart, in order; the bytes by which they grow."""
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
