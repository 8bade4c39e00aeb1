# SPDX-License-Identifier: Apache-2.0
"""Requests and answers over a connection: how long each took by the client's own record, and by the trace."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from howdah.measure.row import GroupOf, Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Flow
from howdah.plan.traffic import Exchange, HttpRequests
from howdah.record.agent import FlowRecord

QUANTILES = {"p10": 0.1, "median": 0.5, "p90": 0.9}
_SAME_RTTS = 2  # client and trace agree on the end of an answer within so many round trips


def asked_of(flow: Flow) -> HttpRequests | Exchange | None:
    """``requests`` and ``object_bytes`` of a flow of transactions, HTTP or not."""
    return flow.http or flow.exchange


def times_s(record: FlowRecord) -> list[float]:
    """Seconds from the start of each request (the first one: of the connection) to the last byte of its answer."""
    return [(item.end_ns - item.start_ns) / SECOND_NS for item in record.transactions or []]


def thinks_ns(record: FlowRecord) -> list[tuple[int, int]]:
    """The client's pauses: from the last byte of an answer to the next request, where that comes later."""
    pauses = [(one.end_ns, other.start_ns) for one, other in pairwise(record.transactions or [])]
    return [(begin, end) for begin, end in pauses if end > begin]


def think_s(record: FlowRecord) -> float:
    """Seconds of all its pauses."""
    return sum(end - begin for begin, end in thinks_ns(record)) / SECOND_NS


def without_think_s(record: FlowRecord) -> float | None:
    """Seconds from the connection's start to the last byte of its last answer, without the pauses."""
    if not record.complete or record.start_ns is None or record.end_ns is None:
        return None
    return (record.end_ns - record.start_ns) / SECOND_NS - think_s(record)


def transaction_rows(sheet: Sheet, trace: FlowTrace, record: FlowRecord) -> None:
    """Measures of one connection of transactions; nothing where the plan asks for none."""
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
    _compare(sheet, trace, record)


def group_transaction_rows(
    sheet: Sheet, flows: list[Flow], records: list[FlowRecord], role: str, algorithm: str, group: str
) -> None:
    """Over all transactions of a group; ``answered_share`` of those that were to be made."""
    asked = sum(found.requests for found in map(asked_of, flows) if found is not None)
    if not asked:
        return
    times = [time for record in records for time in times_s(record)]
    of = GroupOf(group, algorithm, role)
    sheet.add(of, "transactions", len(times))
    sheet.add(of, "answered_share", len(times) / asked)
    for label, share in QUANTILES.items():
        value = float(np.quantile(times, share)) if times else None
        sheet.add(of, f"transaction_time_{label}_s", value, "no request was answered")
    if flows[0].exchange is not None:
        sheet.add(of, "think_time_s", sum(map(think_s, records)))
        done = [time for time in map(without_think_s, records) if time is not None]
        why = "no connection of the group completed all its answers"
        middle = float(np.median(done)) if done else None
        sheet.add(of, "completion_without_think_median_s", middle, why)


def traced_ends_ns(trace: FlowTrace, requests: int, object_bytes: int) -> list[int]:
    """When the last byte of each answer was acknowledged, as far as the trace goes.

    An answer is its object and a head; the length of the head is what was acknowledged in all beyond the objects,
    divided by the answers.
    """
    if not len(trace):
        return []
    una = trace.una_after
    head_bytes = max(int(una[-1]) - requests * object_bytes, 0) / requests
    ends = []
    for number in range(1, requests + 1):
        # Behind the last answer nothing follows, and its last ACK may be the one whose effect no record shows.
        wanted = number * object_bytes + (number - 1) * head_bytes
        place = int(np.searchsorted(una, wanted))
        if place == una.size:
            break
        ends.append(int(trace.time_ns[place]))
    return ends


def _compare(sheet: Sheet, trace: FlowTrace, record: FlowRecord) -> None:
    """The transaction on whose end client and trace agree least."""
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
