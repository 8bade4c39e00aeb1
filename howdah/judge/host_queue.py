# SPDX-License-Identifier: Apache-2.0
"""Queues of senders' interfaces: kind and limits by what the kernel says, drops by two counters, and by what it held.

What such a queue refuses was never on the path. TCP hears of it at once and slows down (tcp_enter_cwr), and the packet
stays where it was.
"""

from __future__ import annotations

from howdah.judge.accounting import Snapshots
from howdah.judge.room import room_check
from howdah.linux.netlink.discipline.fq import Fq
from howdah.measure.measured import Measured
from howdah.plan.host_queue import HOST_HANDLE, PlannedQueue, host_queues, queue_words
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.record.verdict import ACCOUNTING, Check


def host_queue_checks(data: Measured, state: Snapshots | None) -> list[Check]:
    """Two checks of each queue that the plan gives a sender; ``state`` is accounting.json, None if it is missing."""
    checks = []
    for each in host_queues(data.plan):
        place = f"{each.node}:{each.interface}"
        name, what = f"host queue {place}", f"the queue of {place}"
        if state is not None:
            checks.append(_account(name, what, each, state))
        samples = data.host_queues[each.node, each.interface]
        end_ns = data.plan.duration_us * 1000
        checks.append(room_check(name, what, samples, room_of(data.plan, each), end_ns))
    return checks


def room_of(plan: Plan, each: PlannedQueue) -> tuple[int, int]:
    """The least that it holds when it drops, and the most that it ever holds, in packets.

    A program may set a DSCP (IP_TOS), and so a priority, which has a queue of its own in some kinds.
    """
    least, most = each.queue.room_packets
    free = any(flow.program is not None and each.node == flow.sender for flow in plan.flows)
    return least, most * each.queue.priorities if free else most


def _account(name: str, what: str, each: PlannedQueue, state: Snapshots) -> Check:
    """That it was there, with the limits of the plan, and that the rate limit above it counted the same drops."""
    queues = {item["handle"]: item for item in state.qdiscs(each.node, each.interface)}
    own = queues.get(HOST_HANDLE)
    if own is None or own["kind"] != each.queue.kind:
        message = f"{what} is {'missing' if own is None else own['kind']}, the plan says {queue_words(each.queue)}"
        return Check(name, ACCOUNTING, False, message)
    told = each.queue.limits(each.queue.encode())  # what the kernel tells of this kind
    wrong = [
        f"its {limit.removesuffix('_packets')} is {own.get(limit)}, the plan says {value}"
        for limit, value in told.items()
        if own.get(limit) != value
    ]
    above = queues[ROOT_HANDLE]["drops"]
    if own["drops"] != above:
        wrong.append(f"the rate limit above it counted {above}")
    message = f"{what} is {queue_words(each.queue)}, and dropped {own['drops']} packets"
    if isinstance(each.queue, Fq):
        message += f", {own['of_one_flow']} of them at the limit of a flow; flows waited {own['throttled']} times"
        if own["of_one_flow"] > own["drops"]:
            wrong.append("it dropped fewer packets than at the limits of flows")
    message = "; ".join([message, *wrong])
    return Check(name, ACCOUNTING, not wrong, message, above, own["drops"], 0, "packets")
