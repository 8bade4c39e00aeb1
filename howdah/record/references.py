# SPDX-License-Identifier: Apache-2.0
"""Check the references inside a plan: hosts, interfaces, queues and flows, which later stages look up by name."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from howdah.linux.netlink.discipline import queues
from howdah.plan.event import FlowChange
from howdah.plan.operation import AddRoute, OfInterface, Sysctl, VethLink
from howdah.plan.placed import Class, FollowLink, PlacedQueue, Replace
from howdah.plan.plan import Plan

_LOOPBACK = "lo"
_OUTERMOST = ("root", "ingress")  # parents that are no queue of the interface
_Place = tuple[str, str]


def check_references(plan: Plan) -> None:
    """Raise ValueError, with the place of the reference, for a name that the plan does not have.

    References to interfaces and queues, and those of the calibration, are checked only if the plan makes links: the
    plan of a simulator makes none.
    """
    hosts = {host.name for host in plan.hosts}
    if len(hosts) != len(plan.hosts):
        raise ValueError("two hosts have the same name")
    for what, host in _hosts(plan):
        _require(host, hosts, what, "host")
    links = {end for each in plan.operations if isinstance(each, VethLink) for end in each.ends}
    if links:
        for number, target in enumerate(plan.calibration.targets):
            for end in ("sender", "receiver"):
                _require(getattr(target, end), hosts, f"{end} of calibration.targets.{number}", "host")
        interfaces = {":".join(each) for each in links}
        for what, (node, interface) in _interfaces(plan):
            if interface != _LOOPBACK:
                _require(f"{node}:{interface}", interfaces, what, "interface")
        _check_places(plan)
    _check_kinds(plan)
    _check_flows(plan)


def _require(name: str, known: Iterable[str], what: str, kind: str) -> None:
    if name not in known:
        raise ValueError(f"{what} names the {kind} {name!r}, which the plan does not have")


def _hosts(plan: Plan) -> Iterator[tuple[str, str]]:
    for flow in plan.flows:
        yield from ((f"{end} of flow {flow.id}", getattr(flow, end)) for end in ("sender", "receiver"))
    for number, step in enumerate(plan.operations):
        what = f"operation {number} ({step.op})"
        if isinstance(step, VethLink):
            yield from ((what, node) for node, _ in step.ends)
        elif isinstance(step, (OfInterface, AddRoute, Sysctl)) and step.node is not None:
            yield what, step.node
    for part in plan.parts:
        yield from ((f"part {part.name!r}", host) for host in part.hosts)


def _interfaces(plan: Plan) -> Iterator[tuple[str, _Place]]:
    for number, hop in enumerate(plan.path.hops):
        yield f"path.hops.{number}", (hop.node, hop.interface)
    for number, capture in enumerate(plan.collect.pcap):
        node, _, interface = capture.partition(":")
        yield f"collect.pcap.{number}", (node, interface)
    for number, processor in enumerate(plan.processors):
        yield f"processors.{number}", (processor.host, processor.interface)
    yield "bottleneck of calibration", plan.calibration.bottleneck[:2]
    for number, event in enumerate(plan.timeline):
        if isinstance(event.change, OfInterface):
            yield f"event {number} ({event.op})", event.change.at
    for number, step in enumerate(plan.operations):
        if isinstance(step, OfInterface):
            yield f"operation {number} ({step.op})", step.at
        elif isinstance(step, AddRoute):
            yield f"operation {number} ({step.op})", (step.node, step.interface)


def _check_kinds(plan: Plan) -> None:
    kinds = {"queue": plan.path.queue, "reverse_queue": plan.path.reverse_queue}
    kinds |= {f"hops.{number}.queue": hop.queue for number, hop in enumerate(plan.path.hops)}
    for what, kind in kinds.items():
        if kind not in queues():
            raise ValueError(f"path.{what}: there is no queue {kind!r}; known: {', '.join(queues())}")


def _check_places(plan: Plan) -> None:
    handles: dict[_Place, set[str]] = {}
    for made in [*plan.operations, *(event.change for event in plan.timeline if isinstance(event.change, Replace))]:
        if isinstance(made, (PlacedQueue, Class)):
            handles.setdefault(made.at, set()).add(made.handle if isinstance(made, PlacedQueue) else made.classid)
    events = [(f"event {number}", event.change) for number, event in enumerate(plan.timeline)]
    operations = [(f"operation {number}", step) for number, step in enumerate(plan.operations)]
    for what, step in [*operations, *events]:
        if not isinstance(step, (PlacedQueue, Class, FollowLink)):
            continue
        wanted = []
        if not isinstance(step, FollowLink) and step.parent not in _OUTERMOST:
            wanted.append(f"{step.parent.partition(':')[0]}:")  # the queue: no operation makes some classes
        if what.startswith("event"):
            wanted.append(step.classid if isinstance(step, Class) else step.handle)
        for handle in wanted:
            _require(handle, handles.get(step.at, ()), f"{what} ({step.op}) at {':'.join(step.at)}", "queue")
    node, interface, handle = plan.calibration.bottleneck
    _require(handle, handles.get((node, interface), ()), "calibration.bottleneck_handle", "queue")


def _check_flows(plan: Plan) -> None:
    ids = {str(flow.id) for flow in plan.flows}
    for number, event in enumerate(plan.timeline):
        if isinstance(event.change, FlowChange):
            _require(str(event.change.flow), ids, f"event {number} ({event.op})", "flow")
    for flow in plan.flows:
        try:
            _ = (flow.kind, flow.sink_kind)
            _ = [ipaddress.ip_address(flow.at(side)[0]) for side in ("source", "destination")]
        except ValueError as error:
            raise ValueError(f"flow {flow.id}: {error}") from None
