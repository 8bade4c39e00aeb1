# SPDX-License-Identifier: Apache-2.0
"""Compact text encoding of numeric columns, which ``reports/js/codec.js`` decodes, and thinning that keeps a line's
shape.

A value is rounded to a multiple of ``scale``; the column holds differences between neighbours, zigzag-coded plus one,
as variable-length integers of 7 bits a byte, in base64. Zero means *no value*. A cwnd trace takes about 1.5
characters a point.
"""

from __future__ import annotations

import base64
import math
from itertools import pairwise
from typing import TypedDict

import numpy as np

from howdah.record.sample import Float64, Int64


def extremes(values: Float64, points: int) -> Int64:
    """Return indices, in order, of about ``points`` values that keep every bucket's first, last, least and greatest.

    ``values`` may hold NaN (no value); a bucket of NaN keeps its ends, so gaps stay gaps. A line through the result
    covers the same pixels as the whole line if a bucket is at most a pixel wide.
    """
    count = len(values)
    if points < 4:
        raise ValueError("fewer than 4 points keep no bucket")
    if count <= points:
        return np.arange(count, dtype=np.int64)
    buckets = points // 4
    edges = np.linspace(0, count, buckets + 1).astype(np.int64)
    kept: set[int] = set()
    for first, end in pairwise(edges):
        part = values[first:end]
        kept.update((int(first), int(end) - 1))
        if not np.isnan(part).all():
            kept.update((int(first) + int(np.nanargmin(part)), int(first) + int(np.nanargmax(part))))
    return np.array(sorted(kept), dtype=np.int64)


# Smaller than any measured value; keeps the logarithm below defined.
_NOTHING = 1e-30


class EncodedColumn(TypedDict):
    """A coded column: ``data`` in units of ``scale``, ``count`` values."""

    scale: float
    count: int
    data: str


def scale_of(values: Float64, levels: int = 20_000) -> float:
    """The largest of 1, 2 or 5 times a power of ten that divides the largest value into at least ``levels`` steps."""
    finite = np.abs(values[np.isfinite(values)])
    largest = float(finite.max()) if len(finite) else 0.0
    if largest < _NOTHING:
        return 1.0
    exponent = math.floor(math.log10(largest / levels))
    return max((10.0**exponent) * step for step in (1, 2, 5) if 10.0**exponent * step <= largest / levels)


def encode(values: Float64, scale: float) -> EncodedColumn:
    """Encode a column; NaN and infinities become *no value*."""
    known = np.isfinite(values)
    levels = np.zeros(len(values), dtype=np.int64)
    levels[known] = np.rint(values[known] / scale).astype(np.int64)
    differences = np.zeros(len(values), dtype=np.int64)
    differences[known] = np.diff(levels[known], prepend=np.int64(0))
    codes = np.where(known, ((differences << 1) ^ (differences >> 63)) + 1, 0).astype(np.uint64)
    return {"scale": scale, "count": len(values), "data": base64.b64encode(_varint(codes)).decode("ascii")}


def encode_integers(values: Int64) -> EncodedColumn:
    """Encode integers exactly."""
    return encode(values.astype(np.float64), 1.0)


def _varint(codes: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bytes:
    """Little-endian groups of 7 bits; a set top bit means that another group follows."""
    output = bytearray()
    for code in codes.tolist():
        while code > 0x7F:
            output.append(code & 0x7F | 0x80)
            code >>= 7
        output.append(code)
    return bytes(output)


def decode(column: EncodedColumn) -> Float64:
    """The inverse of :func:`encode`, for tests and tools; *no value* becomes NaN."""
    values = np.full(column["count"], np.nan)
    level = shift = code = index = 0
    for byte in base64.b64decode(column["data"]):
        code |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            continue
        if code:
            code -= 1
            level += (code >> 1) ^ -(code & 1)
            values[index] = level * column["scale"]
        index += 1
        code = shift = 0
    return values
