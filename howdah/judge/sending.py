# SPDX-License-Identifier: Apache-2.0
"""Whether each sender had something to send whenever its window had room.

The kernel's own count of a send buffer that is too small does not see a recovery (howdah/measure/limit.py says why).
Nothing counts an application that stops.
"""

from __future__ import annotations

from howdah.judge.promise import has_sack, is_set_by_program, send_buffer_reason
from howdah.judge.tolerance import Tolerance
from howdah.measure.limit import Nothing, nothing_to_send, promises_data
from howdah.measure.measured import Measured
from howdah.plan.plan import Flow, Plan
from howdah.record.verdict import DURING, Check


def sending_checks(data: Measured, tolerance: Tolerance) -> list[Check]:
    """The time with nothing to send as a share of the time in which the flow was to send, of each TCP flow of no group.

    Of datagrams and of QUIC the kernel does not know what is left to send.
    A flow fails whose traffic promises data all the time. Where the profile sets the send buffer, where the traffic is
    requests and answers or a program's, and without SACK, the check says how much it was.
    """
    return [_check(data, flow, tolerance) for flow in data.plan.flows if flow.group is None and flow.is_tcp]


def _check(data: Measured, flow: Flow, tolerance: Tolerance) -> Check:
    name = f"nothing to send flow {flow.id}"
    if flow.sender_stack is not None:
        why = f"{flow.title} is sent by the stack {flow.sender_stack.name}, which does not tell what is left to send"
        return Check(name, DURING, None, why, unit="ratio")
    found = nothing_to_send(data.trace(flow), data.info[flow.id])
    if found is None:
        why = f"tcp_info of {flow.title} was not read twice while the flow was to send"
        return Check(name, DURING, None, why, unit="ratio")
    much = found.share > tolerance.limited_share
    excuse = _excuse(data.plan, flow)
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


def _excuse(plan: Plan, flow: Flow) -> str | None:
    """Why that is what was asked for; None if it is not."""
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
