# SPDX-License-Identifier: Apache-2.0
"""How long the congestion window takes to a size that the profile names (``measure.reach``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace


@dataclass(frozen=True)
class Reached:
    """``rounds`` counts from the first ACK; a round in the middle of which the window was reached counts whole."""

    time_s: float
    rounds: int


def reach(trace: FlowTrace, cwnd_packets: int) -> Reached | None:
    """The first ACK after which cwnd is at least ``cwnd_packets``; None if there is none.

    Time is from the moment the connection could send (from the flow's start where that is not known), so that the
    handshake is left out: the paper's arithmetic for limited slow start, rounds times RTT, begins with the first
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
    sheet.add(trace.flow.id, "time_to_cwnd_s", found.time_s if found else None, "s", why, **name)
    sheet.add(trace.flow.id, "rounds_to_cwnd", found.rounds if found else None, "rounds", why, **name)
