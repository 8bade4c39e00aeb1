# SPDX-License-Identifier: Apache-2.0
"""Check that no window or buffer limited a flow and no application stalled unless the profile asked for it.

Where a profile says nothing, the plan makes every buffer so large that none limits a flow (howdah/plan/memory.py); a
flow limited by such a buffer breaks that promise. Limits are allowed if the profile or a program sets them, or if they
are part of a receiver or algorithm. The kernel's count of a small send buffer misses recoveries
(howdah/measure/limit.py), and nothing counts an application that stalls.
"""

from __future__ import annotations

from collections.abc import Sequence

from howdah.held import HeldBy
from howdah.judge.check import Tolerance
from howdah.linux.netlink.discipline.howdah_hop import OPTIONS
from howdah.measure.interval import receive_kinds
from howdah.measure.limit import Nothing, nothing_to_send, promises_data
from howdah.measure.measured import Measured
from howdah.plan.memory import LEAST_BUFFER_MAXIMUM_BYTES
from howdah.plan.operation import Sysctl
from howdah.plan.plan import Flow, Plan
from howdah.receiver import RECEIVERS
from howdah.record.verdict import DURING, Check

RECEIVE_BUFFER, SEND_BUFFER = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_SACK = "net.ipv4.tcp_sack"
# Bytes of buffer per byte of payload that the path can hold: a buffer counts truesize, about twice the payload.
_NEEDED = 2
# Sysctls (net.ipv4.tcp_*) that only profiles set and that limit the use of a buffer.
_BOUNDS = {
    RECEIVE_BUFFER: ("window_scaling", "moderate_rcvbuf", "adv_win_scale", "shrink_window", "app_win"),
    SEND_BUFFER: ("notsent_lowat", "limit_output_bytes"),
}


def is_set_by_profile(plan: Plan, host: str, sysctl: str, flow: Flow) -> bool:
    """Return whether the plan has a largest buffer other than the default, or too small for what the path holds, or
    another setting that bounds the buffer."""
    holds = plan.path.held_bytes(flow.rtt_us)
    least = max(LEAST_BUFFER_MAXIMUM_BYTES, _NEEDED * holds)
    bounds = {f"net.ipv4.tcp_{name}" for name in _BOUNDS[sysctl]}
    for operation in plan.operations:
        if not isinstance(operation, Sysctl) or operation.node not in (host, None):
            continue
        if operation.name in bounds:
            return True
        if operation.name == sysctl and int(operation.value.split()[-1]) < least:
            return True
    return False


def is_set_by_program(flow: Flow) -> bool:
    """Return whether programs of the profile own the flow's sockets, and so their buffers and pauses."""
    return flow.kind.holds_sockets


def has_sack(plan: Plan, flow: Flow) -> bool:
    """Return whether both ends support SACK and no middlebox strips it."""
    off = any(
        isinstance(operation, Sysctl)
        and operation.name == _SACK
        and operation.node in (flow.sender, flow.receiver, None)
        and operation.value.strip() == "0"
        for operation in plan.operations
    )
    return RECEIVERS[flow.receiver_behaviour].sack and not off and not _strips(plan, "sack")


def _strips(plan: Plan, option: str) -> bool:
    return plan.path.middlebox is not None and OPTIONS[option] in plan.path.middlebox.strips


def receive_window_reason(plan: Plan, flow: Flow) -> str | None:
    """Return why a small receiver's buffer is intended; None if the plan promises a large one."""
    if flow.receiver_stack is not None:
        return f"the stack {flow.receiver_name} offers no more"
    if RECEIVERS[flow.receiver_behaviour].tuning is not None:
        return f"the receiver {flow.receiver_behaviour} offers no more"
    if is_set_by_profile(plan, flow.receiver, RECEIVE_BUFFER, flow):
        return "the profile sets the receiver's buffer"
    if is_set_by_program(flow):
        return "its program sets the receiver's buffer"
    if _strips(plan, "window-scale"):
        return "without window scale, which a middlebox strips, no window is larger than 64 KiB"
    if not RECEIVERS[flow.receiver_behaviour].sack or _strips(plan, "sack"):
        return "without SACK, Linux offers no more for what lies beyond a gap"
    return None


def send_buffer_reason(plan: Plan, flow: Flow) -> str | None:
    """Return why a small sender's buffer is intended; None if the plan promises a large one."""
    if is_set_by_profile(plan, flow.sender, SEND_BUFFER, flow):
        return "the profile sets the sender's buffer"
    if is_set_by_program(flow):
        return "its program sets the sender's buffer"
    return None


_RECEIVE, _SEND = "receive window", "send buffer"
_COLUMNS = {_RECEIVE: "rwnd_limited_us", _SEND: "sndbuf_limited_us"}
_ENDS = {_RECEIVE: "receiver", _SEND: "sender"}
_REASONS = {_RECEIVE: receive_window_reason, _SEND: send_buffer_reason}
_LATE = {
    HeldBy.AUTOTUNING: "it grew later than the sender needed it",
    HeldBy.HANDSHAKE_WINDOW: "in the handshake it is not scaled, so 64 KiB at most",
}


def limit_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """Check ``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` as shares of ``tcpi_busy_time``, for each TCP flow and
    each group (over all its connections that tcp_info read).

    The kernel has no such counts for datagrams and QUIC. Only a buffer that the plan promises to be large enough makes
    a run invalid; a receive window that was small before it grew does not.
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
    causes = list(dict.fromkeys(reasons)) if ok else [f"the {_ENDS[what]}'s buffers are too small"]
    message += f": {'; '.join(causes)}" if causes else ""
    return Check(name, DURING, ok, message, 0.0, share, tolerance.limited_share, "ratio")


def _buffers(data: Measured, flow: Flow) -> tuple[float, list[str]]:
    """Return the share of the time with a full receive window that the buffer caused, and the other causes.

    If the trace shows no full window, the buffer caused all of it.
    """
    kinds = receive_kinds(data.trace(flow), data.info[flow.id])
    total = sum(kinds.values())
    if not total:
        return 1.0, []
    late = [words for kind, words in _LATE.items() if kinds.get(kind)]
    return kinds.get(HeldBy.RECEIVE_BUFFER, 0.0) / total, late


def sending_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """Check the time without data to send as a share of the sending time of each TCP flow outside groups. For datagrams
    and QUIC the kernel does not know what remains to be sent.

    A flow fails if its traffic promises data all the time. If the profile sets the send buffer, if the traffic is
    requests and answers or a program's, or without SACK, the check only reports the share.
    """
    return [_nothing_check(data, flow, tolerance) for flow in data.plan.flows if flow.group is None and flow.is_tcp]


def _nothing_check(data: Measured, flow: Flow, tolerance: Tolerance) -> Check:
    name = f"nothing to send flow {flow.id}"
    if flow.sender_stack is not None:
        why = f"{flow.title} is sent by the stack {flow.sender_stack.name}, which does not tell what is left to send"
        return Check(name, DURING, None, why, unit="ratio")
    found = nothing_to_send(data.trace(flow), data.info[flow.id])
    if found is None:
        why = f"tcp_info of {flow.title} was not read twice while the flow was to send"
        return Check(name, DURING, None, why, unit="ratio")
    much = found.share > tolerance.limited_share
    excuse = _sending_excuse(data.plan, flow)
    message = f"{flow.title} had nothing to send for {found.share:.1%} of its time while its window had room"
    if much:
        message += _where(found) + (f": {excuse}" if excuse else _blame(found))
    return Check(
        name, DURING, not much or excuse is not None, message, 0.0, found.share, tolerance.limited_share, "ratio"
    )


def _where(found: Nothing) -> str:
    if not found.recovery_s:
        return f" ({found.time_s:.3g} s)"
    return f" ({found.time_s:.3g} s, {found.recovery_s:.3g} s of it in recoveries)"


def _blame(found: Nothing) -> str:
    if found.recovery_s > found.time_s / 2:
        return ": its application stalled, or what lies beyond a gap filled its send buffer"
    return ": its application stalled, or its send buffer is too small"


def _sending_excuse(plan: Plan, flow: Flow) -> str | None:
    """Return why time without data to send is intended; None if it is not."""
    if not promises_data(flow):
        return "its traffic is requests and answers"
    if is_set_by_program(flow):
        return "its programs decide what they send, and when"
    reason = send_buffer_reason(plan, flow)
    if reason is not None:
        return reason
    if flow.receiver_stack is not None:
        return f"the send buffer holds what the stack {flow.receiver_name} does not acknowledge"
    if not has_sack(plan, flow):
        return "without SACK, what lies beyond a gap fills the send buffer until the gap is closed"
    return None
