# SPDX-License-Identifier: Apache-2.0
"""Assigns hosts to kernels: a plan for several kernels in one virtual time, or the reason why it cannot be one.

Kernels are separated at the delay lines. The senders' kernel emulates the path towards the receivers, a receivers'
kernel the path of what its hosts send.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from howdah.errors import ProfileError
from howdah.plan.kernel import Part
from howdah.plan.line import TICK_US, delay_lines
from howdah.plan.plan import Flow, Plan
from howdah.plan.program import traffic_place
from howdah.profile import Cell

MOST_PARTS = 8  # WIRE_MOST_PARTS of modules/wire/wire.h
# Fields of flows whose ends must be in one kernel.
_WHOLE = {
    "program": "programs",
    "http": "HTTP",
    "exchange": "transactions",
    "datagram_bytes": "datagrams",
    "group": "groups",
    "receiver_stack": "another stack",
    "sender_stack": "another stack",
}

FindKernel = Callable[[str, tuple[str | int, ...]], str]  # a kernel as written, and its place, to its name


def divide(cell: Cell, plan: Plan, find_kernel: FindKernel) -> Plan:
    """Return the plan with ``kernel`` and ``parts``, or unchanged if the profile asks for one kernel.

    Raise ProfileError if the engine runs one kernel only, or if the plan cannot be divided.
    """
    scenario = cell.scenario
    receivers = _receiver_kernels(cell, plan, find_kernel)
    sender = find_kernel(scenario.sender.kernel, ("sender", "kernel")) if scenario.sender.kernel else plan.kernel
    if not scenario.split and {sender, *receivers.values()} == {plan.kernel}:
        return plan
    where = _place(cell)
    if not plan.traits.several_kernels:
        what = f"the {plan.engine} engine runs one kernel for all hosts"
        raise ProfileError(
            what,
            where=where,
            hint="leave it out, or use the uml engine; several machines have machines.receiver.kernel",
        )
    if not scenario.split and len({sender, *receivers.values()}) == 1:
        return dataclasses.replace(plan, kernel=sender)
    of_kernel: dict[str, list[str]] = {}
    for host, kernel in receivers.items():
        of_kernel.setdefault(kernel, []).append(host)
    senders = [host.name for host in plan.hosts if host.role == "sender"]
    parts = [Part("senders", sender, senders)]
    for number, (kernel, hosts) in enumerate(of_kernel.items(), 1):
        parts.append(Part("receivers" if len(of_kernel) == 1 else f"receivers-{number}", kernel, hosts))
    divided = dataclasses.replace(plan, kernel=sender, parts=parts)
    _check(cell, divided, where)
    return divided


def _place(cell: Cell) -> str:
    scenario = cell.scenario
    if scenario.receiver.kernel:
        return cell.place("receiver", "kernel")
    if scenario.sender.kernel:
        return cell.place("sender", "kernel")
    return cell.place("split") if scenario.split else cell.place("flows")


def _receiver_kernels(cell: Cell, plan: Plan, find_kernel: FindKernel) -> dict[str, str]:
    """Return the kernel of each host on the receivers' side."""
    scenario = cell.scenario
    usual = plan.kernel
    if scenario.receiver.kernel:
        usual = find_kernel(scenario.receiver.kernel, ("receiver", "kernel"))
    found = {host.name: usual for host in plan.hosts if host.role == "receiver"}
    asked: dict[str, str] = {}
    for index, (flow, written) in enumerate(zip(plan.flows, scenario.every_flow, strict=True)):
        place = (*scenario.place_of(index), "receiver_kernel")
        named = getattr(written, "receiver_kernel", None)
        kernel = find_kernel(named, place) if named else usual
        host = flow.ends[1]
        if asked.setdefault(host, kernel) != kernel:
            what = f"{flow.name} and an earlier flow share {host}, which has one kernel"
            raise ProfileError(what, where=cell.place(*place), hint="give them hosts of their own")
        found[host] = kernel
    return found


def _check(cell: Cell, plan: Plan, where: str) -> None:
    """Raise ProfileError for the first thing that cannot be divided between kernels."""
    if len(plan.parts) > MOST_PARTS:
        raise ProfileError(f"{len(plan.parts)} kernels are asked for; {MOST_PARTS} can run together", where=where)
    if cell.scenario.path.reorder is not None:
        what = "packets that overtake others pass without delay, and kernels are joined by delay"
        raise ProfileError(what, where=cell.place("path", "reorder"), hint="leave it out, or use one kernel")
    if plan.path.middlebox is not None:
        what = "a middlebox stands where kernels are joined"
        raise ProfileError(what, where=cell.place("path", "middlebox"), hint="leave it out, or use one kernel")
    if plan.path.link is not None or plan.path.reverse_link is not None:
        field = "link" if plan.path.link is not None else "reverse_link"
        what = "each kernel would have a link that follows the trace, and one of them carries the data"
        raise ProfileError(what, where=cell.place("path", field), hint="leave split out")
    if plan.path.policer is not None:
        what = "no train measures a policer where kernels are apart"
        raise ProfileError(what, where=cell.place("path", "policer"), hint="leave it out, or use one kernel")
    for line in delay_lines(plan):
        if line.least_us < TICK_US:
            what = f"the delay towards {line.host} is {line.least_us / 1000:g} ms at its shortest"
            hint = f"kernels are joined by delays of at least {TICK_US / 1000:g} ms each way"
            raise ProfileError(what, where=cell.place("path"), hint=hint)
    if plan.path.reverse_rate_bits_per_second is not None and len(plan.parts) > 2:
        what = "receivers in several kernels cannot share the bottleneck of the way back"
        raise ProfileError(what, where=cell.place("path", "reverse_rate"), hint="leave it out, or use one such kernel")
    for index, flow in enumerate(plan.flows):
        _check_flow(cell, index, flow)
    routers = {host.name for host in plan.hosts if host.role == "router"}
    for index, capture in enumerate(plan.collect.pcap):
        if capture.partition(":")[0] in routers:
            what = f"what passes {capture} passes in several kernels"
            raise ProfileError(what, where=cell.place("collect", "pcap", index), hint="capture at hosts")
    if plan.collect.cpu:
        what = "processor time by function is kept of one kernel"
        raise ProfileError(what, where=cell.place("collect", "cpu"), hint="leave it out, or use one kernel")


def _check_flow(cell: Cell, index: int, flow: Flow) -> None:
    whole = next((words for name, words in _WHOLE.items() if getattr(flow, name) is not None), None)
    if whole is None and flow.kind.single and flow.sink_kind.single:
        return
    what = f"{flow.name}: the ends of {whole or flow.traffic} must be in one kernel"
    place: tuple[str | int, ...] = ("traffic",)
    if flow.program is not None:
        place = traffic_place(cell, index)
    elif whole:
        place = cell.scenario.place_of(index)
    raise ProfileError(what, where=cell.place(*place), hint="use traffic of the kernel or python")
