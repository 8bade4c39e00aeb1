# SPDX-License-Identifier: Apache-2.0
"""Receivers with a TCP stack of their own: which flow has which, by what interface, and what cannot have one."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Any

from howdah.errors import ProfileError
from howdah.place import written
from howdah.plan.network import Network, bare
from howdah.plan.plan import Flow
from howdah.profile import Cell
from howdah.profile.model import FlowSection
from howdah.profile.stack import Stack, is_other_stack, read_stack, stack_file
from howdah.receiver import LINUX
from howdah.trait import Traits

_MAC = 0x02_5A_00_00_00_00  # locally administered; the flow's number is added
_OTHERS = {"http": "HTTP", "exchange": "transactions", "datagram_bytes": "datagrams", "group": "groups"}
_SOURCES = ("kernel", "python")

Place = tuple[str | int, ...]


def receiver_name(cell: Cell) -> str:
    """What tables call the receivers of measured flows that do not say otherwise."""
    section = cell.scenario.receiver
    if section.stack is None or not is_other_stack(section.stack):
        return section.behaviour
    return _stack(cell, section.stack, ("receiver", "stack")).name


def name_stacks(cell: Cell, network: Network, flows: list[Flow], kind: Traits) -> list[Flow]:
    """The flows, those with ``receiver_stack`` whose receiver is another stack. Raises ProfileError."""
    scenario = cell.scenario
    named: list[Flow] = []
    for index, (flow, section) in enumerate(zip(flows, scenario.every_flow, strict=True)):
        own: str | None = getattr(section, "receiver_stack", None)
        place: Place = ("receiver", "stack")
        if own is not None:
            place = (*scenario.place_of(index), "receiver_stack")
        name = own or (scenario.receiver.stack if flow.role == "measured" else None)
        if name is None or not is_other_stack(name):
            named.append(flow)
            continue
        stack = _stack(cell, name, place)
        _check(cell, flow, section, stack, place, kind)
        named.append(dataclasses.replace(flow, sink="stack", receiver_stack=_record(cell, network, flow, stack)))
    return named


def _stack(cell: Cell, name: str, place: Place) -> Stack:
    return read_stack(stack_file(name, cell.directory, cell.place(*place)))


def _check(cell: Cell, flow: Flow, section: FlowSection, stack: Stack, place: Place, kind: Traits) -> None:
    """Raises ProfileError for the first thing that a receiver with a stack of its own cannot have."""
    where = cell.place(*place)
    if not (kind.own_kernel and kind.exact_uptime):
        what = f"the stack {stack.name} is a program: its speed would be a part of the results"
        raise ProfileError(what, where=where, hint="run it with the uml engine, in which computing takes no time")
    others = next((words for name, words in _OTHERS.items() if getattr(flow, name) is not None), None)
    if others is not None:
        what = f"{flow.title} is of {others}, which a stack of its own does not receive"
        raise ProfileError(what, where=where, hint="use flows that send bulk data")
    if flow.traffic not in _SOURCES:
        what = f"{flow.title} is sent by {flow.traffic}, which needs its own program at the receiver"
        raise ProfileError(what, where=cell.place("traffic"), hint="let kernel or python send")
    if section.opener != "sender":
        what = f"the stack {stack.name} listens: it is the sender that connects"
        raise ProfileError(what, where=cell.place(*cell.scenario.place_of(cell.scenario.every_flow.index(section))))
    if flow.receiver_behaviour != LINUX:
        what = f"{flow.receiver_behaviour} is an emulation on Linux' own TCP, which the stack {stack.name} replaces"
        raise ProfileError(what, where=where, hint="leave the behaviour out")
    if cell.scenario.receiver.kernel:
        what = f"the receiver's kernel and the stack {stack.name} are both given"
        raise ProfileError(what, where=cell.place("receiver", "kernel"), hint="leave one out")


def _record(cell: Cell, network: Network, flow: Flow, stack: Stack) -> dict[str, Any]:
    link = network.access_link(flow.receiver)
    own = ipaddress.ip_interface(link.at(flow.receiver).address)
    number = f"{_MAC + flow.id:012x}"
    return {
        "name": stack.name,
        "file": written(stack.file),
        "program": stack.section.program,
        "interface": f"stack{flow.id}",
        "host_interface": link.at(flow.receiver).name,
        "mac": ":".join(number[at : at + 2] for at in range(0, 12, 2)),
        "mtu_bytes": cell.scenario.path.mtu,
        "prefix_bits": own.network.prefixlen,
        "netmask": str(own.network.netmask),
        "gateway": bare(link.facing(flow.receiver).address),
    }
