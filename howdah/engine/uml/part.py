# SPDX-License-Identifier: Apache-2.0
"""Divides a plan among kernels in one virtual time: a pure function of the plan.

The part of a kernel is the plan with the flows, events and captures of its own hosts only, and with the field ``part``.
Each part has the whole network except for delay lines: towards a host in this kernel, frames arrive from the other
kernels by a wire (modules/wire); towards any other host they leave by one. Everything a line does besides delaying by
its minimum (loss, variation, a schedule) happens where frames leave, before the wire.
"""

from __future__ import annotations

import dataclasses

from howdah.linux.netlink.discipline.howdah_wire import Wire
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.event import Event, FlowChange
from howdah.plan.kernel import Part
from howdah.plan.line import TICK_US, WIRE, WIRE_HANDLE, Line, delay_lines
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.plan.shares import KernelShare
from howdah.plan.step import Operation

LONGEST_LOOKAHEAD_US = 5 * TICK_US  # a longer one saves little and takes memory


def cut(plan: Plan) -> dict[str, Plan]:
    """Return the part of each kernel, by name."""
    lines = {line.place: line for line in delay_lines(plan)}
    return {part.name: _part(plan, number, part, lines) for number, part in enumerate(plan.parts)}


def lookaheads_us(plan: Plan) -> list[list[int]]:
    """Return the minimum delay of a frame by sending and receiving part; 0 within a part."""
    least = {line.host: line.least_us for line in delay_lines(plan)}
    arriving = [min(min(least[host] for host in part.hosts), LONGEST_LOOKAHEAD_US) for part in plan.parts]
    return [
        [0 if one == other else arriving[other] for other in range(len(plan.parts))] for one in range(len(plan.parts))
    ]


def window_us(plan: Plan) -> int:
    """Return how often the kernels wait for each other: half the least lookahead, in ticks, to stall none."""
    least = min(value for row in lookaheads_us(plan) for value in row if value)
    return max(least // 2 // TICK_US, 1) * TICK_US


def _part(plan: Plan, number: int, part: Part, lines: dict[tuple[str, str, str], Line]) -> Plan:
    here = {*part.hosts}
    flows = [flow for flow in plan.flows if here & {flow.sender, flow.receiver}]
    mine = {flow.id for flow in flows}
    events = (_event(item, here, lines) for item in plan.timeline)
    sends = any(flow.sender in here for flow in flows)
    return dataclasses.replace(
        plan,
        kernel=part.kernel,
        parts=[],
        operations=_operations(plan, here, lines),
        flows=flows,
        timeline=[event for event in events if event and _is_mine(event, mine)],
        collect=plan.collect.on(here, sends=sends),
        module_parameters={**plan.module_parameters, WIRE: {"part": str(number)}},
        required_modules=[*_required(plan, sends=sends), WIRE],
        part=KernelShare(part.name, number, part.hosts),
    )


def _required(plan: Plan, *, sends: bool) -> list[str]:
    """Return the part's modules. Only senders need algorithms, which may not build for a receiver's kernel."""
    needed = plan.required_modules or []
    return [name for name in needed if sends or name.startswith("howdah_")]


def _is_mine(event: Event, flows: set[int]) -> bool:
    return not isinstance(event.change, FlowChange) or event.change.flow in flows


def _operations(plan: Plan, here: set[str], lines: dict[tuple[str, str, str], Line]) -> list[Operation]:
    numbers = {host.name: number for number, host in enumerate(plan.hosts)}
    parts = {host: number for number, part in enumerate(plan.parts) for host in part.hosts}
    found: list[Operation] = []
    for item in plan.operations:
        line = lines.get(item.place) if isinstance(item, Qdisc) else None
        if line is None or not isinstance(item, Qdisc):
            found.append(item)
            continue
        wire = Wire(numbers[line.host], parts[line.host], line.least_us * 1000)
        if line.host in here or line.plain:
            found.append(Qdisc(*item.at, "root", line.handle, wire))
        else:
            found += [_without_wire_delay(item, line), Qdisc(*item.at, f"{ROOT_HANDLE}1", WIRE_HANDLE, wire)]
    return found


def _event(event: Event, here: set[str], lines: dict[tuple[str, str, str], Line]) -> Event | None:
    """Return the event as this part sees it: a change of a line happens where frames leave by it."""
    line = lines.get(event.change.place) if isinstance(event.change, Qdisc) else None
    if line is None or not isinstance(event.change, Qdisc):
        return event
    return None if line.host in here else dataclasses.replace(event, change=_without_wire_delay(event.change, line))


def _without_wire_delay(queue: Qdisc, line: Line) -> Qdisc:
    """Return the netem of a line without the delay that its wire provides."""
    netem = queue.discipline
    assert isinstance(netem, Netem)
    return dataclasses.replace(queue, discipline=dataclasses.replace(netem, delay_us=netem.delay_us - line.least_us))
