# SPDX-License-Identifier: Apache-2.0
"""Rates and times in the units of queueing disciplines."""

from __future__ import annotations

import math
import struct

U32_MAX = 0xFFFFFFFF
TICK_NS = 64  # PSCHED_SHIFT is 6 in every supported kernel
_RATE = struct.Struct("=BBHhHI")  # struct tc_ratespec
_LINKLAYER_ETHERNET = 1
_CELL_LOG = 3  # the smallest for which 1600 bytes fit into 256 cells; informative since Linux 3.9


def ticks(size_bytes: int, bytes_per_second: int) -> int:
    """The time in which ``size_bytes`` pass at the rate, in ticks of 64 ns."""
    return math.ceil(size_bytes * 1_000_000_000 / bytes_per_second / TICK_NS)


def rate_specification(bytes_per_second: int) -> bytes:
    return _RATE.pack(_CELL_LOG, _LINKLAYER_ETHERNET, 0, -1, 0, min(bytes_per_second, U32_MAX))
