# SPDX-License-Identifier: Apache-2.0
"""Where the decision to leave slow start falls, against the moment at which the path was full."""

from __future__ import annotations

import numpy as np

from howdah.measure.capacity import FairCapacity
from howdah.measure.event import Event
from howdah.measure.exit import Exit
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.row import Sheet
from howdah.measure.throughput import time_to_share_s
from howdah.measure.trace import SECOND_NS, FlowTrace

_DRAINED = "drain-end"


def decision_ns(found: Exit, events: list[Event]) -> int:
    """When the exit was decided: at the exit, or, where a module first drains what it had sent too much (SEARCH 4), at
    the phase it told of when the drain began.
    """
    before = [each for each in events if each.time_ns <= found.time_ns]
    if not any(each.event == _DRAINED for each in before):
        return found.time_ns
    phases = [each.time_ns for each in before if each.event == "phase"]
    return phases[-1] if phases else found.time_ns


def delivery_share(trace: FlowTrace, capacity: FairCapacity, at_ns: int) -> float | None:
    """Bytes acknowledged in the last RTT window before ``at_ns`` over what the path can carry in it; a ratio.

    The window is the smoothed RTT of that moment, at least the path's own. None before the first ACK.
    """
    record = int(np.searchsorted(trace.time_ns, at_ns, side="right")) - 1
    if record < 0:
        return None
    begin = at_ns - int(trace.window_ns[record])
    return float(trace.acked_bytes(at_ns) - trace.acked_bytes(begin)) / capacity.whole_bytes(begin, at_ns)


def crossing_rows(
    sheet: Sheet, trace: FlowTrace, capacity: FairCapacity, found: Exit | None, events: list[Event]
) -> None:
    """``exit_delivery_share`` and ``exit_after_capacity_rtts``.

    The second is the time from the beginning of the first RTT window with 90 % of the fair capacity to the decision,
    in round trips of the path: negative for a flow that left before the path was full. (SEARCH slides: "crosses the
    threshold near capacity", "detects the congestion point in less than 2 RTTs".)
    """
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    why = "the flow did not leave slow start" if len(trace) else NO_ACKS
    at_ns = None if found is None else decision_ns(found, events)
    share = None if at_ns is None else delivery_share(trace, capacity, at_ns)
    sheet.add(flow.id, "exit_delivery_share", share, "ratio", why, **name)
    full_s = time_to_share_s(trace, capacity) if len(trace) else None
    after = None
    if at_ns is not None and full_s is not None:
        after = ((at_ns - trace.start_ns) / SECOND_NS - full_s) * 1e6 / flow.rtt_us
    why = why if at_ns is None else "no RTT window reached 90 % of the fair capacity"
    sheet.add(flow.id, "exit_after_capacity_rtts", after, "round trips", why, **name)
