# SPDX-License-Identifier: Apache-2.0
"""When the congestion window holds what the path does, and how much was sent until then; the smallest window of a flow;
and a window that was set at once (Jump Start, Quick-Start): its size, its spread, and its reduction by a loss.

Formulas are those of section II of the Jump Start paper: D is the smaller of the receiver's window and the data queued,
paced over the first round trip; at the end of the recovery of its losses cwnd is (D - R) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.capacity import FairCapacity, bdp_packets
from howdah.measure.event import SlowStartEvent
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.measured import Measured
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.path import Path


def opened_record(trace: FlowTrace, path: Path, capacity: FairCapacity) -> int | None:
    """Return the index of the first record with a window of at least a BDP
    (:func:`howdah.measure.capacity.bdp_packets`), or None.

    The Jump Start paper's introduction: "if a connection needs a cwnd of N segments to fully utilize the capacity",
    slow start takes log2 N round trips and 2 N segments to open it.
    """
    needed_packets = bdp_packets(capacity, trace.flow, path, trace.time_ns)
    found = np.flatnonzero((trace.cwnd >= needed_packets) & (needed_packets > 0))
    return int(found[0]) if found.size else None


def opening_rows(sheet: Sheet, trace: FlowTrace, path: Path, capacity: FairCapacity) -> None:
    """Add ``window_open_time_s`` and ``window_open_sent_bytes`` of a flow.

    The time is from the flow's start (including its handshake) to the ACK after which the window holds the path; the
    bytes are all that had been sent when the next ACK came.
    """
    record = opened_record(trace, path, capacity)
    why = "the window never held what the path does" if len(trace) else NO_ACKS
    time_s = None if record is None else (int(trace.time_ns[max(record - 1, 0)]) - trace.start_ns) / SECOND_NS
    sheet.add(trace.flow, "window_open_time_s", time_s, why)
    sent = None if record is None else int(trace.snd_nxt[record])
    sheet.add(trace.flow, "window_open_sent_bytes", sent, why)


def extreme_rows(sheet: Sheet, trace: FlowTrace) -> None:
    """Add ``least_cwnd_packets`` and ``largest_cwnd_packets`` of a flow, or of a connection of a group."""
    flow = trace.flow
    for metric, pick in (("least_cwnd_packets", np.min), ("largest_cwnd_packets", np.max)):
        sheet.add(flow, metric, int(pick(trace.cwnd)) if len(trace) else None, NO_ACKS)


@dataclass(frozen=True)
class Reached:
    """When a window was reached. ``rounds`` counts from the first ACK; the last round counts whole."""

    time_s: float
    rounds: int


def reach(trace: FlowTrace, cwnd_packets: int) -> Reached | None:
    """Return the first ACK after which cwnd is at least ``cwnd_packets``; None if the window stays smaller.

    Time is from the moment the connection could send (from the flow's start if that is unknown), without the handshake.
    The paper's arithmetic for limited slow start, rounds times RTT, begins with the first window (HyStart paper,
    section 3.4).
    """
    reached = np.flatnonzero(trace.cwnd >= cwnd_packets)
    if not reached.size:
        return None
    record = int(reached[0])
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    ack_ns = int(trace.time_ns[max(record - 1, 0)])
    return Reached((ack_ns - begin) / SECOND_NS, int(np.searchsorted(rounds(trace), record, side="left")))


def reach_rows(sheet: Sheet, trace: FlowTrace, cwnd_packets: int | None) -> None:
    """Add ``time_to_cwnd_s`` and ``rounds_to_cwnd``; no rows if the profile names no window."""
    if cwnd_packets is None:
        return
    found = reach(trace, cwnd_packets)
    why = f"the window never was {cwnd_packets} packets"
    sheet.add(trace.flow, "time_to_cwnd_s", found.time_s if found else None, why)
    sheet.add(trace.flow, "rounds_to_cwnd", found.rounds if found else None, why)


LEAST_WINDOW_PACKETS = 2  # least ssthresh (RFC 5681)


def spread_rtts(trace: FlowTrace, packets: int) -> float | None:
    """Return the time from the ACK of the first packet to the ACK of the ``packets``-th, in round trips of the path.

    None if the trace does not reach that far.
    """
    acked = np.flatnonzero(trace.una_after > 0)
    whole = np.flatnonzero(trace.una_after >= packets * trace.mss_bytes)
    if not acked.size or not whole.size:
        return None
    return float(trace.time_ns[whole[0]] - trace.time_ns[acked[0]]) / (trace.flow.rtt_us * 1000)


def offered_packets(receiver: Samples, start_ns: int, mss_bytes: int) -> int | None:
    """Return the receiver's window in whole segments, by its own first reading that has one."""
    if not receiver.has("rcv_wnd_bytes"):
        return None
    there = (receiver.time_ns >= start_ns) & (receiver["rcv_wnd_bytes"] > 0)
    return int(receiver["rcv_wnd_bytes"][there][0]) // mss_bytes if there.any() else None


def again_packets(info: Samples, loss_ns: int, recovered_ns: int) -> int | None:
    """Return R: segments retransmitted from the reading before the loss was noticed to the first after recovery."""
    return info.growth("total_retrans_packets", loss_ns - 1, recovered_ns)


def jump_rows(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """Add ``jump_packets``, ``offered_packets``, ``jump_spread_rtts`` of a flow whose module reports the end of a jump.

    If it also reports that the jump was too large: ``retreat_packets``, the window the module set after the recovery,
    and ``jump_half_survived_packets``, (D - R) / 2 in whole packets, at least 2, with R of tcp_info.
    """
    events = data.events.get(trace.flow.id, [])
    ended = _first(events, "jump-end")
    if ended is None:
        return
    flow = trace.flow
    size = ended.quantity or 0  # modules report all numbers
    sheet.add(flow, "jump_packets", size)
    offered = offered_packets(data.info_receiver[flow.id], trace.start_ns, trace.mss_bytes)
    sheet.add(flow, "offered_packets", offered, "tcp_info of the receiver was not read")
    lost = _first(events, "exit")
    spread = spread_rtts(trace, size) if lost is None or lost.reason not in ("loss", "rto") else None
    sheet.add(flow, "jump_spread_rtts", spread, "a packet of the jump was lost")
    retreat = _first(events, "retreat")
    if retreat is None or lost is None:
        return
    sheet.add(flow, "retreat_packets", retreat.quantity)
    again = again_packets(data.info[flow.id], lost.time_ns, retreat.time_ns)
    half = None if again is None else max((size - min(again, size)) // 2, LEAST_WINDOW_PACKETS)
    sheet.add(flow, "jump_half_survived_packets", half, "tcp_info was not read")


def _first(events: list[SlowStartEvent], name: str) -> SlowStartEvent | None:
    return next((item for item in events if item.event == name), None)
