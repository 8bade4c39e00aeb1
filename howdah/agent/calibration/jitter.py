# SPDX-License-Identifier: Apache-2.0
"""The delays drawn by an emulated jitter: many small packets over delay lines configured as during the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from howdah.agent.calibration.delay import Probes
from howdah.agent.calibration.udp import PROBE_PORT, open_receiver
from howdah.agent.loop import Loop
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.discipline.netem import Netem
from howdah.linux.netlink.qdisc import change_qdisc
from howdah.plan.jitter import Jitter, jitter_events
from howdah.plan.placed import Qdisc
from howdah.plan.plan import CalibrationTarget, Plan
from howdah.record.calibration import DrawnDelays

_MARGIN_NS = 50 * MS


def measure_jitter(plan: Plan, jitter: Jitter, namespaces: dict[str, Namespace], loop: Loop) -> list[DrawnDelays]:
    """Return the entry ``jitter`` of calibration-*.json, one item for each target and direction, with times from the
    first packet. The delay lines are changed as the plan's timeline does, and back."""
    _apply(jitter_events(plan.timeline, 0), namespaces)
    found = [
        entry for target in plan.calibration.targets for entry in _measure_target(jitter, target, namespaces, loop)
    ]
    _apply(jitter_events(plan.timeline, plan.duration_us), namespaces)
    return found


def _apply(lines: Iterable[tuple[Qdisc, Netem]], namespaces: dict[str, Namespace]) -> None:
    for line, netem in lines:
        namespace = namespaces[line.node]
        untimed = dataclasses.replace(netem, tick_us=None)
        change_qdisc(namespace.netlink, namespace.index(line.interface), line.parent, line.handle, untimed)


def _measure_target(
    jitter: Jitter, target: CalibrationTarget, namespaces: dict[str, Namespace], loop: Loop
) -> list[DrawnDelays]:
    (near, near_address), (far, far_address) = target.ends
    sockets = [
        open_receiver(namespaces[host], address, PROBE_PORT)
        for host, address in ((near, near_address), (far, far_address))
    ]
    directions = {
        "forward": Probes(sockets[0], sockets[1], far_address),
        "reverse": Probes(sockets[1], sockets[0], near_address),
    }
    measured = {name: probes for name, probes in directions.items() if jitter.way(ahead=name == "forward")}
    start = now_ns() + MS
    for number in range(jitter.packets):
        for probes in measured.values():
            loop.at(start + number * jitter.spacing_us * 1000, probes.send)
    delay_us = max(target.forward_delay_us, target.reverse_delay_us) + jitter.largest_us
    loop.run_until(start + (jitter.packets * jitter.spacing_us + delay_us) * 1000 + _MARGIN_NS)
    found = []
    for name, probes in measured.items():
        arrived_ns = dict(probes.arrived_ns())
        begin = probes.sent_ns[0]
        found.append(
            DrawnDelays(
                target.sender,
                target.receiver,
                name,
                sent_ns=[time_ns - begin for time_ns in probes.sent_ns],
                came_ns=[
                    arrived_ns[number] - begin if number in arrived_ns else None for number in range(jitter.packets)
                ],
            )
        )
    for each in sockets:
        each.close()
    return found
