# SPDX-License-Identifier: Apache-2.0
"""wire.json: what crossed the wires between the kernels of a run. Standard library only."""

from __future__ import annotations

from howdah.codec import planned

WIRE_FILE = "wire.json"


@planned
class CarriedFrames:
    """One kernel's counts at one end of a wire."""

    wire: int
    arrives: bool
    left_frames: int
    left_bytes: int
    arrived_frames: int
    arrived_bytes: int
    late_frames: int
    latest_ns: int
    lost_frames: int


@planned
class KernelWires:
    """The file of one kernel."""

    format: int
    wires: list[CarriedFrames]


@planned
class WireRecord:
    """The file of a run: the ends of wires by kernel."""

    format: int
    parts: dict[str, list[CarriedFrames]]
