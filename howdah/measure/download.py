# SPDX-License-Identifier: Apache-2.0
"""How much a flow moves early: times to given amounts of data, and throughput with headers counted."""

from __future__ import annotations

from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.row import Sheet
from howdah.measure.throughput import completion_time_s
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Path

# What a transfer of that size would have taken, had it ended there. The SEARCH slides plot this curve ("time to
# download"); short connections are what the Adaptive Start paper's introduction speaks of.
AMOUNTS_BYTES = {"100_kb": 100_000, "1_mb": 1_000_000, "10_mb": 10_000_000}


def packet_throughput(goodput_bits_per_second: float | None, path: Path) -> float | None:
    """Throughput in whole frames (bit/s): goodput times frame / MSS.

    A simulator's paper that counts packets of 1000 bytes counts their headers too (Adaptive Start paper, section III:
    3.61 of 40 Mbit/s is 9 % there).
    """
    return None if goodput_bits_per_second is None else goodput_bits_per_second * path.frame_bytes / path.mss_bytes


def download_rows(sheet: Sheet, path: Path, trace: FlowTrace, goodput_bits_per_second: float | None) -> None:
    """``packet_throughput_bits_per_second`` and ``time_to_100_kb_s``, ``time_to_1_mb_s``, ``time_to_10_mb_s``."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    rate = packet_throughput(goodput_bits_per_second, path)
    why = "the flow was not active in the window" if len(trace) else NO_ACKS
    sheet.add(flow.id, "packet_throughput_bits_per_second", rate, "bit/s", why, **name)
    for label, amount in AMOUNTS_BYTES.items():
        why = f"fewer than {amount} bytes were acknowledged" if len(trace) else NO_ACKS
        sheet.add(flow.id, f"time_to_{label}_s", completion_time_s(trace, amount), "s", why, **name)
