# SPDX-License-Identifier: Apache-2.0
"""Whether sender or receiver held a flow back by a window or buffer nobody asked to be small."""

from __future__ import annotations

from howdah.judge.check import DURING, Check
from howdah.judge.tolerance import Tolerance
from howdah.measure.measured import Measured
from howdah.plan.plan import Flow, Plan
from howdah.receiver import RECEIVERS

_LIMITS = {
    "rwnd_limited_us": ("receive window", "receiver", "net.ipv4.tcp_rmem"),
    "sndbuf_limited_us": ("send buffer", "sender", "net.ipv4.tcp_wmem"),
}
# A buffer holds truesize, about twice the payload, of everything the path can hold.
_NEEDED = 2


def limit_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """``tcpi_rwnd_limited`` and ``tcpi_sndbuf_limited`` as shares of ``tcpi_busy_time``, of each TCP flow.

    The kernel has no such counts of datagrams and of QUIC.
    """
    checks: list[Check] = []
    checks += _group_checks(data, tolerance)
    for flow in data.plan.flows:
        if flow.group is not None or not flow.is_tcp:
            continue
        info = data.info[flow.id]
        for column, (what, end, sysctl) in _LIMITS.items():
            name = f"{what} flow {flow.id}"
            if flow.sender_stack is not None:
                why = f"{flow.title} is sent by the stack {flow.sender_stack['name']}, which does not count this time"
                checks.append(Check(name, DURING, None, why, unit="ratio"))
                continue
            if not info.has(column) or not info.has("busy_time_us"):
                checks.append(Check(name, DURING, None, f"tcp_info of {flow.title} was not read", unit="ratio"))
                continue
            busy = int(info["busy_time_us"].max())
            share = int(info[column].max()) / busy if busy else 0.0
            asked = is_asked(data.plan, flow.sender if end == "sender" else flow.receiver, sysctl, flow)
            waits = end == "receiver" and not RECEIVERS[flow.receiver_behaviour].sack
            stack = flow.receiver_stack is not None and end == "receiver"
            bounded = end == "receiver" and _is_bounded(flow)
            ok = share <= tolerance.limited_share or asked or waits or stack or bounded
            message = f"the {what} held {flow.title} back for {share:.1%} of its time, as the kernel counts it"
            if share > tolerance.limited_share:
                message += (
                    f": the receiver {flow.receiver_behaviour} offers no more"
                    if bounded
                    else ", as the profile asks"
                    if asked
                    else f": the stack {flow.receiver_name} offers no more"
                    if stack
                    else "; without SACK, Linux offers no more for what lies beyond a gap"
                    if waits
                    else f": the {end}'s buffers are too small"
                )
            checks.append(Check(name, DURING, ok, message, 0.0, share, tolerance.limited_share, "ratio"))
    return checks


def _group_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """The same of each group: of the busy time of all its connections that were there when tcp_info was read."""
    checks = []
    groups: dict[str, list[Flow]] = {}
    for flow in data.plan.flows:
        if flow.group is not None and flow.is_tcp:
            groups.setdefault(flow.group, []).append(flow)
    for group, flows in groups.items():
        for column, (what, end, sysctl) in _LIMITS.items():
            read = [flow for flow in flows if data.info[flow.id].has(column) and data.info[flow.id].has("busy_time_us")]
            label = f"{what} group {group}"
            if not read:
                checks.append(Check(label, DURING, None, f"tcp_info of {group} was not read", unit="ratio"))
                continue
            busy = sum(int(data.info[flow.id]["busy_time_us"].max()) for flow in read)
            held = sum(int(data.info[flow.id][column].max()) for flow in read)
            share = held / busy if busy else 0.0
            asked = all(
                is_asked(data.plan, flow.sender if end == "sender" else flow.receiver, sysctl, flow)
                or (end == "receiver" and (not RECEIVERS[flow.receiver_behaviour].sack or _is_bounded(flow)))
                for flow in read
            )
            message = f"the {what} held the connections of {group} back for {share:.1%} of their time"
            if share > tolerance.limited_share:
                message += ", as the profile asks" if asked else f": the {end}'s buffers are too small"
            ok = share <= tolerance.limited_share or asked
            checks.append(Check(label, DURING, ok, message, 0.0, share, tolerance.limited_share, "ratio"))
    return checks


def _is_bounded(flow: Flow) -> bool:
    """Whether its receiver's behaviour has a largest window."""
    return RECEIVERS[flow.receiver_behaviour].tuning is not None


def is_asked(plan: Plan, host: str, sysctl: str, flow: Flow) -> bool:
    """Whether the plan sets a largest buffer that cannot hold what the path holds."""
    holds = plan.path.rate_bits_per_second * flow.rtt_us // 8_000_000 + plan.path.buffer_bytes
    for operation in plan.operations:
        arguments = operation.arguments
        if operation.op == "sysctl" and arguments["name"] == sysctl and arguments["node"] in (host, None):
            largest = int(str(arguments["value"]).split()[-1])
            if largest < _NEEDED * holds:
                return True
    return False
