# SPDX-License-Identifier: Apache-2.0
"""How fast a window grows from round to round until the exit, and what it is in the end."""

from __future__ import annotations

import numpy as np

from howdah.measure.exit import Exit
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Path

# A round in which the window grows by less than this factor is no longer exponential growth: delayed ACKs without a
# limit per ACK make 2, with RFC 5681's limit of one packet 1.5.
EXPONENTIAL = 1.45


def round_growth(trace: FlowTrace, found: Exit | None) -> float | None:
    """Mean factor by which cwnd grew in a whole round of slow start; a ratio.

    The n-th root of cwnd at the beginning of the last round that begins before the exit over cwnd at the beginning of
    the first, n rounds apart: 2 where it doubles every round, the root of 2 where it doubles every other one (Adaptive
    Start paper, section III.D, on Vegas). None without an exit or a whole round.
    """
    if found is None or not len(trace):
        return None
    starts = rounds(trace)
    starts = starts[starts < max(found.record, 1)]
    if starts.size < 2:
        return None
    first, last = float(trace.cwnd[starts[0]]), float(trace.cwnd[starts[-1]])
    return float((last / first) ** (1 / (starts.size - 1)))


def exponential_growth_s(trace: FlowTrace) -> float | None:
    """Seconds from the flow's start to the end of its first rounds in a row that grew by :data:`EXPONENTIAL` or more.

    0 if the first round did not grow so; None without two rounds.
    """
    starts = rounds(trace)
    if starts.size < 2:
        return None
    windows = trace.cwnd[starts].astype(np.float64)
    slow = np.flatnonzero(windows[1:] < EXPONENTIAL * windows[:-1])
    count = int(slow[0]) if slow.size else starts.size - 1
    return float(trace.time_ns[starts[count]] - trace.start_ns) / SECOND_NS if count else 0.0


def final_cwnd(trace: FlowTrace, end_ns: int) -> int | None:
    """cwnd at the last ACK not later than ``end_ns``; None if there is none."""
    record = int(np.searchsorted(trace.time_ns, end_ns, side="right")) - 1
    return int(trace.cwnd[record]) if record >= 0 else None


def growth_rows(sheet: Sheet, path: Path, trace: FlowTrace, found: Exit | None, end_ns: int) -> None:
    """``round_growth``, ``exponential_growth_s``, and ``final_cwnd_packets`` and ``_bdp`` at ``end_ns``."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    why = "there was no whole round before the exit" if len(trace) else NO_ACKS
    sheet.add(flow.id, "round_growth", round_growth(trace, found), "ratio", why, **name)
    why = "there were not two rounds" if len(trace) else NO_ACKS
    sheet.add(flow.id, "exponential_growth_s", exponential_growth_s(trace), "s", why, **name)
    why = "no ACK before the end of the window" if len(trace) else NO_ACKS
    window = final_cwnd(trace, end_ns)
    bdp = path.rate_bits_per_second * flow.rtt_us / 8_000_000 / path.frame_bytes
    sheet.add(flow.id, "final_cwnd_packets", window, "packets", why, **name)
    sheet.add(flow.id, "final_cwnd_bdp", None if window is None else window / bdp, "ratio", why, **name)
