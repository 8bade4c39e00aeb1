# SPDX-License-Identifier: Apache-2.0
"""Measures of a sender with a TCP stack of its own, from its packets alone: no kernel reports its window.

Data in flight replaces the window: bytes sent and not acknowledged when an ACK arrives, outside recoveries. In a
recovery, bytes that a SACK reports have arrived, and a sender that knows it sends more.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.measure.capacity import share_of_bdp
from howdah.measure.growth import GrowthEnd, growth_end, in_flight
from howdah.measure.measured import Measured
from howdah.measure.receiver import first_syn
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory

LOSS, RECEIVE_WINDOW, UNKNOWN = "loss", "receive-window", "unknown"
_SYN = 2
# Metrics that only a sender's kernel reports.
_OF_ITS_KERNEL = (
    *("exit_time_s", "exit_cwnd_packets", "exit_cwnd_bdp", "startup_left", "exit_round", "exit_cause"),
    *("decision_time_s", "decision_cwnd_packets", "rollback_packets", "peak_cwnd_packets", "round_growth"),
    *("exponential_growth_s", "final_cwnd_packets", "final_cwnd_bdp", "least_cwnd_packets", "largest_cwnd_packets"),
    *("time_to_cwnd_s", "rounds_to_cwnd", "timeouts", "first_timeout_s", "nothing_to_send_share"),
    *("autotuning_lag_s", "receive_window_limited_s"),
)


def unseen(plan: Plan) -> dict[tuple[int | None, str], str]:
    """Return the metrics of flows that packets cannot show, with the reason: the sheet leaves them without a value."""
    return {
        (flow.id, metric): f"the stack {flow.sender_stack.name} sends, and its packets do not show this"
        for flow in plan.flows
        if flow.sender_stack is not None
        for metric in _OF_ITS_KERNEL
    }


def own_stack_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Add the rows of every flow sent by a stack of its own; ``sender_options`` are those of its SYN.

    ``initial_flight_packets``: data segments before the first ACK of data. ``inflight_peak_*``: the most in flight.
    ``growth_end_*``: see :func:`growth_end`. ``offered_window_filled_share``: see :func:`filled_share`.
    """
    flows = [flow for flow in data.plan.flows if flow.sender_stack is not None]
    if not flows or not directory.table("segment").exists():
        return
    segments, probe = store.read(directory, "segment"), store.read(directory, "tcp_probe")
    for flow in flows:
        trace = data.trace(flow)
        add = partial(sheet.add, flow)
        add("sender_options", _options(segments, flow.id), "the sender's SYN is not in its capture")
        why = "no ACK of this flow was captured at its sender"
        there = len(trace) > 0
        flying = in_flight(trace)
        most = int(np.argmax(flying)) if there else None
        peak = None if most is None else float(flying[most])
        of_bdp = partial(share_of_bdp, capacity=data.capacity, flow=flow, path=data.plan.path)
        add("initial_flight_packets", int(np.ceil(trace.packets_out[0])) if there else None, why)
        add("inflight_peak_packets", peak, why)
        add("inflight_peak_bdp", of_bdp(peak, time_ns=None if most is None else int(trace.time_ns[most])), why)
        window = _window(probe, flow.id)
        share = filled_share(trace, window) if there else None
        add("offered_window_filled_share", share, f"{why} twice" if there else why)
        end = growth_end(trace, flying)
        why = "what it had in flight grew to the end of the flow" if there else why
        cause = None if end is None else _cause(trace, data.info[flow.id], end, window)
        add("growth_end_s", None if end is None else (end.time_ns - trace.start_ns) / SECOND_NS, why)
        add("growth_end_bdp", None if end is None else of_bdp(end.packets, time_ns=end.time_ns), why)
        add("growth_end_cause", cause, why)


def _cause(trace: FlowTrace, info: Samples, end: GrowthEnd, window: Integers) -> str:
    """Return ``loss`` if data was retransmitted in the last round that grew or the one after it, ``receive-window`` if
    the offered window was full in more than half of the latter's records, else ``unknown``.
    """
    last_ns = int(trace.time_ns[min(end.end, len(trace) - 1)])
    if info.growth("total_retrans_packets", int(trace.time_ns[end.begin]) - 1, last_ns):
        return LOSS
    full = _filled(trace, window)[end.following : end.end]
    return RECEIVE_WINDOW if full.size and full.mean() > 0.5 else UNKNOWN


def filled_share(trace: FlowTrace, window: Integers) -> float | None:
    """Return the share of the time from the first ACK to the last in which no further whole segment fitted into the
    window that the receiver had offered; ``window`` in bytes at each record. None with fewer than two ACKs."""
    lasts = np.diff(trace.time_ns)
    return float(lasts[_filled(trace, window)].sum() / lasts.sum()) if lasts.sum() else None


def _filled(trace: FlowTrace, window: Integers) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """For each record but the last, whether what was sent until the next one fills the window."""
    return np.asarray(trace.snd_nxt[1:] + trace.mss_bytes > trace.una_after[:-1] + window[:-1])


def _window(probe: pa.Table, flow: int) -> Integers:
    column = probe.filter(pc.equal(probe["flow"], flow))["snd_wnd_bytes"]
    return np.asarray(column.fill_null(0).to_numpy(), dtype=np.int64)


def _options(segments: pa.Table, flow: int) -> str | None:
    of_flow = pc.and_(pc.equal(segments["flow"], flow), pc.equal(segments["end"], "sender"))
    sent = pc.and_(pc.equal(segments["sent_by"], "sender"), pc.greater(pc.bit_wise_and(segments["flags"], _SYN), 0))
    syn = first_syn(segments.filter(pc.and_(of_flow, sent)))
    return syn.text() if syn else None
