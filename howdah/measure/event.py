# SPDX-License-Identifier: Apache-2.0
"""What a slow-start module told of a flow, and which of its exits ended the start-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Flow, Plan
from howdah.tables.event import CONGESTION

_THRESHOLD_REACHED = "initial-ssthresh"


@dataclass(frozen=True)
class Event:
    """A row of the table ``slow_start``; ``quantity`` and ``threshold`` are raw (howdah.tables.event has the units)."""

    time_ns: int
    event: str
    reason: str
    cwnd_packets: int
    ssthresh_packets: int | None
    quantity: int
    threshold: int
    round: int
    min_rtt_us: int | None


def events_of(table: pa.Table, flow: int) -> list[Event]:
    """The events of one flow in the order in which they were told."""
    rows = table.filter(pc.equal(table["flow"], flow)).drop_columns(["flow"]).to_pylist()
    return [Event(**row) for row in rows]


def tells(plan: Plan, flow: Flow) -> bool:
    """Whether the flow's algorithm is a slow-start plug-in whose events were collected."""
    plug_in = f"ss_{flow.kernel_algorithm.rpartition('_')[0]}"
    return plan.collect.slow_start and plug_in in (plan.required_modules or [])


def count(events: list[Event], name: str) -> int:
    """How often an event was told."""
    return sum(item.event == name for item in events)


def told_exit(events: list[Event], trace: FlowTrace) -> Event | None:
    """The exit that ended the start-up: the first one that was not taken back.

    An exit is taken back when the connection returns to slow start before anything else happened: an algorithm raises
    the threshold above the window (Adaptive Start), or the congestion proves spurious and is undone. A loss ends a
    start-up whatever the algorithm estimates afterwards. None if there is no exit, or the last one was taken back.
    """
    found: Event | None = None
    for item in events:
        if item.event == "exit":
            found = found or item
        elif found is not None and _takes_back(item, found, trace):
            found = None
    return found


def _takes_back(item: Event, exit_: Event, trace: FlowTrace) -> bool:
    if item.event == "estimate":
        raised = item.ssthresh_packets is None or item.ssthresh_packets > item.cwnd_packets
        return raised and exit_.reason not in CONGESTION
    if item.event == "resume":
        # Told before the old threshold is restored: the next record shows whether it put the flow below it again.
        after = int(np.searchsorted(trace.time_ns, item.time_ns, side="right"))
        return after < len(trace) and bool(trace.cwnd[after] < trace.ssthresh[after])
    return False


def told_cause(events: list[Event], exit_: Event) -> str:
    """The exit's own reason; for a threshold that an estimate had set, the reason of that estimate."""
    if exit_.reason != _THRESHOLD_REACHED:
        return exit_.reason
    before = [item for item in events if item.event == "estimate" and item.time_ns <= exit_.time_ns]
    if before and before[-1].ssthresh_packets == exit_.ssthresh_packets and before[-1].reason != "none":
        return before[-1].reason
    return exit_.reason
