# SPDX-License-Identifier: Apache-2.0
"""Cutting a plan into the parts of several machines: a pure function of plan and placement.

The part of a machine is the plan with the operations, events, flows and captures of its own hosts only, and with the
field ``slice``. ``hosts`` remains complete, so that positions in it mean the same everywhere. A link between two
machines becomes two operations ``adopt``: each machine's NIC becomes the interface that the plan names, with the plan's
MAC, so that addresses, routes, neighbours and queues are those of every other engine.
"""

from __future__ import annotations

import dataclasses

from howdah.engine.machines.placement import Placement
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.event import Event, FlowChange
from howdah.plan.network import bare
from howdah.plan.operation import Address, AddRoute, Adopt, ModuleParameter, Node, OfInterface, Sysctl, VethLink
from howdah.plan.placed import Class, Qdisc
from howdah.plan.plan import Plan
from howdah.plan.qdisc import ROOT_HANDLE
from howdah.plan.route import links_between
from howdah.plan.shaping import LEAST_SENDER_QUEUE_PACKETS
from howdah.plan.shares import BottleneckEnds, MachineShare, ProbePlace
from howdah.plan.step import Operation

_EMULATOR = "emulator"


def cut(plan: Plan, placement: Placement, emulator_wiring: str = "mininet") -> dict[str, Plan]:
    """Return the part of each machine, by name."""
    return {machine: _part(plan, placement, machine, emulator_wiring) for machine in placement.used}


def _part(plan: Plan, placement: Placement, machine: str, emulator_wiring: str) -> Plan:
    nodes = placement.nodes(machine)
    routers = {host.name for host in plan.hosts if host.role == "router"}
    emulates = bool(routers.intersection(nodes))
    flows = [flow for flow in plan.flows if {flow.sender, flow.receiver}.intersection(nodes)]
    mine = {flow.id for flow in flows}
    collect = plan.collect.on(nodes, sends=any(flow.sender in nodes for flow in flows))
    return dataclasses.replace(
        plan,
        operations=_operations(plan, placement, nodes),
        flows=flows,
        timeline=[event for event in plan.timeline if _happens_here(event, nodes, mine)],
        # Only the emulator has the path's queues.
        collect=collect if emulates else collect.at(qdisc=None),
        slice=MachineShare(
            machine=machine,
            nodes=nodes,
            role=_EMULATOR if emulates else "host",
            stagger=placement.used.index(machine) / len(placement.used),
            wiring=emulator_wiring if emulates else "netlink",
            probes=_probes(plan) if emulates else [],
            bottleneck=_bottleneck(plan) if emulates else None,
        ),
    )


def _operations(plan: Plan, placement: Placement, nodes: list[str]) -> list[Operation]:
    """Return the plan's operations in order, and queues for NICs without: unlike a veth, a NIC always has one."""
    found: list[Operation] = []
    shaped = {queue.at for queue in plan.queues if queue.parent == "root"}
    ipv6 = "ipv6.disable" not in plan.kernel_parameters
    queues: list[Operation] = []
    for item in plan.operations:
        if not isinstance(item, VethLink):
            found += [item] if _is_made_here(item, plan, nodes) else []
        elif placement.machines[item.a_node] == placement.machines[item.b_node]:
            found += [item] if item.a_node in nodes else []
        else:
            for end, mac in zip(item.ends, (item.a_mac, item.b_mac), strict=True):
                if end[0] in nodes:
                    attached = placement.attachments[end]
                    found.append(Adopt(*end, mac, attached.nic_mac, attached.tag, ipv6))
                    if end not in shaped:
                        queues.append(Qdisc(*end, "root", ROOT_HANDLE, Pfifo(LEAST_SENDER_QUEUE_PACKETS)))
    return found + queues


def _is_made_here(item: Operation, plan: Plan, nodes: list[str]) -> bool:
    if isinstance(item, Node):
        return item.name in nodes
    if isinstance(item, ModuleParameter):
        return any(flow.sender in nodes for flow in plan.flows)
    if isinstance(item, Sysctl) and item.node is None:
        return True
    assert isinstance(item, (OfInterface, AddRoute, Sysctl))
    return item.node in nodes


def _happens_here(event: Event, nodes: list[str], flows: set[int]) -> bool:
    change = event.change
    if isinstance(change, FlowChange):
        return change.flow in flows
    assert isinstance(change, OfInterface)
    return change.node in nodes


def _bottleneck(plan: Plan) -> BottleneckEnds:
    near, interface, _ = plan.calibration.bottleneck
    addresses: dict[tuple[str, str], str] = {}
    for item in plan.operations:
        if isinstance(item, Address):
            addresses.setdefault(item.at, bare(item.address))
    classes = (item for item in plan.operations if isinstance(item, Class))
    bursts = [item.rate.burst_bytes for item in classes if item.at == (near, interface)]
    target = plan.calibration.targets[0]
    hops = links_between(plan, target.sender, target.receiver)
    hop = next(hop for hop in hops if (hop.node, hop.interface) == (near, interface))
    return BottleneckEnds(
        burst_frames=-(-max(bursts, default=0) // plan.path.frame_bytes),
        near_node=near,
        near_address=addresses[(near, interface)],
        far_node=hop.to_node,
        far_address=addresses[(hop.to_node, hop.to_interface)],
    )


def _probes(plan: Plan) -> list[ProbePlace]:
    """Return the probe points of each target: from the router next to one host to the wire towards the other."""
    found = []
    for target in plan.calibration.targets:
        hops = links_between(plan, target.sender, target.receiver)
        found.append(ProbePlace(hops[0].to_node, hops[0].to_interface, hops[-1].node, hops[-1].interface))
    return found
