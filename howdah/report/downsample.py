# SPDX-License-Identifier: Apache-2.0
"""Fewer points that draw the same line."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from howdah.record.sample import Float64, Int64


def extremes(values: Float64, points: int) -> Int64:
    """Indices, in order, of about ``points`` values that keep every bucket's first, last, least and greatest.

    ``values`` may hold NaN (no value); a bucket of NaN keeps its ends, so gaps stay gaps. A line through the result
    covers the same pixels as the whole line when a bucket is at most a pixel wide.
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
