# SPDX-License-Identifier: Apache-2.0
"""Check queues that are short on purpose, delay lines and queues of senders' interfaces: they must hold no more than
their limit, and drop only packets that find no room. For a sender's queue also compare kind, limits and two counters of
drops.

A packet that a sender's queue refuses was never on the path. TCP learns of it at once and slows down (tcp_enter_cwr),
and keeps the packet.
"""

from __future__ import annotations

import numpy as np

from howdah.judge.accounting import Snapshots
from howdah.judge.loss import delay_lines, places_passed
from howdah.linux.netlink.discipline.fq import Fq
from howdah.measure.measured import Measured
from howdah.measure.sampled import Samples
from howdah.plan.host_queue import HOST_HANDLE, PlannedQueue, host_queues, queue_words
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import ACCOUNTING, DURING, Check

_MANY = 20  # drops from which on some reading must find the queue full, or one packet short
_READ = ("sent_packets", "drops_packets", "backlog_packets")


def room_check(name: str, what: str, samples: Samples, room: tuple[int, int], end_ns: int) -> Check:
    """Check a queue's limit. ``room`` has the least that it holds when it drops, and the most that it ever holds, in
    packets.

    Between two readings with drops, a queue held at most what it held before plus what arrived meanwhile: that must
    reach the limit.
    """
    least, limit = room
    inside = np.flatnonzero((samples.time_ns >= 0) & (samples.time_ns < end_ns))
    if inside.size < 2 or not all(samples.has(column) for column in _READ):
        return Check(name, DURING, None, f"{what} was not read", unit="packets")
    held, sent, drops = (samples[column][inside] for column in ("backlog_packets", "sent_packets", "drops_packets"))
    dropped, peak = np.diff(drops), int(held.max())
    most = held[1:] + np.diff(sent)  # packets that left and packets still held
    total = int(dropped.sum())
    has = f"{limit} packets" if least == limit else f"{limit} packets, {least} of one flow or priority"
    message = f"{what} has room for {has}, held at most {peak} and dropped {total}"
    early = np.flatnonzero((dropped > 0) & (most < least))
    wrong = ""
    if peak > limit:
        wrong = "its limit is not in force"
    elif early.size:
        wrong = f"it dropped while it held at most {int(most[early[0]])}"
    elif total >= _MANY and peak < least - 1:
        wrong = "its limit is smaller"
    message += f"; {wrong}" if wrong else ""
    return Check(name, DURING, not wrong, message, limit, peak, 0, "packets")


def host_queue_checks(data: Measured, state: Snapshots | None) -> list[Check]:
    """Return two checks for each queue that the plan gives a sender. ``state`` is accounting.json, None if it is
    missing."""
    checks = []
    for each in host_queues(data.plan):
        place = f"{each.node}:{each.interface}"
        name, what = f"host queue {place}", f"the queue of {place}"
        if state is not None:
            checks.append(_settings_check(name, what, each, state))
        samples = data.host_queues[each.node, each.interface]
        end_ns = data.plan.duration_us * 1000
        checks.append(room_check(name, what, samples, room_of(data.plan, each), end_ns))
    return checks


def room_of(plan: Plan, each: PlannedQueue) -> tuple[int, int]:
    """Return the least that a queue holds when it drops, and the most that it ever holds, in packets.

    A program may set a DSCP (IP_TOS) and so a priority, which has a queue of its own in some kinds.
    """
    least, most = each.queue.room_packets
    free = any(flow.program is not None and each.node == flow.sender for flow in plan.flows)
    return least, most * each.queue.priorities if free else most


def _settings_check(name: str, what: str, each: PlannedQueue, state: Snapshots) -> Check:
    """Check that the queue existed with the planned limits, and that the rate limit above it counted the same drops."""
    queues = {item["handle"]: item for item in state.qdiscs(each.node, each.interface)}
    own = queues.get(HOST_HANDLE)
    if own is None or own["kind"] != each.queue.kind:
        message = f"{what} is {'missing' if own is None else own['kind']}, the plan says {queue_words(each.queue)}"
        return Check(name, ACCOUNTING, False, message)
    limits = each.queue.limits(each.queue.encode())  # the limits that the kernel reports for this kind
    wrong = [
        f"its {limit.removesuffix('_packets')} is {own.get(limit)}, the plan says {value}"
        for limit, value in limits.items()
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


def delay_limit_checks(directory: RunDirectory, plan: Plan) -> list[Check]:
    """Return a check for each delay line towards a receiver; none if the plan gives them no limit."""
    limit = plan.path.delay_limit_packets
    if limit is None:
        return []
    table = store.read(directory, "qdisc")
    forward = places_passed(plan)
    lines = [(":".join(place), samples) for place, samples in delay_lines(table, plan) if place in forward]
    end_ns, room = plan.duration_us * 1000, (limit, limit)
    return [
        room_check(f"delay limit {place}", f"the delay line at {place}", samples, room, end_ns)
        for place, samples in lines
    ]
