# SPDX-License-Identifier: Apache-2.0
"""Whether sender or receiver held a flow back by a window or buffer nobody asked to be small."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.held import HeldBy
from howdah.judge.promise import receive_window_reason, send_buffer_reason
from howdah.judge.tolerance import Tolerance
from howdah.measure.interval import receive_kinds
from howdah.measure.measured import Measured
from howdah.plan.plan import Flow
from howdah.record.verdict import DURING, Check

_RECEIVE, _SEND = "receive window", "send buffer"
_COLUMNS = {_RECEIVE: "rwnd_limited_us", _SEND: "sndbuf_limited_us"}
_ENDS = {_RECEIVE: "receiver", _SEND: "sender"}
_REASONS = {_RECEIVE: receive_window_reason, _SEND: send_buffer_reason}
_LATE = {
    HeldBy.AUTOTUNING: "it grew later than the sender needed it",
    HeldBy.HANDSHAKE_WINDOW: "in the handshake it is not scaled, so 64 KiB at most",
}


def limit_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` as shares of ``tcpi_busy_time``, of each TCP flow, and of each
    group: of the busy time of all its connections that were there when tcp_info was read.

    The kernel has no such counts of datagrams and of QUIC. Only a buffer that the plan promises to be large enough
    makes a run invalid (:mod:`howdah.judge.promise`); a receive window that was small before it grew is none.
    """
    groups: dict[str, list[Flow]] = {}
    single: list[Flow] = []
    for flow in data.plan.flows:
        if flow.is_tcp and flow.group is not None:
            groups.setdefault(flow.group, []).append(flow)
        elif flow.is_tcp:
            single.append(flow)
    checks = [
        _check(data, f"{what} group {group}", what, f"the connections of {group}", flows, tolerance)
        for group, flows in groups.items()
        for what in _COLUMNS
    ]
    return checks + [
        _check(data, f"{what} flow {flow.id}", what, flow.title, [flow], tolerance)
        for flow in single
        for what in _COLUMNS
    ]


def _check(data: Measured, name: str, what: str, title: str, flows: Sequence[Flow], tolerance: Tolerance) -> Check:
    column = _COLUMNS[what]
    stack = flows[0].sender_stack
    if stack is not None:
        why = f"{title} is sent by the stack {stack.name}, which does not count this time"
        return Check(name, DURING, None, why, unit="ratio")
    read = [flow for flow in flows if data.info[flow.id].has(column) and data.info[flow.id].has("busy_time_us")]
    if not read:
        return Check(name, DURING, None, f"tcp_info of {title} was not read", unit="ratio")
    busy = sum(int(data.info[flow.id]["busy_time_us"].max()) for flow in read)
    held = sum(int(data.info[flow.id][column].max()) for flow in read)
    share = held / busy if busy else 0.0
    message = (
        f"the {what} held {title} back for {share:.1%} of their time"
        if len(flows) > 1
        else (f"the {what} held {title} back for {share:.1%} of its time, as the kernel counts it")
    )
    if share <= tolerance.limited_share:
        return Check(name, DURING, True, message, 0.0, share, tolerance.limited_share, "ratio")
    broken, reasons = 0.0, []
    for flow in read:
        part = int(data.info[flow.id][column].max()) / busy
        reason = _REASONS[what](data.plan, flow)
        left, late = _buffers(data, flow) if what == _RECEIVE and reason is None else (1.0, [])
        reasons += ([reason] if reason is not None else late) if part else []
        broken += part * left if reason is None else 0.0
    ok = broken <= tolerance.limited_share
    said = list(dict.fromkeys(reasons)) if ok else [f"the {_ENDS[what]}'s buffers are too small"]
    message += f": {'; '.join(said)}" if said else ""
    return Check(name, DURING, ok, message, 0.0, share, tolerance.limited_share, "ratio")


def _buffers(data: Measured, flow: Flow) -> tuple[float, list[str]]:
    """Which share of the time with a full receive window its buffer is to blame for, and what else there was.

    Where the trace shows no full window, the buffer is to blame for all of it.
    """
    kinds = receive_kinds(data.trace(flow), data.info[flow.id])
    total = sum(kinds.values())
    if not total:
        return 1.0, []
    late = [words for kind, words in _LATE.items() if kinds.get(kind)]
    return kinds.get(HeldBy.RECEIVE_BUFFER, 0.0) / total, late
