# SPDX-License-Identifier: Apache-2.0
"""The route of a flow's packets through the plan's network, as the interfaces by which they leave."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from howdah.plan.operation import VethLink
from howdah.plan.placed import Class
from howdah.plan.plan import Plan


@dataclass(frozen=True)
class LinkHop:
    """One link in the direction of travel: out of ``node``:``interface``, into ``to_node``:``to_interface``."""

    node: str
    interface: str
    to_node: str
    to_interface: str


def changing_rates(plan: Plan) -> list[tuple[str, str]]:
    """Return node and interface of each rate limit whose rate changes while flows run."""
    return list(dict.fromkeys(event.change.at for event in plan.timeline if isinstance(event.change, Class)))


def way(plan: Plan, start: str, end: str) -> list[LinkHop]:
    """Return the links of the shortest route between hosts, by the plan's ``link`` operations; empty if none exists."""
    hops: dict[str, list[LinkHop]] = {}
    for operation in plan.operations:
        if isinstance(operation, VethLink):
            a, b = operation.ends
            hops.setdefault(a[0], []).append(LinkHop(*a, *b))
            hops.setdefault(b[0], []).append(LinkHop(*b, *a))
    routers = {host.name for host in plan.hosts if host.role == "router"}
    before: dict[str, LinkHop | None] = {start: None}
    waiting = deque([start])
    while waiting and end not in before:
        node = waiting.popleft()
        if node != start and node not in routers:
            continue
        for hop in hops.get(node, []):
            if hop.to_node not in before:
                before[hop.to_node] = hop
                waiting.append(hop.to_node)
    found: list[LinkHop] = []
    step = before.get(end)
    while step is not None:
        found.append(step)
        step = before[step.node]
    return found[::-1]
