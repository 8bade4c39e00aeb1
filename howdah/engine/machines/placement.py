# SPDX-License-Identifier: Apache-2.0
"""Placement: which machine holds each host of a plan, and which wire carries each link between machines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from howdah.engine.machines.machine import RunMachine
from howdah.errors import HowdahError
from howdah.plan.operation import VethLink
from howdah.plan.plan import Plan

_FIRST_TAG = 100  # VLAN tag of the first link on a shared wire
_MACHINES = {"sender": "sender", "router": "emulator", "receiver": "receiver"}  # role of a host to role of its machine


@dataclass(frozen=True)
class Attachment:
    """One end of a link between machines: its NIC's MAC, and an 802.1Q tag unless it has the wire alone."""

    nic_mac: str
    tag: int | None


@dataclass(frozen=True)
class Placement:
    """``machines`` maps hosts to machines; ``attachments`` (host, interface) to link ends."""

    machines: dict[str, str]
    attachments: dict[tuple[str, str], Attachment]

    def nodes(self, machine: str) -> list[str]:
        return [node for node, own in self.machines.items() if own == machine]

    @property
    def used(self) -> list[str]:
        """Machines with a host on them, senders' first."""
        return list(dict.fromkeys(self.machines.values()))


def place_hosts(plan: Plan, machines: Mapping[str, RunMachine]) -> Placement:
    """Assign hosts to the machines of their role in turn; all routers share one emulator, and so one clock.

    Raises HowdahError if a machine or a wire is missing.
    """
    candidates = {role: _candidates(plan, machines, _MACHINES[role]) for role in _MACHINES}
    turns = dict.fromkeys(_MACHINES, 0)
    placed: dict[str, str] = {}
    for host in sorted(plan.hosts, key=lambda host: list(_MACHINES).index(host.role)):
        of_role = candidates[host.role]
        placed[host.name] = of_role[0 if host.role == "router" else turns[host.role] % len(of_role)]
        turns[host.role] += 1
    crossing: dict[tuple[str, str], list[VethLink]] = {}
    for link in plan.operations:
        if isinstance(link, VethLink):
            ends = placed[link.a_node], placed[link.b_node]
            if ends[0] != ends[1]:
                crossing.setdefault((min(ends), max(ends)), []).append(link)
    attachments: dict[tuple[str, str], Attachment] = {}
    for (first, second), links in crossing.items():
        attachments |= _attach(machines[first], machines[second], links, placed)
    return Placement(placed, attachments)


def runs_kernel(release: str, asked: str) -> bool:
    """Return whether ``uname -r`` matches the requested kernel: ``debian-6.1``, ``6.1``, or the whole release."""
    wanted = asked.removeprefix("debian-")
    return release == wanted or bool(re.match(rf"{re.escape(wanted)}(?![0-9])", release))


def _candidates(plan: Plan, machines: Mapping[str, RunMachine], role: str) -> list[str]:
    of_role = {name: machine for name, machine in machines.items() if machine.role == role}
    if not of_role:
        raise HowdahError(f"the machine set has no {role}", hint=f"Give one of its hosts the role {role}.")
    asked = (plan.machine_kernels or {}).get(role)
    if asked is None:
        return list(of_role)
    found = [name for name, machine in of_role.items() if runs_kernel(machine.kernel_release, asked)]
    if not found:
        has = ", ".join(f"{name} runs {machine.kernel_release}" for name, machine in of_role.items())
        raise HowdahError(
            f"no {role} of the machine set runs {asked}: {has}",
            hint=f"Give it one, or leave machines.{role}.kernel out.",
        )
    return found


def _attach(
    first: RunMachine, second: RunMachine, links: Sequence[VethLink], placed: Mapping[str, str]
) -> dict[tuple[str, str], Attachment]:
    """Assign a wire to each link; if there are too few, links share them, each with its own tag."""
    wires = [wire for wire in first.interfaces if wire in second.interfaces]
    if not wires:
        raise HowdahError(
            f"no wire joins {first.name} and {second.name}, and {len(links)} of the plan's links do",
            hint="Name the same wire at both hosts in the machines file.",
        )
    sharing = len(wires) < len(links)
    found = {}
    for number, link in enumerate(links):
        wire = wires[number % len(wires)]
        for node, interface in link.ends:
            machine = first if placed[node] == first.name else second
            tag = _FIRST_TAG + number if sharing else None
            found[(node, interface)] = Attachment(machine.interfaces[wire].mac, tag)
    return found
