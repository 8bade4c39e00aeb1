# SPDX-License-Identifier: Apache-2.0
"""What a part of a plan says of itself, where several kernels or machines make a run. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned


@planned
class KernelShare:
    """Of a kernel in one virtual time with others (howdah/engine/uml/part.py): ``hosts`` live in it."""

    name: str
    number: int
    hosts: list[str]


@planned
class ProbePlace:
    """Where the emulator measures the path of a target: ``SIDE_node`` and ``SIDE_interface`` are where the packets of
    the host of that side come in; those to the other side are sent there, and leave the emulator by the other's."""

    sender_node: str
    sender_interface: str
    receiver_node: str
    receiver_interface: str


@planned
class BottleneckEnds:
    """Routers and addresses at the ends of the bottleneck, and how many frames pass it at once after a rest."""

    burst_frames: int
    near_node: str
    near_address: str
    far_node: str
    far_address: str


@planned
class MachineShare:
    """Of one of several machines (howdah/engine/machines/slice.py); the emulator alone has probes and bottleneck."""

    machine: str
    nodes: list[str]
    role: str  # "emulator" or "host"
    stagger: float  # by which share of an interval it does later what all do again and again
    wiring: str
    probes: list[ProbePlace] = field(default_factory=list, metadata=OCCASIONAL)
    bottleneck: BottleneckEnds | None = field(default=None, metadata=OCCASIONAL)
