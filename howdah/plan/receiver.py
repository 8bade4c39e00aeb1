# SPDX-License-Identifier: Apache-2.0
"""Receiver behaviours as operations on the hosts that receive.

A behaviour is that of a host, as a system's is: all that the host receives is acknowledged that way.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from howdah.errors import ProfileError
from howdah.plan.network import Network
from howdah.plan.operation import operation
from howdah.plan.plan import Flow, Operation
from howdah.profile import Cell
from howdah.receiver import RECEIVERS, Receiver

RECEIVER_MODULE = "howdah_receiver"
_HANDLE = "ac0:"


@dataclass(frozen=True)
class Receivers:
    """The behaviour of each host that receives, by name."""

    of_host: dict[str, Receiver]

    @property
    def needs_module(self) -> bool:
        return any(receiver.ack_filter for receiver in self.of_host.values())


def find_receivers(cell: Cell, flows: list[Flow], *, virtual_time: bool) -> Receivers:
    """What the profile asks of each receiving host. Background takes what its host has, else Linux' own behaviour,
    unless it says otherwise. Raises ProfileError where flows share a host and disagree."""
    scenario = cell.scenario
    asked: dict[str, str] = {}
    for index, (flow, written) in enumerate(zip(flows, scenario.every_flow, strict=True)):
        name = written.receiver_behaviour or (scenario.receiver.behaviour if flow.role == "measured" else None)
        if name is None or flow.datagram_bytes is not None:
            continue
        if asked.setdefault(flow.receiver, name) != name:
            what = f"{flow.name} and an earlier flow share {flow.receiver}, as {name} and as {asked[flow.receiver]}"
            place = (*scenario.place_of(index), "receiver_behaviour")
            raise ProfileError(what, where=cell.place(*place), hint="give them hosts of their own")
    found = Receivers({host: RECEIVERS[name] for host, name in asked.items()})
    if found.needs_module and not virtual_time:
        names = sorted({receiver.name for receiver in found.of_host.values() if receiver.ack_filter})
        raise ProfileError(
            f"the behaviour of {', '.join(names)} is made by a kernel module",
            where=cell.place("receiver"),
            hint="run it with the uml engine; linux, quick-ack and no-sack need no module",
        )
    return found


def name_receivers(flows: list[Flow], receivers: Receivers) -> list[Flow]:
    """The flows with the behaviour of their receiver's host."""
    return [
        dataclasses.replace(flow, receiver_behaviour=receivers.of_host[flow.receiver].name)
        if flow.receiver in receivers.of_host and flow.datagram_bytes is None
        else flow
        for flow in flows
    ]


def acknowledge_at_once(operations: list[Operation], receivers: Receivers) -> list[Operation]:
    """``operations`` with routes that ask for quick ACKs at the hosts that send one for every segment."""
    return [
        operation("route", **item.arguments, quick_ack=1) if _is_quick(item, receivers) else item for item in operations
    ]


def _is_quick(item: Operation, receivers: Receivers) -> bool:
    if item.op != "route":
        return False
    receiver = receivers.of_host.get(item.arguments["node"])
    return receiver is not None and receiver.quick_ack


def receiver_settings(receivers: Receivers) -> list[Operation]:
    """Sysctls of the receiving hosts; to be followed by those that the profile gives."""
    return [
        operation("sysctl", node=host, name="net.ipv4.tcp_sack", value="0")
        for host, receiver in receivers.of_host.items()
        if not receiver.sack
    ]


def ack_filters(cell: Cell, network: Network, receivers: Receivers, shaping: list[Operation]) -> list[Operation]:
    """The qdisc that chooses among a host's ACKs. Raises ProfileError where ``shaping`` limits that host's rate."""
    operations = []
    for host, receiver in receivers.of_host.items():
        chosen = receiver.ack_filter
        if chosen is None:
            continue
        interface = network.access_link(host).at(host).name
        if any(item.arguments.get("node") == host and item.arguments.get("parent") == "root" for item in shaping):
            what = f"{host} cannot be {receiver.name}: the rate of its interface is limited, because it also sends"
            raise ProfileError(what, where=cell.place("receiver"), hint="give background in reverse hosts of its own")
        operations.append(
            operation(
                "qdisc",
                node=host,
                interface=interface,
                parent="root",
                handle=_HANDLE,
                kind=RECEIVER_MODULE,
                options=dataclasses.asdict(chosen),
            )
        )
    return operations
