# SPDX-License-Identifier: Apache-2.0
"""What the receiver's ACKs and blocks of SACK report together as arrived, and what as arrived twice."""

from __future__ import annotations

import bisect

import numpy as np

from howdah.explain.connection import TapConnection
from howdah.ingest.source import Integers

HALF = 1 << 31
MOST_EVENTS = 300_000
Double = tuple[int, int, int]  # the ACK that reports bytes as received twice, and these


def signed(difference: int) -> int:
    return (int(difference) + HALF) % (1 << 32) - HALF


def delivered_bytes(
    connection: TapConnection, back: Integers, una: Integers, base: int
) -> tuple[Integers, Integers, list[Double]]:
    """Bytes that ACKs and SACK report together, the highest number that SACK reports, and the DSACKs."""
    delivered, highest = una.copy(), una.copy()
    sack = connection.sack
    if not sack.size:
        return delivered, highest, []
    rows = np.searchsorted(back, sack[:, 0])
    good = (rows < back.size) & (back[np.minimum(rows, back.size - 1)] == sack[:, 0])
    rows, sack = rows[good], sack[good]
    blocks: list[tuple[int, int]] = []
    total, last = 0, -1
    doubles: list[Double] = []
    extra = np.zeros(back.size, np.int64)
    tops = np.zeros(back.size, np.int64)
    changed: list[int] = []
    previous: tuple[int, int] | None = None
    for row, left, right in list(zip(rows.tolist(), sack[:, 1].tolist(), sack[:, 2].tolist(), strict=True))[
        :MOST_EVENTS
    ]:
        edge = int(una[row])
        low = edge + signed(left - (edge + base))
        high = low + ((right - left) & 0xFFFFFFFF)
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
    return np.maximum.accumulate(delivered), np.maximum.accumulate(highest), doubles


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
