# SPDX-License-Identifier: Apache-2.0
"""What active queues say that they did: marks are what the hosts get, and each of two queues lets go what came to it.

A queue that marks in name alone, or that counts what it does not do, changes what TCP sees of congestion.
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
_OWN = ("low_latency", "classic", "step_marks")  # of a kind that has two queues


def active_queue_checks(plan: Plan, state: Snapshots | None) -> list[Check]:
    """``state`` is accounting.json. Nothing where it is missing or lacks a counter, which other checks say."""
    if state is None:
        return []
    try:
        return [*_marks(plan, state), *_two_queues(plan, state)]
    except KeyError:
        return []


def _marks(plan: Plan, state: Snapshots) -> Iterator[Check]:
    """Packets that queues of a way say they marked are those that come to its end with CE, less what is dropped on it
    and what two marked, and more what comes twice."""
    if plan.path.middlebox is not None and plan.path.middlebox.clears_ecn:
        return  # howdah/judge/middlebox.py
    for direction in ("forward", "reverse"):
        ends = dict.fromkeys(flow.ends if direction == "forward" else flow.ends[::-1] for flow in plan.flows)
        hops = dict.fromkeys(hop for pair in ends for hop in links_between(plan, *pair))
        found = [item for hop in hops for item in state.qdiscs(hop.node, hop.interface)]
        marked = sum(item["marked"] for item in found)
        if not marked and not (plan.path.ecn or (direction == "forward" and queues()[plan.path.queue].marks_always)):
            continue
        came = sum(count for host, count in state.counter(_MARKED).items() if host in {pair[1] for pair in ends})
        fewer, more = _allowed(state, hops, found)
        ok = -fewer <= came - marked <= more
        message = f"{direction}: queues marked {marked} packets, and {came} came to their hosts with a mark"
        message += f"; {marked - came} marks are missing" if came < marked - fewer else ""
        message += "; more than were marked" if came > marked + more else ""
        yield Check(f"marks {direction}", ACCOUNTING, ok, message, marked, came, max(fewer, more), "packets")


def _allowed(state: Snapshots, hops: dict[LinkHop, None], found: list[dict[str, Any]]) -> tuple[int, int]:
    """How many packets fewer, and how many more, may come with a mark than were marked."""
    lost = sum(state.queue_drops(hop.node, hop.interface) for hop in hops)
    twice = sum(min(item["step_marks"], item["marked"] - item["step_marks"]) for item in found if "step_marks" in item)
    several = sum(1 for item in found if item["marked"]) > 1  # each may mark what another has
    repeated = sum(state.hop_counts(hop.node, hop.interface, "duplicated") for hop in hops)
    return lost + twice + several * sum(item["marked"] for item in found), repeated


def _two_queues(plan: Plan, state: Snapshots) -> Iterator[Check]:
    """What came to both queues of one is what left it and what it dropped of what it held; of its marks some are by
    the step."""
    dual = ((queue.place, queue.discipline) for queue in plan.queues)
    deciding = {place for place, queue in dual if isinstance(queue, HopQueue) and queue.decides_on_arrival}
    for node, values in state.after["nodes"].items():
        for item in values["qdiscs"]:
            if not all(name in item for name in _OWN):
                continue
            place = (node, item["interface"], item["handle"])
            came = item["classic"] + item["low_latency"]
            at_once = place in deciding
            held = 0 if at_once else item["drops"] - item["overlimits"]
            left = item["packets"] + item["backlog_packets"] + held
            what = f"{item['kind']} at {node}:{item['interface']}"
            message = f"{item['low_latency']} packets came to the queue of low latency of {what} and {item['classic']} "
            message += f"to the classic one, {item['packets']} left and {held} were dropped in it; "
            message += f"{item['step_marks']} of {item['marked']} marks are by the step"
            wrong = came != left or item["step_marks"] > item["marked"]
            if came != left:
                message += f"; {abs(came - left)} packets {'are missing' if came > left else 'more than came'}"
            label = f"two queues {node}:{item['interface']}"
            yield Check(label, ACCOUNTING, not wrong, message, came, left, 0, "packets")
