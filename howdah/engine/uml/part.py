# SPDX-License-Identifier: Apache-2.0
"""A plan divided among kernels in one virtual time: a pure function of the plan.

The part of a kernel is the plan with the flows, events and captures of its own hosts alone, and the field ``part``. The
network is whole in each, but for delay lines: towards a host that lives here frames arrive from the other kernels by a
wire (modules/wire), towards any other one they leave by it. What a line does beside delaying by its least delay (loss,
variation, a schedule) it does where they leave, before the wire.
"""

from __future__ import annotations

import json
from typing import Any

from howdah.plan.kernel import Part
from howdah.plan.line import TICK_US, WIRE, WIRE_HANDLE, Line, delay_lines
from howdah.plan.operation import operation
from howdah.plan.plan import Operation, Plan
from howdah.plan.qdisc import ROOT_HANDLE

LONGEST_LOOKAHEAD_US = 5 * TICK_US  # a longer one saves little and takes memory


def cut(plan: Plan) -> dict[str, dict[str, Any]]:
    """The part of each kernel, by its name, as the JSON value that its agent reads."""
    lines = {line.place: line for line in delay_lines(plan)}
    return {part.name: _part(plan, number, part, lines) for number, part in enumerate(plan.parts)}


def lookaheads_us(plan: Plan) -> list[list[int]]:
    """By sending and receiving part: how much later at least a frame arrives than it left. 0 within a part."""
    least = {line.host: line.least_us for line in delay_lines(plan)}
    arriving = [min(min(least[host] for host in part.hosts), LONGEST_LOOKAHEAD_US) for part in plan.parts]
    return [
        [0 if one == other else arriving[other] for other in range(len(plan.parts))] for one in range(len(plan.parts))
    ]


def window_us(plan: Plan) -> int:
    """How often the kernels wait for each other: half the least lookahead, in whole ticks: none holds up all."""
    least = min(value for row in lookaheads_us(plan) for value in row if value)
    return max(least // 2 // TICK_US, 1) * TICK_US


def _part(plan: Plan, number: int, part: Part, lines: dict[tuple[str, str, str], Line]) -> dict[str, Any]:
    here = {*part.hosts}
    value: dict[str, Any] = json.loads(plan.to_json())
    value["kernel"] = part.kernel
    del value["parts"]
    value["operations"] = [{"op": item.op, "arguments": item.arguments} for item in _operations(plan, here, lines)]
    value["flows"] = [flow for flow in value["flows"] if here & {flow["sender"], flow["receiver"]}]
    mine = {flow["id"] for flow in value["flows"]}
    value["timeline"] = [
        event for event in (_event(item, here, lines) for item in value["timeline"]) if event and _is_mine(event, mine)
    ]
    collect = value["collect"]
    collect["pcap"] = [capture for capture in collect["pcap"] if capture.partition(":")[0] in here]
    # What the tracepoints tell of is a sender's.
    sends = any(flow["sender"] in here for flow in value["flows"])
    collect["tcp_probe"], collect["slow_start"] = collect["tcp_probe"] and sends, collect["slow_start"] and sends
    value["module_parameters"][WIRE] = {"part": str(number)}
    value["required_modules"] = [*_required(plan, sends=sends), WIRE]
    value["part"] = {"name": part.name, "number": number, "hosts": part.hosts}
    return value


def _required(plan: Plan, *, sends: bool) -> list[str]:
    """Algorithms are senders' alone: a receiver's kernel may be one for which they do not build."""
    needed = plan.required_modules or []
    return [name for name in needed if sends or name.startswith("howdah_")]


def _is_mine(event: dict[str, Any], flows: set[int]) -> bool:
    return "flow" not in event["arguments"] or event["arguments"]["flow"] in flows


def _operations(plan: Plan, here: set[str], lines: dict[tuple[str, str, str], Line]) -> list[Operation]:
    numbers = {host.name: number for number, host in enumerate(plan.hosts)}
    parts = {host: number for number, part in enumerate(plan.parts) for host in part.hosts}
    found: list[Operation] = []
    for item in plan.operations:
        line = lines.get(_place(item.arguments)) if item.op == "qdisc" else None
        if line is None:
            found.append(item)
            continue
        wire = {"wire": numbers[line.host], "to": parts[line.host], "delay_ns": line.least_us * 1000}
        place = {"node": line.node, "interface": line.interface}
        if line.host in here or line.plain:
            arguments = {**place, "parent": "root", "handle": line.handle, "kind": WIRE, "options": wire}
            found.append(operation("qdisc", **arguments))
        else:
            found.append(operation("qdisc", **_rest(item.arguments, line)))
            below = {**place, "parent": f"{ROOT_HANDLE}1", "handle": WIRE_HANDLE, "kind": WIRE, "options": wire}
            found.append(operation("qdisc", **below))
    return found


def _event(event: dict[str, Any], here: set[str], lines: dict[tuple[str, str, str], Line]) -> dict[str, Any] | None:
    """A change of a line happens where frames leave by it."""
    line = lines.get(_place(event["arguments"])) if event["op"] == "qdisc" else None
    if line is None:
        return event
    return None if line.host in here else {**event, "arguments": _rest(event["arguments"], line)}


def _rest(arguments: dict[str, Any], line: Line) -> dict[str, Any]:
    """The netem of a line without the delay that its wire has."""
    options = arguments["options"]
    return {**arguments, "options": {**options, "delay_us": options["delay_us"] - line.least_us}}


def _place(arguments: dict[str, Any]) -> tuple[str, str, str]:
    return (arguments["node"], arguments["interface"], arguments["handle"])
