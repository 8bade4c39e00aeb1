# SPDX-License-Identifier: Apache-2.0
"""The identity of a part of a plan, in a run with several kernels or machines. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned


@planned
class KernelShare:
    """The part of one kernel in one virtual time with others (howdah/engine/uml/part.py), which runs ``hosts``."""

    name: str
    number: int
    hosts: list[str]


@planned
class ProbePlace:
    """Where the emulator measures the path of a target. ``SIDE_node`` and ``SIDE_interface`` are where packets of that
    side's host enter the emulator. Probes to the other side start there and leave by the other side's interface."""

    sender_node: str
    sender_interface: str
    receiver_node: str
    receiver_interface: str


@planned
class BottleneckEnds:
    """Routers and addresses at the ends of the bottleneck, and the number of frames that pass at once after a pause."""

    burst_frames: int
    near_node: str
    near_address: str
    far_node: str
    far_address: str


@planned
class MachineShare:
    """The part of one of several machines (howdah/engine/machines/slice.py); probes and bottleneck: emulator only."""

    machine: str
    nodes: list[str]
    role: str  # "emulator" or "host"
    stagger: float  # delay of its periodic work, as a share of the interval, so that machines alternate
    wiring: str
    probes: list[ProbePlace] = field(default_factory=list, metadata=OCCASIONAL)
    bottleneck: BottleneckEnds | None = field(default=None, metadata=OCCASIONAL)
