# SPDX-License-Identifier: Apache-2.0
"""A plan cut into the parts that several machines do: a pure function of plan and placement.

The part of a machine is the plan with operations, events, flows and captures of its own hosts alone, and the field
``slice``. ``hosts`` stay all, so that positions in it mean the same everywhere. A link whose ends are on two machines
becomes two operations ``adopt``. The machine's NIC becomes the interface that the plan names, with the plan's MAC, so
that addresses, routes, neighbours and queues are those of every other engine.
"""

from __future__ import annotations

import json
from typing import Any

from howdah.engine.machines.placement import Placement
from howdah.plan.operation import operation
from howdah.plan.plan import Operation, Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.plan.route import way
from howdah.plan.shaping import LEAST_SENDER_QUEUE_PACKETS

_EMULATOR = "emulator"


def cut(plan: Plan, placement: Placement, emulator_wiring: str = "mininet") -> dict[str, dict[str, Any]]:
    """The part of each machine, by its name, as the JSON value that its agent reads."""
    return {machine: _part(plan, placement, machine, emulator_wiring) for machine in placement.used}


def _part(plan: Plan, placement: Placement, machine: str, emulator_wiring: str) -> dict[str, Any]:
    nodes = placement.nodes(machine)
    routers = {host.name for host in plan.hosts if host.role == "router"}
    role = _EMULATOR if routers.intersection(nodes) else "host"
    value: dict[str, Any] = json.loads(plan.to_json())
    value["operations"] = [{"op": item.op, "arguments": item.arguments} for item in _operations(plan, placement, nodes)]
    value["flows"] = [flow for flow in value["flows"] if {flow["sender"], flow["receiver"]}.intersection(nodes)]
    mine = {flow["id"] for flow in value["flows"]}
    value["timeline"] = [event for event in value["timeline"] if _happens_here(event, nodes, mine)]
    collect = value["collect"]
    collect["pcap"] = [capture for capture in collect["pcap"] if capture.partition(":")[0] in nodes]
    # What the tracepoints tell of is a sender's.
    sends = any(flow["sender"] in nodes for flow in value["flows"])
    collect["tcp_probe"], collect["slow_start"] = collect["tcp_probe"] and sends, collect["slow_start"] and sends
    if role != _EMULATOR:
        collect["qdisc_us"] = None  # the queues of the path are the emulator's
    value["slice"] = {
        "machine": machine,
        "nodes": nodes,
        "role": role,
        "stagger": placement.used.index(machine) / len(placement.used),
        "wiring": emulator_wiring if role == _EMULATOR else "netlink",
    }
    if role == _EMULATOR:
        value["slice"] |= {"probes": _probes(plan), "bottleneck": _bottleneck(plan)}
    return value


def _operations(plan: Plan, placement: Placement, nodes: list[str]) -> list[Operation]:
    """In the plan's order, with a queue for NICs that the plan gives none: a veth needs none, a NIC has always one."""
    found: list[Operation] = []
    shaped = {
        (item.arguments["node"], item.arguments["interface"])
        for item in plan.operations
        if item.op == "qdisc" and item.arguments["parent"] == "root"
    }
    ipv6 = "ipv6.disable" not in plan.kernel_parameters
    queues: list[Operation] = []
    for item in plan.operations:
        if item.op == "link":
            link = item.arguments
            if placement.machines[link["a_node"]] == placement.machines[link["b_node"]]:
                found += [item] if link["a_node"] in nodes else []
                continue
            for end in ("a", "b"):
                node, interface = link[f"{end}_node"], link[f"{end}_interface"]
                if node not in nodes:
                    continue
                attached = placement.attachments[(node, interface)]
                found.append(
                    operation(
                        "adopt",
                        node=node,
                        interface=interface,
                        mac=link[f"{end}_mac"],
                        nic_mac=attached.nic_mac,
                        tag=attached.tag,
                        ipv6=ipv6,
                    )
                )
                if (node, interface) not in shaped:
                    queues.append(_queue(node, interface))
        elif item.op == "node":
            found += [item] if item.arguments["name"] in nodes else []
        elif item.op == "module_parameter":
            found += [item] if _sends(plan, nodes) else []
        elif item.arguments["node"] is None or item.arguments["node"] in nodes:
            found.append(item)
    return found + queues


def _queue(node: str, interface: str) -> Operation:
    options = {"limit_packets": LEAST_SENDER_QUEUE_PACKETS}
    return operation(
        "qdisc", node=node, interface=interface, parent="root", handle=ROOT_HANDLE, kind="pfifo", options=options
    )


def _sends(plan: Plan, nodes: list[str]) -> bool:
    return any(flow.sender in nodes for flow in plan.flows)


def _happens_here(event: dict[str, Any], nodes: list[str], flows: set[int]) -> bool:
    arguments = event["arguments"]
    return arguments["flow"] in flows if "flow" in arguments else arguments["node"] in nodes


def _bottleneck(plan: Plan) -> dict[str, str | int]:
    """Routers and addresses at the ends of the bottleneck, and how many frames pass it at once after a rest."""
    near, interface = plan.calibration.bottleneck_node, plan.calibration.bottleneck_interface
    addresses: dict[tuple[str, str], str] = {}
    for item in plan.operations:
        if item.op == "address":
            place = (item.arguments["node"], item.arguments["interface"])
            addresses.setdefault(place, item.arguments["address"].partition("/")[0])
    bursts = [
        item.arguments["options"]["burst_bytes"]
        for item in plan.operations
        if item.op == "class" and (item.arguments["node"], item.arguments["interface"]) == (near, interface)
    ]
    target = plan.calibration.targets[0]
    hops = way(plan, target.sender, target.receiver)
    hop = next(hop for hop in hops if (hop.node, hop.interface) == (near, interface))
    return {
        "burst_frames": -(-max(bursts, default=0) // plan.path.frame_bytes),
        "near_node": near,
        "near_address": addresses[(near, interface)],
        "far_node": hop.to_node,
        "far_address": addresses[(hop.to_node, hop.to_interface)],
    }


def _probes(plan: Plan) -> list[dict[str, str]]:
    """Where the emulator measures the path of each target: from the router next to one host to the wire to the other.

    ``SIDE_node`` and ``SIDE_interface`` are where the packets of the host of that side come in; those to the other
    side are sent there, and leave the emulator by the other's.
    """
    found = []
    for target in plan.calibration.targets:
        hops = way(plan, target.sender, target.receiver)
        found.append(
            {
                "sender_node": hops[0].to_node,
                "sender_interface": hops[0].to_interface,
                "receiver_node": hops[-1].node,
                "receiver_interface": hops[-1].interface,
            }
        )
    return found
