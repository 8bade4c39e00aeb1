# SPDX-License-Identifier: Apache-2.0
"""The delay lines of a plan: where they are, and the delay that every packet on one has at all times.

A run on several kernels is cut there: what leaves one kernel cannot matter to another before that time has passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.plan.plan import Plan

TICK_US = 10_000  # of a user-mode kernel
WIRE = "howdah_wire"  # the qdisc and the module of a line between two kernels
WIRE_HANDLE = "20:"  # of a wire below the netem that does the rest of a line


@dataclass(frozen=True)
class Line:
    """The netem on a router's interface towards ``host``. ``least_us`` is its delay at its shortest; ``plain`` says
    that it does nothing but delay every packet by that."""

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
    """One for each host, in the order of the plan's operations."""
    hosts = {host.name for host in plan.hosts if host.role != "router"}
    towards: dict[tuple[str, str], str] = {}
    for item in plan.operations:
        if item.op == "link":
            link = item.arguments
            for near, far in (("a", "b"), ("b", "a")):
                towards[link[f"{near}_node"], link[f"{near}_interface"]] = link[f"{far}_node"]
    changed: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for event in plan.timeline:
        if event.op == "qdisc":
            changed.setdefault(_place(event.arguments), []).append(event.arguments["options"])
    lines = []
    for item in plan.operations:
        if item.op != "qdisc" or item.arguments["kind"] != "netem":
            continue
        host = towards[item.arguments["node"], item.arguments["interface"]]
        if host not in hosts:
            continue
        all_options = [item.arguments["options"], *changed.get(_place(item.arguments), [])]
        least = min(_least_us(options) for options in all_options)
        plain = len(all_options) == 1 and _is_plain(all_options[0])
        lines.append(Line(host, *_place(item.arguments), least, plain))
    return lines


def _place(arguments: dict[str, Any]) -> tuple[str, str, str]:
    return (arguments["node"], arguments["interface"], arguments["handle"])


def _least_us(options: dict[str, Any]) -> int:
    """A packet that overtakes has no delay."""
    return 0 if options["reorder_ratio"] else max(int(options["delay_us"]) - int(options["jitter_us"]), 0)


def _is_plain(options: dict[str, Any]) -> bool:
    names = ("loss_ratio", "jitter_us", "distribution", "rate_bits_per_second", "reorder_ratio")
    return not any(options[name] for name in names)
