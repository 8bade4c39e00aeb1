# SPDX-License-Identifier: Apache-2.0
"""Groups of connections: the measures of each connection, and of each group.

Bytes, times and segments are those that the agent recorded when it closed the connection's sockets, so a connection
shorter than the interval of the collectors is measured like any other.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from howdah.frame import IP_AND_UDP_BYTES
from howdah.measure import throughput
from howdah.measure.row import GroupOf, Sheet, Value
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Flow, Plan
from howdah.plan.traffic import Exchange, HttpRequests
from howdah.record.agent import AgentRecord, FlowRecord

QUANTILES = {"p10": 0.1, "p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9}
# Quantiles that need enough connections for at least one to be beyond them.
TAIL = {"p95": 0.95, "p99": 0.99, "p999": 0.999}
_SAME_RTTS = 2  # largest difference between agent and trace about a completion, in round trips


def completion_s(flow: Flow, record: FlowRecord) -> float | None:
    """Return seconds from the start to the receiver's last byte; None unless all bytes of a known size arrived."""
    start, end, received = record.start_ns, record.end_ns, record.bytes_received
    if flow.size_bytes is None or not record.complete or start is None or end is None:
        return None
    if received is not None and received < flow.size_bytes:  # the end of the run cut it short
        return None
    return (end - start) / SECOND_NS


def transfer_s(flow: Flow, record: FlowRecord) -> float | None:
    """Return the same from the moment the sender could send, without the handshake."""
    start, connected = record.start_ns, record.connected_ns
    whole = completion_s(flow, record)
    return None if whole is None or start is None or connected is None else whole - (connected - start) / SECOND_NS


def goodput_bits_per_second(record: FlowRecord) -> float | None:
    """Return bytes received over the time from the start to the last of them."""
    start, end, received = record.start_ns, record.end_ns, record.bytes_received
    if start is None or end is None or end <= start or received is None:
        return None
    return received * 8 * SECOND_NS / (end - start)


def connection_rows(sheet: Sheet, trace: FlowTrace, record: FlowRecord) -> None:
    """Add the measures of one connection of a measured group."""
    flow = trace.flow
    time = completion_s(flow, record)
    if flow.size_bytes is not None:
        why = f"the connection did not complete its {flow.size_bytes} bytes"
        sheet.add(flow, "completion_time_s", time, why)
        sheet.add(flow, "transfer_time_s", transfer_s(flow, record), why)
        _compare(sheet, trace, flow.size_bytes, time)
    again = record.segments_retransmitted
    sheet.add(flow, "retransmitted_packets", again, "the agent did not count segments")
    sent = record.segments_sent
    share = None if again is None or not sent else again / sent
    sheet.add(flow, "retransmission_ratio", share, "the agent did not count segments")
    why = "no byte arrived"
    sheet.add(flow, "goodput_bits_per_second", goodput_bits_per_second(record), why)
    transaction_rows(sheet, trace, record)
    if is_large(flow, trace.mss_bytes):
        why = f"the connection did not complete its {flow.size_bytes} bytes"
        sheet.add(flow, "large_completion_time_s", time, why)
        sheet.add(flow, "large_retransmission_ratio", share, "the agent did not count segments")


def _compare(sheet: Sheet, trace: FlowTrace, size_bytes: int, time_s: float | None) -> None:
    traced = throughput.completion_time_s(trace, size_bytes)
    if time_s is None or traced is None:
        return
    sheet.cross_check(
        trace.flow.id,
        "completion_time_s",
        {"agent": time_s, "tcp_probe": traced},
        abs(time_s - traced) <= _SAME_RTTS * float(trace.window_ns[-1]) / SECOND_NS,
        "the agent and the last ACK differ by more than two round trips",
        group=trace.flow.group,
    )


def group_rows(sheet: Sheet, plan: Plan, agent: AgentRecord) -> None:
    """Add the measures of each group of the plan, in order; docs/measures.md has the definitions."""
    groups: dict[str, list[Flow]] = {}
    for flow in plan.flows:
        if flow.group is not None:
            groups.setdefault(flow.group, []).append(flow)
    for group, flows in groups.items():
        mine = [agent.flow(flow.id) for flow in flows]
        _one_group(sheet, group, flows, mine)
        large = [
            (flow, record) for flow, record in zip(flows, mine, strict=True) if is_large(flow, plan.path.mss_bytes)
        ]
        times = [completion_s(flow, record) for flow, record in large]
        counts = [segments for _, record in large if (segments := _segments(record)) is not None]
        large_rows(sheet, group, flows[0].algorithm, flows[0].role, times, counts)
        transfer_rows(sheet, group, flows[0], [transfer_s(flow, record) for flow, record in large])


def _segments(record: FlowRecord) -> tuple[int, int] | None:
    """Return segments sent and retransmitted; None if they were not counted."""
    sent, again = record.segments_sent, record.segments_retransmitted
    return (sent, again) if sent and again is not None else None


def datagram_bits_per_second(plan: Plan, begin_ns: int, end_ns: int) -> float:
    """Return the rate of datagrams over the bottleneck in an interval, as frames on the wire, by the plan."""
    total_bits = 0.0
    for flow in plan.flows:
        if flow.datagram_bytes is None or flow.datagram_interval_ns is None or flow.direction != "forward":
            continue
        frame_bits = (flow.datagram_bytes + plan.path.frame_bytes - plan.path.mtu_bytes + IP_AND_UDP_BYTES) * 8
        sends_ns = sum(max(min(end * 1000, end_ns) - max(begin * 1000, begin_ns), 0) for begin, end in flow.bursts)
        total_bits += sends_ns / flow.datagram_interval_ns * frame_bits
    return total_bits * SECOND_NS / (end_ns - begin_ns)


def _one_group(sheet: Sheet, group: str, flows: list[Flow], records: list[FlowRecord]) -> None:
    algorithms = {flow.algorithm for flow in flows}
    of = GroupOf(group, algorithms.pop(), flows[0].role)

    def add(metric: str, value: Value, why: str) -> None:
        sheet.add(of, metric, value, why)

    add("connections", len(flows), "")
    sized = [flow for flow in flows if flow.size_bytes is not None]
    if sized:
        times = [completion_s(flow, record) for flow, record in zip(flows, records, strict=True)]
        done = [time for time in times if time is not None]
        add("completed_share", len(done) / len(sized), "")
        for label, share in QUANTILES.items():
            value = float(np.quantile(done, share)) if done else None
            add(f"completion_time_{label}_s", value, "no connection of the group was completed")
        for label, share in TAIL.items():
            least = round(1 / (1 - share))
            value = float(np.quantile(done, share)) if len(done) >= least else None
            add(f"completion_time_{label}_s", value, f"fewer than {least} connections of the group were completed")
    group_transaction_rows(sheet, flows, records, flows[0].role, flows[0].algorithm, group)
    received = sum(record.bytes_received or 0 for record in records)
    add("received_bytes", received, "")
    rates = [rate for rate in map(goodput_bits_per_second, records) if rate is not None]
    value = float(np.median(rates)) if rates else None
    add("connection_goodput_median_bits_per_second", value, "no connection of the group moved a byte")
    if flows[0].datagram_bytes is not None:
        sent_bytes = sum(record.bytes_sent or 0 for record in records)
        add("delivered_share", received / sent_bytes if sent_bytes else None, "nothing was sent")
        return
    counted = [segments for record in records if (segments := _segments(record)) is not None]
    why = "the agent did not count segments of this group"
    sent, again = [count for count, _ in counted], [count for _, count in counted]
    add("retransmitted_packets", sum(again) if counted else None, why)
    add("retransmission_ratio", sum(again) / sum(sent) if counted else None, why)
    clean = sum(count == 0 for count in again) / len(again) if again else None
    add("retransmission_free_share", clean, why)


_RFC_3390_BYTES = 4380
LARGE_QUANTILES = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9}
SHORT_S = 1.0  # above it the paper sees no difference


def initial_window_bytes(mss_bytes: int) -> int:
    """RFC 3390: min(4 MSS, max(2 MSS, 4380 bytes))."""
    return min(4 * mss_bytes, max(2 * mss_bytes, _RFC_3390_BYTES))


def is_large(flow: Flow, mss_bytes: int) -> bool:
    """Whether a connection of a known size carries more than the initial window of RFC 3390."""
    return flow.size_bytes is not None and flow.size_bytes > initial_window_bytes(mss_bytes)


def transfer_rows(sheet: Sheet, group: str, flow: Flow, times_s: list[float | None]) -> None:
    """Add ``large_transfer_time_p25_s``, ``_median_s``, ``_p75_s``, ``_p90_s``: :func:`large_rows`, no handshakes."""
    done = [time for time in times_s if time is not None]
    of = GroupOf(group, flow.algorithm, flow.role)
    for label, share in LARGE_QUANTILES.items() if times_s else ():
        value = float(np.quantile(done, share)) if done else None
        why = "no connection larger than the initial window was completed"
        sheet.add(of, f"large_transfer_time_{label}_s", value, why)


def large_rows(
    sheet: Sheet,
    group: str,
    algorithm: str,
    role: str,
    times_s: list[float | None],
    counts: list[tuple[int, int]],
) -> None:
    """Add rows of a group from its large connections, from their completion times (None: not completed) and the
    segments (sent, retransmitted) of those that were counted. No rows for a group without large connections.

    ``large_connections``; ``large_completion_time_p25_s``, ``_median_s``, ``_p75_s``, ``_p90_s`` over the completed
    ones; ``large_within_1_s_share`` of all; ``large_retransmission_free_share``, ``large_retransmission_ratio``.
    """
    if not times_s:
        return
    of = GroupOf(group, algorithm, role)
    done = [time for time in times_s if time is not None]
    sheet.add(of, "large_connections", len(times_s))
    for label, share in LARGE_QUANTILES.items():
        value = float(np.quantile(done, share)) if done else None
        why = "no connection larger than the initial window was completed"
        sheet.add(of, f"large_completion_time_{label}_s", value, why)
    within = sum(time <= SHORT_S for time in done) / len(times_s)
    sheet.add(of, "large_within_1_s_share", within)
    why = "the agent did not count segments of this group"
    clean = sum(again == 0 for _, again in counts) / len(counts) if counts else None
    sheet.add(of, "large_retransmission_free_share", clean, why)
    sent = sum(count for count, _ in counts)
    ratio = sum(again for _, again in counts) / sent if sent else None
    sheet.add(of, "large_retransmission_ratio", ratio, why)


_TRANSACTION_QUANTILES = {"p10": 0.1, "median": 0.5, "p90": 0.9}


def asked_of(flow: Flow) -> HttpRequests | Exchange | None:
    """Return ``requests`` and ``object_bytes`` of a flow of transactions, over HTTP or not."""
    return flow.http or flow.exchange


def times_s(record: FlowRecord) -> list[float]:
    """Return seconds from the start of each request (the first: of the connection) to the last byte of its answer."""
    return [(item.end_ns - item.start_ns) / SECOND_NS for item in record.transactions or []]


def thinks_ns(record: FlowRecord) -> list[tuple[int, int]]:
    """Return the client's pauses: from the last byte of an answer to the next request, if that comes later."""
    pauses = [(one.end_ns, other.start_ns) for one, other in pairwise(record.transactions or [])]
    return [(begin, end) for begin, end in pauses if end > begin]


def think_s(record: FlowRecord) -> float:
    """Return the seconds of all pauses."""
    return sum(end - begin for begin, end in thinks_ns(record)) / SECOND_NS


def without_think_s(record: FlowRecord) -> float | None:
    """Return seconds from the connection's start to the last byte of its last answer, without the pauses."""
    if not record.complete or record.start_ns is None or record.end_ns is None:
        return None
    return (record.end_ns - record.start_ns) / SECOND_NS - think_s(record)


def transaction_rows(sheet: Sheet, trace: FlowTrace, record: FlowRecord) -> None:
    """Add the measures of one connection of transactions, if the plan makes it one."""
    flow = trace.flow
    if asked_of(flow) is None:
        return
    times = times_s(record)
    why = "no request was answered"
    sheet.add(flow, "transactions", len(times))
    sheet.add(flow, "first_transaction_time_s", times[0] if times else None, why)
    sheet.add(flow, "last_transaction_time_s", times[-1] if times else None, why)
    middle = float(np.median(times)) if times else None
    sheet.add(flow, "transaction_time_median_s", middle, why)
    if flow.exchange is not None:
        sheet.add(flow, "think_time_s", think_s(record))
        why = "the connection did not complete all its answers"
        sheet.add(flow, "completion_without_think_s", without_think_s(record), why)
    _compare_transactions(sheet, trace, record)


def group_transaction_rows(
    sheet: Sheet, flows: list[Flow], records: list[FlowRecord], role: str, algorithm: str, group: str
) -> None:
    """Add the measures of all transactions of a group; ``answered_share`` is relative to those planned."""
    asked = sum(found.requests for found in map(asked_of, flows) if found is not None)
    if not asked:
        return
    times = [time for record in records for time in times_s(record)]
    of = GroupOf(group, algorithm, role)
    sheet.add(of, "transactions", len(times))
    sheet.add(of, "answered_share", len(times) / asked)
    for label, share in _TRANSACTION_QUANTILES.items():
        value = float(np.quantile(times, share)) if times else None
        sheet.add(of, f"transaction_time_{label}_s", value, "no request was answered")
    if flows[0].exchange is not None:
        sheet.add(of, "think_time_s", sum(map(think_s, records)))
        done = [time for time in map(without_think_s, records) if time is not None]
        why = "no connection of the group completed all its answers"
        middle = float(np.median(done)) if done else None
        sheet.add(of, "completion_without_think_median_s", middle, why)


def traced_ends_ns(trace: FlowTrace, requests: int, object_bytes: int) -> list[int]:
    """Return when the last byte of each answer was acknowledged, as far as the trace goes.

    An answer is its object and a head; the length of the head is what was acknowledged beyond all objects, divided by
    the number of answers.
    """
    if not len(trace):
        return []
    una = trace.una_after
    head_bytes = max(int(una[-1]) - requests * object_bytes, 0) / requests
    ends = []
    for number in range(1, requests + 1):
        # The last answer counts without its head: nothing follows it, and no record shows the effect of the last ACK.
        wanted = number * object_bytes + (number - 1) * head_bytes
        place = int(np.searchsorted(una, wanted))
        if place == una.size:
            break
        ends.append(int(trace.time_ns[place]))
    return ends


def _compare_transactions(sheet: Sheet, trace: FlowTrace, record: FlowRecord) -> None:
    """Cross-check the transaction for whose end client and trace differ most."""
    asked = asked_of(trace.flow)
    if asked is None or not record.complete:
        return
    ends = traced_ends_ns(trace, asked.requests, asked.object_bytes)
    said = [item.end_ns for item in record.transactions or []]
    if not ends:
        return
    worst = max(range(len(ends)), key=lambda number: abs(ends[number] - said[number]))
    near_ns = _SAME_RTTS * int(trace.window_ns[-1])
    sheet.cross_check(
        trace.flow.id,
        "transaction_time_s",
        {"client": said[worst] / SECOND_NS, "tcp_probe": ends[worst] / SECOND_NS},
        abs(ends[worst] - said[worst]) <= near_ns,
        "client and trace differ by more than two round trips about the end of a transaction",
        group=trace.flow.group,
    )
