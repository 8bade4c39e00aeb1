# SPDX-License-Identifier: Apache-2.0
"""Events that a slow-start module reported of a flow, and which of its exits ended the start-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Flow, Plan
from howdah.record.schema import CONGESTION, reason

THRESHOLD_REACHED = "initial-ssthresh"  # a reason


@dataclass(frozen=True)
class SlowStartEvent:
    """A row of the table ``slow_start``; ``quantity`` and ``threshold`` are raw (howdah.record.schema has units)."""

    time_ns: int
    event: str
    reason: str
    cwnd_packets: int
    ssthresh_packets: int | None
    quantity: int | None  # None if the source lacks it, such as the qlog of a QUIC stack
    threshold: int | None
    round: int | None
    min_rtt_us: int | None


def events_of(table: pa.Table) -> list[SlowStartEvent]:
    """Return the events of one flow, from its rows of the table ``slow_start``, in order."""
    rows = table.drop_columns(["flow"]).to_pylist()
    return [SlowStartEvent(**row) for row in rows]


def tells(plan: Plan, flow: Flow) -> bool:
    """Whether the flow's algorithm is a slow-start plug-in and its events were collected."""
    return plan.collect.slow_start and is_plug_in(plan, flow)


def is_plug_in(plan: Plan, flow: Flow) -> bool:
    """Whether the flow's algorithm is a slow-start plug-in: its module's name is ``ss_`` and the plug-in's name."""
    return f"ss_{flow.kernel_algorithm.rpartition('_')[0]}" in (plan.required_modules or [])


def count(events: list[SlowStartEvent], name: str) -> int:
    """Return how often a module reported an event."""
    return sum(item.event == name for item in events)


def told_exit(events: list[SlowStartEvent], trace: FlowTrace) -> SlowStartEvent | None:
    """Return the event that ended the start-up: the first exit that was not revoked.

    An exit is revoked when congestion proves spurious and the flow is in slow start again, and when an algorithm then
    raises the threshold from an estimate (Adaptive Start: the window keeps following it). Without a further exit, the
    last such estimate is the end. A cut of the window ends the start-up whatever is estimated afterwards. None without
    an exit, or if the flow is still below the threshold.
    """
    found: SlowStartEvent | None = None
    raised: SlowStartEvent | None = None
    until = np.inf
    for item in events:
        if item.time_ns > until:
            break
        if item.event == "exit" and found is None:
            found, raised = item, None
            if item.reason not in CONGESTION:
                until = _last_raise(trace, item.time_ns)
        elif item.event == "estimate" and (before := found or raised) and _raises(item, before, len(trace) > 0):
            found, raised = None, item
        elif item.event == "resume" and found is not None and _is_back(item, trace):
            found, until = None, np.inf
    return found or (raised if raised is not None and _is_reached(raised, trace) else None)


def _last_raise(trace: FlowTrace, after_ns: int) -> float:
    """Return when the trace last shows a threshold raised to the window, before one was cut below it.

    ``after_ns`` without such a raise; infinite without a trace.
    """
    if not len(trace):
        return np.inf
    begin = int(np.searchsorted(trace.time_ns, after_ns, side="right"))
    window, threshold = trace.cwnd[begin:], trace.ssthresh[begin:]
    cuts = np.flatnonzero(threshold[1:] < np.minimum(window[:-1], threshold[:-1]))
    end = 1 + int(cuts[0]) if cuts.size else window.size
    raised = np.flatnonzero((threshold[1:end] > threshold[: end - 1]) & (threshold[1:end] >= window[1:end]))
    return float(trace.time_ns[begin + 1 + int(raised[-1])]) if raised.size else float(after_ns)


def _raises(item: SlowStartEvent, before: SlowStartEvent, is_traced: bool) -> bool:
    """Whether an estimate raises the threshold; without a trace, at least to the window, as lower ones change nothing.

    Modules report a rising threshold once a round, so the trace shows better whether the window followed it.
    """
    if before.reason in CONGESTION or before.ssthresh_packets is None:
        return False
    now = np.inf if item.ssthresh_packets is None else item.ssthresh_packets
    return bool(now > before.ssthresh_packets and (is_traced or now >= item.cwnd_packets))


def _is_back(item: SlowStartEvent, trace: FlowTrace) -> bool:
    """Whether the flow is in slow start again, by the next record: modules report a return before the threshold is
    restored."""
    after = int(np.searchsorted(trace.time_ns, item.time_ns, side="right"))
    return after < len(trace) and bool(trace.cwnd[after] < trace.ssthresh[after])


def _is_reached(item: SlowStartEvent, trace: FlowTrace) -> bool:
    """Whether the window reached the threshold of an estimate; assumed without a trace."""
    after = int(np.searchsorted(trace.time_ns, item.time_ns, side="right"))
    return after >= len(trace) or bool((trace.cwnd[after:] >= trace.ssthresh[after:]).any())


def told_cause(events: list[SlowStartEvent], exit_: SlowStartEvent) -> str:
    """Return the exit's own reason; if an estimate had set the threshold, the reason of that estimate."""
    if exit_.reason != THRESHOLD_REACHED:
        return exit_.reason
    before = [item for item in events if item.event == "estimate" and item.time_ns <= exit_.time_ns]
    if before and before[-1].ssthresh_packets == exit_.ssthresh_packets and before[-1].reason != "none":
        return before[-1].reason
    return exit_.reason


def estimate_rows(sheet: Sheet, trace: FlowTrace, events: list[SlowStartEvent]) -> None:
    """Add ``estimated_bits_per_second`` and ``estimated_packets`` of the first ``estimate`` event with a rate.

    The rate is the module's (of data, not of frames), the packets are the ssthresh it set. No rows if the module
    reports no such estimate.
    """
    rates = [each for each in events if each.event == "estimate" and reason(each.reason).unit == "bit/s"]
    if not rates:
        return
    first = rates[0]
    sheet.add(trace.flow, "estimated_bits_per_second", reason(first.reason).quantity(first.quantity))
    why = "the estimate set no threshold"
    sheet.add(trace.flow, "estimated_packets", first.ssthresh_packets, why)
