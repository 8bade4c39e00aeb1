# SPDX-License-Identifier: Apache-2.0
"""When the congestion window holds what the path does, and how much was sent for it; the smallest window of a flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from howdah.measure.capacity import FairCapacity, bdp_packets
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.path import Path


def opened_record(trace: FlowTrace, path: Path, capacity: FairCapacity) -> int | None:
    """Index of the first record with a window of at least a BDP (:func:`howdah.measure.capacity.bdp_packets`); None
    without one.

    The Jump Start paper's introduction: "if a connection needs a cwnd of N segments to fully utilize the capacity",
    slow start takes log2 N round trips and 2 N segments to open it.
    """
    needed_packets = bdp_packets(capacity, trace.flow, path, trace.time_ns)
    found = np.flatnonzero((trace.cwnd >= needed_packets) & (needed_packets > 0))
    return int(found[0]) if found.size else None


def opening_rows(sheet: Sheet, trace: FlowTrace, path: Path, capacity: FairCapacity) -> None:
    """``window_open_time_s`` and ``window_open_sent_bytes`` of a flow.

    The time is from the flow's start (its handshake is in it) to the ACK after which the window holds the path; the
    bytes are all that had been sent when the next ACK came.
    """
    name = {"algorithm": trace.flow.algorithm}
    record = opened_record(trace, path, capacity)
    why = "the window never held what the path does" if len(trace) else NO_ACKS
    time_s = None if record is None else (int(trace.time_ns[max(record - 1, 0)]) - trace.start_ns) / SECOND_NS
    sheet.add(trace.flow.id, "window_open_time_s", time_s, why, **name)
    sent = None if record is None else int(trace.snd_nxt[record])
    sheet.add(trace.flow.id, "window_open_sent_bytes", sent, why, **name)


def extreme_rows(sheet: Sheet, trace: FlowTrace) -> None:
    """``least_cwnd_packets`` and ``largest_cwnd_packets`` of a flow, or of a connection of a group."""
    flow = trace.flow
    name: dict[str, Any] = {"algorithm": flow.algorithm}
    if flow.group is not None:
        name["group"] = flow.group
    for metric, pick in (("least_cwnd_packets", np.min), ("largest_cwnd_packets", np.max)):
        sheet.add(flow.id, metric, int(pick(trace.cwnd)) if len(trace) else None, NO_ACKS, **name)


@dataclass(frozen=True)
class Reached:
    """``rounds`` counts from the first ACK; a round in the middle of which the window was reached counts whole."""

    time_s: float
    rounds: int


def reach(trace: FlowTrace, cwnd_packets: int) -> Reached | None:
    """The first ACK after which cwnd is at least ``cwnd_packets``; None if the window stays smaller.

    Time is from the moment the connection could send (from the flow's start where that is not known), so that the
    handshake is left out. The paper's arithmetic for limited slow start, rounds times RTT, begins with the first
    window (HyStart paper, section 3.4).
    """
    reached = np.flatnonzero(trace.cwnd >= cwnd_packets)
    if not reached.size:
        return None
    record = int(reached[0])
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    ack_ns = int(trace.time_ns[max(record - 1, 0)])
    return Reached((ack_ns - begin) / SECOND_NS, int(np.searchsorted(rounds(trace), record, side="left")))


def reach_rows(sheet: Sheet, trace: FlowTrace, cwnd_packets: int | None) -> None:
    """``time_to_cwnd_s`` and ``rounds_to_cwnd``; no rows where the profile names no window."""
    if cwnd_packets is None:
        return
    found = reach(trace, cwnd_packets)
    name = {"algorithm": trace.flow.algorithm}
    why = f"the window never was {cwnd_packets} packets"
    sheet.add(trace.flow.id, "time_to_cwnd_s", found.time_s if found else None, why, **name)
    sheet.add(trace.flow.id, "rounds_to_cwnd", found.rounds if found else None, why, **name)
