# SPDX-License-Identifier: Apache-2.0
"""Goodput over time: time to 90 % of the fair capacity, blackouts, utilisation, completion, fairness.

Goodput is what the sender knows to have arrived: bytes cumulatively acknowledged, at the time the ACK arrives. Only the
end of a flow of fixed size is the receiver's.
"""

from __future__ import annotations

import numpy as np

from howdah.measure.capacity import FairCapacity
from howdah.measure.trace import SECOND_NS, FlowTrace

GOOD_SHARE = 0.9
BLACKOUT_SHARE = 0.01
RAMP_SHARE = 0.1


def time_to_share_s(trace: FlowTrace, capacity: FairCapacity, share: float = GOOD_SHARE) -> float | None:
    """Return the start of the first RTT window in which the flow's goodput is at least ``share`` of its fair capacity.

    In seconds from the flow's start; None without one. A window begins at any ACK and lasts the RTT of that moment (the
    smoothed one, at least the path's), so that it contains one flight, however bursty. It must end before the flow
    does. A window in which the path carries nothing does not count.
    """
    begin = trace.time_ns
    end = begin + trace.window_ns
    begin, end = begin[end <= trace.stop_ns], end[end <= trace.stop_ns]
    if not begin.size:
        return None
    got = trace.acked_bytes(end) - trace.acked_bytes(begin)
    fair = capacity.fair_bytes(begin, end)
    enough = np.flatnonzero((fair > 0) & (got >= share * fair))
    return float(begin[enough[0]] - trace.start_ns) / SECOND_NS if enough.size else None


def blackout_s(trace: FlowTrace, capacity: FairCapacity) -> float | None:
    """Return the seconds in RTT windows with goodput below :data:`BLACKOUT_SHARE` of the capacity, after the ramp.

    None for a flow that never left the ramp (:func:`silent_spans`).
    """
    spans = silent_spans(trace, capacity)
    return None if spans is None else sum(end - begin for begin, end in spans) / SECOND_NS


def silent_spans(trace: FlowTrace, capacity: FairCapacity) -> list[tuple[int, int]] | None:
    """Return begin and end (ns) of each stretch of consecutive RTT windows with goodput below :data:`BLACKOUT_SHARE` of
    the capacity.

    Windows follow one another from the first ACK to the flow's end, each as long as the RTT at its beginning. Those
    before the first one with :data:`RAMP_SHARE` of the capacity are the ramp and no blackout. Ten packets are 0.13 % of
    400 Mbit/s x 240 ms, and while a flight is small compared with a window, an early or late one leaves a window empty.
    None for a flow that never left the ramp.
    """
    if not len(trace):
        return None
    lengths = trace.window_ns
    begin = int(trace.time_ns[0])
    spans: list[tuple[int, int]] = []
    reached = False
    while True:
        length = int(lengths[np.searchsorted(trace.time_ns, begin, side="right") - 1])
        end = begin + length
        if end > trace.stop_ns:
            return spans if reached else None
        got = int(trace.acked_bytes(end)) - int(trace.acked_bytes(begin))
        full = capacity.whole_bytes(begin, end)
        reached = reached or (full > 0 and got >= RAMP_SHARE * full)
        if reached and got < BLACKOUT_SHARE * full:
            since = spans.pop()[0] if spans and spans[-1][1] == begin else begin
            spans.append((since, end))
        begin = end


def goodput_bits_per_second(trace: FlowTrace, begin_ns: int, end_ns: int) -> float | None:
    """Return the mean goodput of a flow over an interval; None if it is empty."""
    if end_ns <= begin_ns:
        return None
    return float(trace.acked_bytes(end_ns) - trace.acked_bytes(begin_ns)) * 8 * SECOND_NS / (end_ns - begin_ns)


def flow_goodput_bits_per_second(trace: FlowTrace, begin_ns: int, end_ns: int) -> float | None:
    """Return the mean goodput of a flow over an interval. For a flow of fixed size that completes in it, the interval
    ends with the receiver's last byte and all of its bytes count: size over completion time, from its start on.
    """
    received, size = trace.received_ns, trace.flow.size_bytes
    if received is None or size is None or not begin_ns < received <= end_ns:
        return goodput_bits_per_second(trace, begin_ns, end_ns)
    return float(size - trace.acked_bytes(begin_ns)) * 8 * SECOND_NS / (received - begin_ns)


def utilisation(traces: list[FlowTrace], capacity: FairCapacity, begin_ns: int, end_ns: int) -> float | None:
    """Bytes acknowledged by all flows in a window over what the path can carry (goodput of a full pipe): a ratio."""
    if end_ns <= begin_ns:
        return None
    got = sum(int(trace.acked_bytes(end_ns) - trace.acked_bytes(begin_ns)) for trace in traces)
    carried = capacity.whole_bytes(begin_ns, end_ns)
    return got / carried if carried else None


def completion_time_s(trace: FlowTrace, size_bytes: int) -> float | None:
    """Return seconds from the start to the ACK of the last of ``size_bytes``, or None if the trace does not show it."""
    reached = np.flatnonzero(trace.una_after >= size_bytes) if len(trace) else np.zeros(0)
    return float(trace.time_ns[reached[0]] - trace.start_ns) / SECOND_NS if reached.size else None


def jain_index(shares: list[float]) -> float | None:
    """Return Jain, Chiu and Hawe's index (DEC-TR-301): (sum x)^2 / (n sum x^2); None for fewer than two flows or no
    traffic.
    """
    squares = sum(share * share for share in shares)
    if len(shares) < 2 or squares == 0:
        return None
    return sum(shares) ** 2 / (len(shares) * squares)


def common_span_ns(traces: list[FlowTrace]) -> tuple[int, int] | None:
    """Return the time during which all flows are active, or None."""
    begin = max(trace.start_ns for trace in traces)
    end = min(trace.stop_ns for trace in traces)
    return (begin, end) if begin < end else None
