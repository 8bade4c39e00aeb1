# SPDX-License-Identifier: Apache-2.0
"""What a profile promises of windows and buffers, and which limits are a result instead.

Where a profile says nothing, the plan makes every buffer so large that none limits a flow (howdah/plan/memory.py). A
flow that such a buffer limits breaks the promise. What the profile sets, what a program sets for itself, and what
receivers and algorithms do by their nature breaks none.
"""

from __future__ import annotations

from howdah.linux.netlink.discipline.howdah_hop import OPTIONS
from howdah.plan.memory import LEAST_BUFFER_MAXIMUM_BYTES
from howdah.plan.plan import Flow, Plan
from howdah.receiver import RECEIVERS

RECEIVE_BUFFER, SEND_BUFFER = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
_SACK = "net.ipv4.tcp_sack"
# A buffer holds truesize, about twice the payload, of everything the path can hold.
_NEEDED = 2
# Settings that only a profile makes, and that bound what a buffer can do.
_BOUNDS = {
    RECEIVE_BUFFER: ("window_scaling", "moderate_rcvbuf", "adv_win_scale", "shrink_window", "app_win"),
    SEND_BUFFER: ("notsent_lowat", "limit_output_bytes"),
}


def is_set_by_profile(plan: Plan, host: str, sysctl: str, flow: Flow) -> bool:
    """Whether the plan has another largest buffer than where a profile says nothing, or one that cannot hold what the
    path holds, or another setting that bounds it."""
    holds = plan.path.held_bytes(flow.rtt_us)
    least = max(LEAST_BUFFER_MAXIMUM_BYTES, _NEEDED * holds)
    bounds = {f"net.ipv4.tcp_{name}" for name in _BOUNDS[sysctl]}
    for operation in plan.operations:
        arguments = operation.arguments
        if operation.op != "sysctl" or arguments["node"] not in (host, None):
            continue
        if arguments["name"] in bounds:
            return True
        if arguments["name"] == sysctl and int(str(arguments["value"]).split()[-1]) < least:
            return True
    return False


def is_set_by_program(flow: Flow) -> bool:
    """Whether programs of the profile hold the flow's sockets: their buffers and their pauses are their own."""
    return flow.kind.holds_sockets


def has_sack(plan: Plan, flow: Flow) -> bool:
    """Whether both ends may report what lies beyond a gap."""
    off = any(
        operation.op == "sysctl"
        and operation.arguments["name"] == _SACK
        and operation.arguments["node"] in (flow.sender, flow.receiver, None)
        and str(operation.arguments["value"]).strip() == "0"
        for operation in plan.operations
    )
    return RECEIVERS[flow.receiver_behaviour].sack and not off and not _strips(plan, "sack")


def _strips(plan: Plan, option: str) -> bool:
    """Whether a middlebox takes the option away."""
    return plan.path.middlebox is not None and OPTIONS[option] in plan.path.middlebox.strips


def receive_window_reason(plan: Plan, flow: Flow) -> str | None:
    """Why the receiver's buffer is as it was asked for; None where it is the plan's own."""
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
    """The same of the sender's buffer."""
    if is_set_by_profile(plan, flow.sender, SEND_BUFFER, flow):
        return "the profile sets the sender's buffer"
    if is_set_by_program(flow):
        return "its program sets the sender's buffer"
    return None
