# SPDX-License-Identifier: Apache-2.0
"""The delay lines of a plan: where they are, and the least delay of a packet on each at any time.

A run with several kernels is divided there: what leaves one kernel cannot affect another before that time has passed.
"""

from __future__ import annotations

from dataclasses import dataclass

from howdah.linux.netlink.discipline.howdah_wire import Wire
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.operation import VethLink
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan

TICK_US = 10_000  # tick of a user-mode kernel
WIRE = Wire.kind  # qdisc and module of a line between two kernels
HOP_HANDLE = "30:"  # handle of a middlebox below the netem
WIRE_HANDLE = "20:"  # handle of a wire below the netem that does the rest of a line


@dataclass(frozen=True)
class Line:
    """The netem on a router's interface towards ``host``. ``least_us`` is its shortest delay; ``plain`` means that it
    only delays every packet by that."""

    host: str
    node: str
    interface: str
    handle: str
    least_us: int
    plain: bool

    @property
    def place(self) -> tuple[str, str, str]:
        return (self.node, self.interface, self.handle)


def delay_lines(plan: Plan) -> list[Line]:
    """Return one line for each host, in the order of the plan's operations."""
    hosts = {host.name for host in plan.hosts if host.role != "router"}
    towards: dict[tuple[str, str], str] = {}
    for item in plan.operations:
        if isinstance(item, VethLink):
            near, far = item.ends
            towards[near], towards[far] = far[0], near[0]
    changed: dict[tuple[str, str, str], list[Netem]] = {}
    for event in plan.timeline:
        change = event.change
        if isinstance(change, Qdisc) and isinstance(change.discipline, Netem):
            changed.setdefault(change.place, []).append(change.discipline)
    lines = []
    for queue in plan.queues:
        if not isinstance(queue.discipline, Netem):
            continue
        host = towards[queue.at]
        if host not in hosts:
            continue
        netems = [queue.discipline, *changed.get(queue.place, [])]
        least = min(netem.least_us for netem in netems)
        plain = len(netems) == 1 and netems[0].plain
        lines.append(Line(host, *queue.place, least, plain))
    return lines
