# SPDX-License-Identifier: Apache-2.0
"""Check what the path did while the flows ran, by counters and traces alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from howdah.judge.check import Tolerance, failure_summary, within
from howdah.linux.netlink.discipline import queues
from howdah.measure.capacity import Steps
from howdah.measure.measured import Measured
from howdah.measure.rounds import raw_rtt
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers
from howdah.plan.plan import Flow, Plan
from howdah.receiver import RECEIVERS
from howdah.record.verdict import DURING, Check

_MOST_SACK_BYTES = 28  # the most that an ACK has beside its timestamp: a TCP header has at most 60 bytes


def during_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """Return the checks. The rate of a link that follows a trace is checked in howdah/judge/link.py."""
    path = data.plan.path
    checks = [peak_backlog(data)]
    if path.link is None:
        checks.insert(0, scheduled_rate(data, tolerance) if path.rate_steps else dequeue_rate(data, tolerance))
    if path.reverse_rate_steps:
        checks.append(_reverse_rate_schedule(data, tolerance))
    groups: dict[str, list[Check]] = {}
    for trace in data.traces:
        check = minimum_rtt(data, trace, tolerance)
        (checks if trace.flow.group is None else groups.setdefault(trace.flow.group, [])).append(check)
    return checks + [_minimum_rtts(group, each) for group, each in groups.items()]


def backlogged(bottleneck: Samples, frame_bytes: int = 0) -> NDArray[np.bool_]:
    """Return, for each pair of consecutive readings, whether the queue certainly never ran empty between them.

    That is certain if the queue held more at the first reading than it sent until the second. ``frame_bytes`` is given
    for queues that also drop packets they hold: each drop then counts as a frame sent.
    """
    sent = np.diff(bottleneck["sent_bytes"])
    left = sent + frame_bytes * np.diff(bottleneck["drops_packets"]) if frame_bytes else sent
    return np.asarray(bottleneck["backlog_bytes"][:-1] > left)


def backlogged_spans(bottleneck: Samples, frame_bytes: int = 0) -> list[tuple[int, int]]:
    """Return spans of readings (first, last index) between which the queue never ran empty."""
    busy = backlogged(bottleneck, frame_bytes) & (np.diff(bottleneck["sent_bytes"]) > 0)
    edges = np.diff(np.concatenate([[0], busy.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist(), strict=True))


def dequeue_rate(data: Measured, tolerance: Tolerance) -> Check:
    """Check the bottleneck's rate: bytes sent while it had a queue, over that time. Each span is uncertain by a frame
    at either end."""
    expected = data.plan.path.rate_bits_per_second
    bottleneck = data.bottleneck
    what = "the bottleneck's rate while it had a queue"
    if not (bottleneck.has("sent_bytes") and bottleneck.has("backlog_bytes")):
        return within("dequeue rate", DURING, None, expected, 0, "bit/s", what, "the queue was not read")
    spans = backlogged_spans(bottleneck, held_drop_bytes(data.plan))
    sent = sum(int(bottleneck["sent_bytes"][end] - bottleneck["sent_bytes"][begin]) for begin, end in spans)
    time = sum(int(bottleneck.time_ns[end] - bottleneck.time_ns[begin]) for begin, end in spans)
    if not time:
        why = "the queue was never long enough to be sure that it did not run empty between two readings"
        return within("dequeue rate", DURING, None, expected, 0, "bit/s", what, why)
    margin = 2 * len(spans) * data.plan.path.frame_bytes * 8 * SECOND_NS / time
    rate = sent * 8 * SECOND_NS / time
    return within("dequeue rate", DURING, rate, expected, tolerance.rate_share * expected + margin, "bit/s", what)


def scheduled_rate(data: Measured, tolerance: Tolerance) -> Check:
    """Check the bottleneck's rate against its schedule, in each interval between readings in which the queue never ran
    empty."""
    path, bottleneck = data.plan.path, data.bottleneck
    steps = [path.rate_bits_per_second, *path.rate_steps]
    spans: list[tuple[int, int]] = []
    if _was_read(bottleneck):
        spans = [
            (begin, begin + 1) for begin in np.flatnonzero(backlogged(bottleneck, held_drop_bytes(data.plan))).tolist()
        ]
    return _schedule_check("rate schedule", "the bottleneck", bottleneck, steps, spans, path.frame_bytes, tolerance)


def _reverse_rate_schedule(data: Measured, tolerance: Tolerance) -> Check:
    """Check the reverse path's rate against its schedule, in each span from when its queue began to hold packets until
    it ran empty. Its frames are ACKs unless a flow sends in reverse."""
    path, queue = data.plan.path, data.reverse_queue
    name = "reverse rate schedule"
    if queue is None or not _was_read(queue):
        return Check(name, DURING, None, "the queue of the way back was not read", unit="ratio")
    steps = [path.reverse_rate_bits_per_second or 0, *path.reverse_rate_steps]
    frame_bytes = path.frame_bytes - path.mss_bytes + _MOST_SACK_BYTES
    if any(flow.direction == "reverse" for flow in data.plan.flows):
        frame_bytes = path.frame_bytes
    held = path.frame_bytes if queues()[path.reverse_queue].drops_held else 0
    return _schedule_check(name, "the way back", queue, steps, backlogged_spans(queue, held), frame_bytes, tolerance)


def _was_read(queue: Samples) -> bool:
    return queue.has("sent_bytes") and queue.has("backlog_bytes")


def _schedule_check(
    name: str,
    what: str,
    queue: Samples,
    steps: list[Any],
    spans: list[tuple[int, int]],
    frame_bytes: int,
    tolerance: Tolerance,
) -> Check:
    """Compare what a queue sent in each of ``spans``, in which it never ran empty, with what its schedule allows. The
    first of ``steps`` is the initial rate in bits per second. Errors of a frame at either end and at each change are
    allowed; the worst span counts.

    A frame in transmission when the rate rises ends at the old rate, because htb does not reset its timer. So less may
    be sent then, in this and any further span until that frame has ended.
    """
    if not _was_read(queue):
        return Check(name, DURING, None, "the queue was not read", unit="ratio")
    if not spans:
        why = "the queue was never long enough to be sure that it did not run empty between two readings"
        return Check(name, DURING, None, f"{what}'s rate was not measured: {why}", unit="ratio")
    base, *changes = steps
    rates = [base, *(rate for _, rate in changes)]
    capacity = Steps(base, [(at_us * 1000, rate) for at_us, rate in changes])
    first, last = np.array(spans).T
    begin, end = queue.time_ns[first], queue.time_ns[last]
    expected = _bytes_between(capacity, begin, end)
    sent = queue["sent_bytes"][last] - queue["sent_bytes"][first]
    waits = [max(1.0, later / earlier) for earlier, later in itertools.pairwise(rates)]
    margin = frame_bytes * (2 + capacity.weights(begin, end, waits))
    least = _bytes_between(with_frames_in_service(capacity, rates, frame_bytes), begin, end) - 2 * frame_bytes
    excess = np.maximum(sent - expected - margin, np.minimum(expected - sent - margin, least - sent))
    excess -= tolerance.rate_share * expected
    worst = int(np.argmax(excess))
    ok = bool(excess[worst] <= 0)
    total, planned = int(sent.sum()), float(expected.sum())
    message = f"in {len(spans)} intervals with a queue {what} sent {total} bytes, the schedule lets {planned:.0f} pass"
    if not ok:
        at_s = begin[worst] / SECOND_NS
        message += (
            f"; the rate does not follow it: {sent[worst]} instead of {expected[worst]:.0f} bytes after {at_s:.3f} s"
        )
    return Check(name, DURING, ok, message, 1.0, total / planned, tolerance.rate_share, "ratio")


def _bytes_between(capacity: Steps, begin: Integers, end: Integers) -> NDArray[np.float64]:
    carried: NDArray[np.float64] = (capacity.integral(end) - capacity.integral(begin)) / 8 / SECOND_NS
    return carried


def with_frames_in_service(capacity: Steps, rates: list[int], frame_bytes: int) -> Steps:
    """Return the capacity if each rise of the rate meets a frame that has just begun: nothing passes until it has
    ended.

    ``rates`` are those of ``capacity`` from the first on.
    """
    changes: list[tuple[int, float]] = []
    until = 0
    for time, (earlier, rate) in zip(capacity.times, itertools.pairwise(rates), strict=True):
        if changes and changes[-1][0] >= time:  # the rate changes again before the frame has ended
            changes.pop()
        if rate > earlier:
            until = max(until, time + -(-frame_bytes * 8 * SECOND_NS // earlier))
        changes.append((time, 0.0 if until > time else rate))
        if until > time:
            changes.append((until, rate))
    return Steps(rates[0], changes)


def held_drop_bytes(plan: Plan) -> int:
    """Return the frame size for a queue that drops packets it holds, 0 for one that only drops arriving packets."""
    return plan.path.frame_bytes if queues()[plan.path.queue].drops_held else 0


def peak_backlog(data: Measured) -> Check:
    """Check that the queue never held more than its limit and one frame."""
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
    """Check a flow's shortest raw RTT: at least the configured one, and above it at most the time that frames take.

    If a flow never met an empty queue, its shortest RTT is not that of the bare path, and only the lower bound is
    checked.
    """
    flow, path = trace.flow, data.plan.path
    name = f"minimum RTT flow {flow.id}"
    rtt, good = raw_rtt(trace)
    if not good.any():
        return Check(
            name, DURING, None, f"{flow.title} has no RTT: no ACK of it can be matched", flow.rtt_us, unit="us"
        )
    least = float(rtt[good].min()) / 1000
    low = tolerance.delay(flow.rtt_us) + path.early_us - path.least_added_us
    high = _most_added_us(data.plan, flow, tolerance)
    shortest = flow.rtt_us - path.early_us + path.least_added_us
    expected = f"{shortest} to {flow.rtt_us + high:.0f} us"

    if least < flow.rtt_us - low:
        message = f"{flow.title} saw an RTT of {least:.10g} us, shorter than the path's {flow.rtt_us} us"
        return Check(name, DURING, False, message, flow.rtt_us, least, low, "us")
    if least <= flow.rtt_us + high:
        message = f"{flow.title} saw a shortest RTT of {least:.10g} us, expected {expected}"
        return Check(name, DURING, True, message, flow.rtt_us, least, high, "us")
    handshake = _handshake_us(data, trace, flow.rtt_us - low)
    if handshake is not None and flow.rtt_us - low <= handshake <= flow.rtt_us + high:
        # The first flight overfills the path: only the SYN met an empty queue, no data packet did.
        message = f"{flow.title} saw a shortest RTT of {handshake} us, of its handshake, expected {expected}"
        return Check(name, DURING, True, message, flow.rtt_us, handshake, high, "us")
    if not _starts_alone(data, trace):
        message = f"{flow.title} started beside another one; its shortest RTT of {least:.10g} us may contain queueing"
        return Check(name, DURING, None, message, flow.rtt_us, least, high, "us")
    message = f"{flow.title} saw no RTT below {least:.10g} us, expected {expected}: something delays it"
    return Check(name, DURING, False, message, flow.rtt_us, least, high, "us")


def _most_added_us(plan: Plan, flow: Flow, tolerance: Tolerance) -> float:
    """Return by how much the RTT of an empty path may exceed the configured one."""
    varies = sum(
        target.variation_us + target.variation_reverse_us
        for target in plan.calibration.targets
        if (target.sender, target.receiver) == flow.ends
    )
    receiver = RECEIVERS[flow.receiver_behaviour]
    frames = receiver.segments_per_ack
    ticks_us = 2 * plan.path.tick_us  # a packet may wait a tick in each direction
    ends = [each for each in plan.processors if each.host in flow.ends]
    costs_us = frames * sum(each.packet_ns + each.ack_ns for each in ends) / 1000
    return (
        tolerance.delay(flow.rtt_us)
        + _frames_us(plan, frames)
        + varies
        + ticks_us
        + receiver.stretch_delay_us
        + costs_us
    )


def _frames_us(plan: Plan, frames: int) -> float:
    """Return how long the data frames of an ACK (a receiver may wait for several), and the ACK, take at all rate
    limits of the path."""
    path = plan.path
    bits = frames * path.frame_bytes * 8e6
    frames_us = bits / min([path.rate_bits_per_second, *(rate for _, rate in path.rate_steps)])
    frames_us += sum(bits / hop.rate_bits_per_second for hop in path.hops)
    if path.sender_interface_bits_per_second:
        frames_us += bits / path.sender_interface_bits_per_second
    if path.reverse_rate_bits_per_second:
        frames_us += path.frame_bytes * 8e6 / path.reverse_rate_bits_per_second
    return frames_us + sum(link.longest_wait_us for link in (path.link, path.reverse_link) if link is not None)


def _minimum_rtts(group: str, each: list[Check]) -> Check:
    """Summarise the checks of a group's connections. One that shows the path's RTT is enough where others may contain
    queueing; one with a wrong RTT fails the group."""
    good, wrong, open_ = (sum(check.ok is ok for check in each) for ok in (True, False, None))
    message = f"{good} of the {len(each)} connections of {group} saw the path's RTT"
    message += f", {open_} may only have seen it with queueing" if open_ else ""
    message += failure_summary(each)
    least = min((float(check.measured) for check in each if check.measured is not None), default=None)
    ok = False if wrong else (True if good else None)
    return Check(f"minimum RTT group {group}", DURING, ok, message, each[0].expected, least, unit="us")


def _handshake_us(data: Measured, trace: FlowTrace, possible_us: float) -> int | None:
    """Return the RTT that the sender measured by its handshake: the kernel's, or a model's time to connect.

    After retransmissions the kernel takes RTTs from timestamps (tcp_ack_update_rtt), in whole milliseconds, so its
    minimum may be up to 1 ms below ``possible_us``, the path's shortest. Then the first trace record, the state before
    any data was acknowledged, has the handshake's RTT.
    """
    info = data.info[trace.flow.id]
    if data.plan.traits.model:
        return None if trace.connected_ns is None else (trace.connected_ns - trace.start_ns) // 1000
    least = info.least("min_rtt_us")  # missing in readings during the handshake
    of_timestamps = least is not None and least % 1000 == 0 and least < possible_us < least + 1000
    if of_timestamps and len(trace) and trace.snd_una[0] == 0 and trace.srtt_ns[0] > 0:
        return int(trace.srtt_ns[0]) // 1000
    return least


def _starts_alone(data: Measured, trace: FlowTrace) -> bool:
    """Return whether no other flow was active when this one began, so that its first packets met an empty queue."""
    return not any(
        other.flow.id != trace.flow.id and other.start_ns <= trace.start_ns < other.stop_ns for other in data.traces
    )


_RELEASE = 0.5  # ticks after the begin of a release within which packets belong to it
_NEXT = 0.95  # ticks before which the next release is too early
_ALLOWED = 0.01  # share of early releases allowed: one may begin before a tick and end after it


def tick_checks(data: Measured) -> list[Check]:
    """Return a check for each sending host: when ACKs arrive through the delay line towards it. Without a tick there
    are none.

    Delay lines towards receivers are not checked: no trace shows when data arrive there.
    """
    tick_us = data.plan.path.tick_us
    if not tick_us:
        return []
    hosts = dict.fromkeys(flow.sender for flow in data.plan.flows if flow.datagram_bytes is None)
    return [_check(data, host, tick_us) for host in hosts]


def _check(data: Measured, host: str, tick_us: int) -> Check:
    name = f"tick {host}"
    if any(each.host == host for each in data.plan.processors):
        message = f"what the delay line lets go waits for the processor of {host} before it is traced"
        return Check(name, DURING, None, message, unit="ratio")
    times = np.sort(np.concatenate([trace.time_ns for trace in data.traces if trace.flow.sender == host]))
    times = times[(times >= 0) & (times < data.plan.duration_us * 1000)]
    if times.size < 2:
        return Check(name, DURING, None, f"fewer than two ACKs of {host} were traced", unit="ratio")
    early, releases = releases_before_their_tick(times, tick_us * 1000)
    share = early / releases
    message = (
        f"{early} of {releases} releases of the delay line towards {host} came less than {tick_us} us after another"
    )
    return Check(name, DURING, share <= _ALLOWED, message, 0.0, share, _ALLOWED, "ratio")


def releases_before_their_tick(times_ns: Integers, tick_ns: int) -> tuple[int, int]:
    """Return how many releases came too early, and how many there are. ``times_ns`` are sorted arrival times.

    A release begins with the first packet that does not belong to the previous one.
    """
    early = releases = 0
    start = 0
    while start < times_ns.size:
        releases += 1
        behind = int(np.searchsorted(times_ns, times_ns[start] + _RELEASE * tick_ns, side="right"))
        early += behind < times_ns.size and times_ns[behind] < times_ns[start] + _NEXT * tick_ns
        start = behind
    return int(early), releases
