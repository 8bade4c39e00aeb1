# SPDX-License-Identifier: Apache-2.0
"""A window that was set at once (Jump Start, Quick-Start): its size, how it was spread, what a loss made of it.

Formulas are those of section II of the Jump Start paper: D is the least of the receiver's window and the data queued,
paced over the first round trip; at the end of the recovery of its losses cwnd is (D - R) / 2.
"""

from __future__ import annotations

import numpy as np

from howdah.measure.event import SlowStartEvent
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace

LEAST_WINDOW_PACKETS = 2  # RFC 5681: ssthresh is never less


def spread_rtts(trace: FlowTrace, packets: int) -> float | None:
    """Time from the ACK of the first packet to the ACK of the ``packets``-th, in round trips of the path.

    None where the trace does not reach that far, or one of them was lost (its ACK comes a round trip late at least).
    """
    acked = np.flatnonzero(trace.una_after > 0)
    whole = np.flatnonzero(trace.una_after >= packets * trace.mss_bytes)
    if not acked.size or not whole.size:
        return None
    return float(trace.time_ns[whole[0]] - trace.time_ns[acked[0]]) / (trace.flow.rtt_us * 1000)


def offered_packets(receiver: Samples, start_ns: int, mss_bytes: int) -> int | None:
    """The receiver's window in whole segments, by its own first reading in which there is one."""
    if not receiver.has("rcv_wnd_bytes"):
        return None
    there = (receiver.time_ns >= start_ns) & (receiver["rcv_wnd_bytes"] > 0)
    return int(receiver["rcv_wnd_bytes"][there][0]) // mss_bytes if there.any() else None


def again_packets(info: Samples, loss_ns: int, recovered_ns: int) -> int | None:
    """R: segments retransmitted from the reading before the loss was noticed to the first one after the recovery."""
    return info.growth("total_retrans_packets", loss_ns - 1, recovered_ns)


def jump_rows(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """``jump_packets``, ``offered_packets``, ``jump_spread_rtts`` of a flow whose module tells that a jump ended.

    Where it also tells that the jump was too large: ``retreat_packets``, the window the module set after the recovery,
    and ``jump_half_survived_packets``, (D - R) / 2 in whole packets, at least 2, with R of tcp_info.
    """
    events = data.events.get(trace.flow.id, [])
    ended = _first(events, "jump-end")
    if ended is None:
        return
    flow = trace.flow
    size = ended.quantity or 0  # modules tell every number
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
