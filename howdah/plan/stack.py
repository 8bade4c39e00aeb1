# SPDX-License-Identifier: Apache-2.0
"""Ends with a TCP stack of their own: which flow has which, its interface, and what excludes one."""

from __future__ import annotations

import dataclasses
import ipaddress

from howdah.errors import ProfileError, nearest
from howdah.place import recorded_name
from howdah.plan.network import Network, bare
from howdah.plan.plan import Flow
from howdah.plan.traffic import PlannedStack
from howdah.profile import Cell
from howdah.profile.model import FlowSection
from howdah.profile.stack import Stack, is_other_stack, read_stack, stack_file
from howdah.receiver import LINUX
from howdah.trait import Traits

_MAC = 0x02_5A_00_00_00_00  # locally administered address, to which the flow's number is added
_OTHERS = {"http": "HTTP", "exchange": "transactions", "datagram_bytes": "datagrams", "group": "groups"}

Place = tuple[str | int, ...]


def receiver_name(cell: Cell) -> str:
    """Return the name in tables of the receivers of measured flows that do not name their own."""
    section = cell.scenario.receiver
    if section.stack is None or not is_other_stack(section.stack):
        return section.behaviour
    return _stack(cell, section.stack, ("receiver", "stack")).name


def name_stacks(cell: Cell, network: Network, flows: list[Flow], kind: Traits) -> list[Flow]:
    """Return the flows, ends with another stack as ``receiver_stack`` or ``sender_stack``. Raise ProfileError."""
    named: list[Flow] = []
    for index, (flow, section) in enumerate(zip(flows, cell.scenario.every_flow, strict=True)):
        receiver, sender = (_named_stack(cell, index, flow, section, end) for end in ("receiver", "sender"))
        if receiver is not None:
            _check_receiver(cell, flow, section, *receiver, kind)
            stack = _planned_stack(cell, network, flow, receiver[0], flow.receiver)
            flow = dataclasses.replace(flow, sink="stack", receiver_stack=stack)
        if sender is not None:
            _check_sender(cell, flow, section, *sender, kind)
            stack = _planned_stack(cell, network, flow, sender[0], flow.sender)
            called = sender[0].section.algorithms[flow.algorithm]
            stack = dataclasses.replace(stack, algorithm=called)
            flow = dataclasses.replace(flow, traffic="stack", sender_stack=stack)
        named.append(flow)
    return named


def _named_stack(cell: Cell, index: int, flow: Flow, section: FlowSection, end: str) -> tuple[Stack, Place] | None:
    """Return the stack of one end of a flow and the place that names it in the profile; None for the kernel's TCP."""
    scenario = cell.scenario
    own: str | None = getattr(section, f"{end}_stack", None)
    place: Place = (end, "stack") if own is None else (*scenario.place_of(index), f"{end}_stack")
    usual = scenario.receiver.stack if end == "receiver" else scenario.sender.stack
    name = own or (usual if flow.role == "measured" else None)
    if name is None or not is_other_stack(name):
        return None
    return _stack(cell, name, place), place


def _stack(cell: Cell, name: str, place: Place) -> Stack:
    return read_stack(stack_file(name, cell.directory, cell.place(*place)))


def _check_receiver(cell: Cell, flow: Flow, section: FlowSection, stack: Stack, place: Place, kind: Traits) -> None:
    where = cell.place(*place)
    _check_both(flow, stack, where, kind, "receive")
    if not flow.kind.single:
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


def _check_sender(cell: Cell, flow: Flow, section: FlowSection, stack: Stack, place: Place, kind: Traits) -> None:
    where, scenario = cell.place(*place), cell.scenario
    at = scenario.place_of(scenario.every_flow.index(section))
    algorithms = stack.section.algorithms
    _check_both(flow, stack, where, kind, "send")
    if not algorithms:
        what = f"the stack {stack.name} only receives: {stack.file.name} names no algorithms"
        raise ProfileError(what, where=where, hint="docs/stacks.md says what a program that sends has to do")
    if flow.receiver_stack is not None:
        what = f"both ends of {flow.title} are stacks of their own, {stack.name} and {flow.receiver_name}"
        raise ProfileError(what, where=where, hint="let linux be one of them")
    if not flow.kind.single:
        what = f"{flow.title} is sent by {flow.traffic}, in whose place the stack {stack.name} would send"
        raise ProfileError(what, where=cell.place("traffic"), hint="leave the traffic out")
    if section.opener != "sender":
        what = f"the stack {stack.name} connects: a receiver that opens is not possible"
        raise ProfileError(what, where=cell.place(*at))
    if section.initial_window is not None:
        what = f"the stack {stack.name} chooses its own initial window: no route tells it one"
        raise ProfileError(what, where=cell.place(*at, "initial_window"), hint="leave it out")
    if flow.algorithm not in algorithms:
        close = nearest(flow.algorithm, algorithms)
        hint = f"did you mean {close}? " if close else ""
        own: Place = (*at, "algorithm") if section.algorithm else ("algorithm",)
        raise ProfileError(
            f"the stack {stack.name} is not run with {flow.algorithm!r}",
            where=cell.place(*own),
            hint=f"{hint}{stack.file.name} names {', '.join(algorithms)}",
        )
    if scenario.sender.kernel or scenario.sender.behaviour != LINUX:
        field = "kernel" if scenario.sender.kernel else "behaviour"
        what = f"the sender's {field} and the stack {stack.name} are both given"
        raise ProfileError(what, where=cell.place("sender", field), hint="leave one out")


def _check_both(flow: Flow, stack: Stack, where: str, kind: Traits, verb: str) -> None:
    if not (kind.own_kernel and kind.exact_uptime):
        what = f"the stack {stack.name} is a program: its speed would be a part of the results"
        raise ProfileError(what, where=where, hint="run it with the uml engine, in which computing takes no time")
    others = next((words for name, words in _OTHERS.items() if getattr(flow, name) is not None), None)
    if others is not None:
        what = f"{flow.title} is of {others}, which a stack of its own does not {verb}"
        raise ProfileError(what, where=where, hint="use flows that send bulk data")


def _planned_stack(cell: Cell, network: Network, flow: Flow, stack: Stack, host: str) -> PlannedStack:
    link = network.access_link(host)
    own = ipaddress.ip_interface(link.at(host).address)
    number = f"{_MAC + flow.id:012x}"
    return PlannedStack(
        name=stack.name,
        file=recorded_name(stack.file),
        program=stack.section.program,
        interface=f"stack{flow.id}",
        host_interface=link.at(host).name,
        mac=":".join(number[at : at + 2] for at in range(0, 12, 2)),
        mtu_bytes=cell.scenario.path.mtu,
        prefix_bits=own.network.prefixlen,
        netmask=str(own.network.netmask),
        gateway=bare(link.facing(host).address),
    )
