# SPDX-License-Identifier: Apache-2.0
"""What the path did while the flows ran, watched without touching it."""

from __future__ import annotations

import numpy as np

from howdah.judge.check import DURING, Check, within
from howdah.judge.tolerance import Tolerance
from howdah.measure.measured import Measured
from howdah.measure.rounds import raw_rtt
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace


def during_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    checks = [dequeue_rate(data, tolerance), peak_backlog(data)]
    return checks + [minimum_rtt(data, trace, tolerance) for trace in data.traces]


def backlogged_spans(bottleneck: Samples) -> list[tuple[int, int]]:
    """Spans of readings (first, last index) between which the queue never ran empty.

    A first-in first-out queue cannot have run empty between two readings if what it held at the first is at least
    what it sent until the second.
    """
    sent = np.diff(bottleneck["sent_bytes"])
    busy = (bottleneck["backlog_bytes"][:-1] > sent) & (sent > 0)
    edges = np.diff(np.concatenate([[0], busy.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def dequeue_rate(data: Measured, tolerance: Tolerance) -> Check:
    """Bytes the bottleneck sent while it had a queue, over that time; each span is known to one frame at either end."""
    expected = data.plan.path.rate_bits_per_second
    bottleneck = data.bottleneck
    what = "the bottleneck's rate while it had a queue"
    if not (bottleneck.has("sent_bytes") and bottleneck.has("backlog_bytes")):
        return within("dequeue rate", DURING, None, expected, 0, "bit/s", what, "the queue was not read")
    spans = backlogged_spans(bottleneck)
    sent = sum(int(bottleneck["sent_bytes"][end] - bottleneck["sent_bytes"][begin]) for begin, end in spans)
    time = sum(int(bottleneck.time_ns[end] - bottleneck.time_ns[begin]) for begin, end in spans)
    if not time:
        why = "the queue was never long enough to be sure that it did not run empty between two readings"
        return within("dequeue rate", DURING, None, expected, 0, "bit/s", what, why)
    doubt = 2 * len(spans) * data.plan.path.frame_bytes * 8 * SECOND_NS / time
    rate = sent * 8 * SECOND_NS / time
    return within("dequeue rate", DURING, rate, expected, tolerance.rate_share * expected + doubt, "bit/s", what)


def peak_backlog(data: Measured) -> Check:
    """The queue never held more than its limit and one frame."""
    limit = data.plan.calibration.buffer_bytes
    frame = data.plan.path.frame_bytes
    if not data.bottleneck.has("backlog_bytes"):
        return Check("peak backlog", DURING, None, "the queue was not read", limit, None, frame, "bytes")
    peak = int(data.bottleneck["backlog_bytes"].max())
    ok = peak <= limit + frame
    message = f"the bottleneck held at most {peak} bytes; its limit is {limit}"
    if not ok:
        message += ": the buffer is larger than configured"
    return Check("peak backlog", DURING, ok, message, limit, peak, frame, "bytes")


def minimum_rtt(data: Measured, trace: FlowTrace, tolerance: Tolerance) -> Check:
    """Shortest raw RTT of a flow: the configured one, and at most the frames themselves on top.

    A flow that never saw the queue empty has no shortest RTT of the bare path, so only the lower bound is held
    against it.
    """
    flow, path = trace.flow, data.plan.path
    name = f"minimum RTT flow {flow.id}"
    rtt, good = raw_rtt(trace)
    if not good.any():
        return Check(
            name, DURING, None, f"flow {flow.id} has no RTT: no ACK of it can be matched", flow.rtt_us, unit="us"
        )
    least = float(rtt[good].min()) / 1000
    low = tolerance.delay(flow.rtt_us)
    # A data frame and its ACK take time at each rate limit; a receiver acknowledges every second frame.
    frames_us = 2 * path.frame_bytes * 8e6 / path.rate_bits_per_second
    if path.sender_interface_bits_per_second:
        frames_us += 2 * path.frame_bytes * 8e6 / path.sender_interface_bits_per_second
    if path.reverse_rate_bits_per_second:
        frames_us += path.frame_bytes * 8e6 / path.reverse_rate_bits_per_second
    varies = sum(
        target.variation_us + target.variation_reverse_us
        for target in data.plan.calibration.targets
        if (target.sender, target.receiver) == (flow.sender, flow.receiver)
    )
    high = low + frames_us + varies
    expected = f"{flow.rtt_us} to {flow.rtt_us + high:.0f} us"
    if least < flow.rtt_us - low:
        message = f"flow {flow.id} saw an RTT of {least:.10g} us, shorter than the path's {flow.rtt_us} us"
        return Check(name, DURING, False, message, flow.rtt_us, least, low, "us")
    if least <= flow.rtt_us + high:
        message = f"flow {flow.id} saw a shortest RTT of {least:.10g} us, expected {expected}"
        return Check(name, DURING, True, message, flow.rtt_us, least, high, "us")
    if not _starts_alone(data, trace):
        message = f"flow {flow.id} started beside another one; its shortest RTT of {least:.10g} us may contain queueing"
        return Check(name, DURING, None, message, flow.rtt_us, least, high, "us")
    message = f"flow {flow.id} saw no RTT below {least:.10g} us, expected {expected}: something delays it"
    return Check(name, DURING, False, message, flow.rtt_us, least, high, "us")


def _starts_alone(data: Measured, trace: FlowTrace) -> bool:
    """Whether no other flow was active when this one began, so that its first packets met an empty queue."""
    return not any(
        other.flow.id != trace.flow.id and other.start_ns <= trace.start_ns < other.stop_ns for other in data.traces
    )
