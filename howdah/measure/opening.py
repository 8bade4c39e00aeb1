# SPDX-License-Identifier: Apache-2.0
"""When the congestion window holds what the path does, and how much was sent for it; the smallest window of a flow."""

from __future__ import annotations

import numpy as np

from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Path


def opened_record(trace: FlowTrace, path: Path) -> int | None:
    """Index of the first record with a window of at least rate x the flow's RTT / frame; None if there is none.

    The Jump Start paper's introduction: "if a connection needs a cwnd of N segments to fully utilize the capacity",
    slow start takes log2 N round trips and 2 N segments to open it.
    """
    needed_packets = path.rate_bits_per_second * trace.flow.rtt_us / 8_000_000 / path.frame_bytes
    found = np.flatnonzero(trace.cwnd >= needed_packets)
    return int(found[0]) if found.size else None


def opening_rows(sheet: Sheet, trace: FlowTrace, path: Path) -> None:
    """``window_open_time_s`` and ``window_open_sent_bytes`` of a flow.

    The time is from the flow's start (its handshake is in it) to the ACK after which the window holds the path; the
    bytes are all that had been sent when the next ACK came.
    """
    name = {"algorithm": trace.flow.algorithm}
    record = opened_record(trace, path)
    why = "the window never held what the path does" if len(trace) else NO_ACKS
    time_s = None if record is None else (int(trace.time_ns[max(record - 1, 0)]) - trace.start_ns) / SECOND_NS
    sheet.add(trace.flow.id, "window_open_time_s", time_s, "s", why, **name)
    sent = None if record is None else int(trace.snd_nxt[record])
    sheet.add(trace.flow.id, "window_open_sent_bytes", sent, "bytes", why, **name)


def extreme_rows(sheet: Sheet, trace: FlowTrace) -> None:
    """``least_cwnd_packets`` and ``largest_cwnd_packets`` of a flow, or of a connection of a group."""
    flow = trace.flow
    name: dict[str, str | None] = {"algorithm": flow.algorithm}
    if flow.group is not None:
        name["group"] = flow.group
    for metric, pick in (("least_cwnd_packets", np.min), ("largest_cwnd_packets", np.max)):
        sheet.add(flow.id, metric, int(pick(trace.cwnd)) if len(trace) else None, "packets", NO_ACKS, **name)
