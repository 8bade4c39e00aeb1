# SPDX-License-Identifier: Apache-2.0
"""The memory shared by the kernels of a run: frames in transit, and each kernel's clock (modules/wire/wire.h).

It is an anonymous file that disappears with the last process that holds it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from howdah.engine.uml.part import lookaheads_us, window_us
from howdah.plan.plan import Plan

_PAGE = 4096
_MOST_PARTS = 8
_HEADER = struct.Struct("=IIIIQQ")
_MAGIC, _VERSION = 0x77647772, 1
_RECORD_BYTES = 96  # header of a record besides the frame, and its padding
_SLACK = 1.25
_BURST_BYTES = 4 << 20


def ring_bytes(plan: Plan) -> int:
    """Return the room for what one kernel sends while another lags as far behind as possible, in whole pages."""
    longest_us = max(value for row in lookaheads_us(plan) for value in row)
    behind_us = 2 * longest_us + 2 * window_us(plan)
    frames = plan.path.highest_rate_bits_per_second * behind_us / 8_000_000 / plan.path.frame_bytes
    size = frames * (plan.path.frame_bytes + _RECORD_BYTES) * _SLACK + _BURST_BYTES
    return -(-int(size) // _PAGE) * _PAGE


def memory_bytes(plan: Plan) -> int:
    parts = len(plan.parts)
    return _PAGE * (1 + parts) + parts * parts * (_PAGE + ring_bytes(plan))


def header(plan: Plan) -> bytes:
    """Return the bytes of struct wire_header."""
    rows = [[us * 1000 for us in row] for row in lookaheads_us(plan)]
    matrix = [
        rows[one][other] if one < len(rows) and other < len(rows) else 0
        for one in range(_MOST_PARTS)
        for other in range(_MOST_PARTS)
    ]
    fixed = _HEADER.pack(_MAGIC, _VERSION, len(rows), 0, ring_bytes(plan), window_us(plan) * 1000)
    return fixed + struct.pack(f"={len(matrix)}Q", *matrix)


@contextmanager
def shared_memory(plan: Plan) -> Iterator[int]:
    """Provide its descriptor; only pages that are written take memory."""
    descriptor = os.memfd_create("howdah-wire", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, memory_bytes(plan))
        os.pwrite(descriptor, header(plan), 0)
        yield descriptor
    finally:
        os.close(descriptor)
