# SPDX-License-Identifier: Apache-2.0
"""Check what active queue management reports: its marks must reach the hosts, and a qdisc with two queues must release
or drop what entered them.

A qdisc whose marks do not arrive, or whose counters are wrong, changes what TCP sees of congestion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from howdah.judge.accounting import Snapshots
from howdah.linux.netlink.discipline import queues
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.plan.plan import Plan
from howdah.plan.route import LinkHop, links_between
from howdah.record.verdict import ACCOUNTING, Check

_MARKED = "IpExtInCEPkts"
_DUAL_COUNTERS = ("low_latency", "classic", "step_marks")  # counters of a qdisc with two queues


def active_queue_checks(plan: Plan, state: Snapshots | None) -> list[Check]:
    """Return the checks; ``state`` is accounting.json. Return none if it or a counter is missing, which other checks
    report."""
    if state is None:
        return []
    try:
        return [*_marks(plan, state), *_two_queues(plan, state)]
    except KeyError:
        return []


def _marks(plan: Plan, state: Snapshots) -> Iterator[Check]:
    """Compare the marks of all queues on a path with the CE packets that its hosts received. Fewer may arrive if marked
    packets are dropped or marked twice, more if packets are duplicated."""
    if plan.path.middlebox is not None and plan.path.middlebox.clears_ecn:
        return  # checked in howdah/judge/middlebox.py
    for direction in ("forward", "reverse"):
        ends = dict.fromkeys(flow.ends if direction == "forward" else flow.ends[::-1] for flow in plan.flows)
        hops = dict.fromkeys(hop for pair in ends for hop in links_between(plan, *pair))
        found = [item for hop in hops for item in state.qdiscs(hop.node, hop.interface)]
        marked = sum(item["marked"] for item in found)
        if not marked and not (plan.path.ecn or (direction == "forward" and queues()[plan.path.queue].marks_always)):
            continue
        received = sum(count for host, count in state.counter(_MARKED).items() if host in {pair[1] for pair in ends})
        fewer, more = _allowed(state, hops, found)
        ok = -fewer <= received - marked <= more
        message = f"{direction}: queues marked {marked} packets, and {received} came to their hosts with a mark"
        message += f"; {marked - received} marks are missing" if received < marked - fewer else ""
        message += "; more than were marked" if received > marked + more else ""
        yield Check(f"marks {direction}", ACCOUNTING, ok, message, marked, received, max(fewer, more), "packets")


def _allowed(state: Snapshots, hops: dict[LinkHop, None], found: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many fewer and how many more packets may arrive with CE than were marked."""
    lost = sum(state.queue_drops(hop.node, hop.interface) for hop in hops)
    marked_twice = sum(
        min(item["step_marks"], item["marked"] - item["step_marks"]) for item in found if "step_marks" in item
    )
    several = sum(1 for item in found if item["marked"]) > 1  # each may mark packets already marked by another
    repeated = sum(state.hop_counts(hop.node, hop.interface, "duplicated") for hop in hops)
    return lost + marked_twice + several * sum(item["marked"] for item in found), repeated


def _two_queues(plan: Plan, state: Snapshots) -> Iterator[Check]:
    """Check that packets entering the two queues of a qdisc left it, remain in it or were dropped there, and that its
    step marks are part of its marks."""
    dual = ((queue.place, queue.discipline) for queue in plan.queues)
    deciding = {place for place, queue in dual if isinstance(queue, HopQueue) and queue.decides_on_arrival}
    for node, values in state.after["nodes"].items():
        for item in values["qdiscs"]:
            if not all(name in item for name in _DUAL_COUNTERS):
                continue
            place = (node, item["interface"], item["handle"])
            arrived = item["classic"] + item["low_latency"]
            at_once = place in deciding
            held = 0 if at_once else item["drops"] - item["overlimits"]
            left = item["packets"] + item["backlog_packets"] + held
            what = f"{item['kind']} at {node}:{item['interface']}"
            message = f"{item['low_latency']} packets came to the queue of low latency of {what} and {item['classic']} "
            message += f"to the classic one, {item['packets']} left and {held} were dropped in it; "
            message += f"{item['step_marks']} of {item['marked']} marks are by the step"
            wrong = arrived != left or item["step_marks"] > item["marked"]
            if arrived != left:
                message += f"; {abs(arrived - left)} packets {'are missing' if arrived > left else 'more than came'}"
            label = f"two queues {node}:{item['interface']}"
            yield Check(label, ACCOUNTING, not wrong, message, arrived, left, 0, "packets")
