# SPDX-License-Identifier: Apache-2.0
"""What the engine needs of several machines, virtual or not; howdah/machines/fleet.py is that by SSH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

# How the machines are named to the processes that make runs: its file, and the directory of all machine sets.
MACHINES_FILE, MACHINE_SETS = "HOWDAH_MACHINES", "HOWDAH_MACHINE_SETS"


class WireEnd(Protocol):
    """The NIC at an end of a wire."""

    @property
    def name(self) -> str: ...

    @property
    def mac(self) -> str: ...


class RunMachine(Protocol):
    """``role`` is ``sender``, ``emulator`` or ``receiver``. ``interfaces`` are its ends of wires, by the wire's name;
    a wire joins the machines that have it. Methods raise HowdahError when the machine cannot be reached."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def interfaces(self) -> Mapping[str, WireEnd]: ...

    @property
    def kernel_release(self) -> str: ...

    @property
    def accelerator(self) -> str: ...

    def run(
        self, argv: Sequence[str], *, timeout_s: float, data: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end, whatever its status."""
        ...

    def check(self, argv: Sequence[str], *, timeout_s: float, data: bytes | None = None) -> str:
        """The same; its output. Raises HowdahError unless its status is 0."""
        ...

    def get(self, source: str, target: Path) -> None:
        """What a directory of the machine holds into a directory here."""
        ...

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command with three pipes. It ends when its input does."""
        ...


class RunMachineSet(Protocol):
    @property
    def name(self) -> str: ...


class RunFleet(Protocol):
    """All machines, by name, in the order of the machines file. Their clocks run ``dilation`` times slower than
    ours (howdah/machines/qemu.py)."""

    @property
    def machine_set(self) -> RunMachineSet: ...

    @property
    def machines(self) -> Mapping[str, RunMachine]: ...

    @property
    def dilation(self) -> int: ...


def fleet_of_environment() -> RunFleet | None:
    """The machines that the environment names, None without. Raises HowdahError if they are not up."""
    file = os.environ.get(MACHINES_FILE)
    if not file:
        return None
    # Here: no other engine needs what a machines file is read with.
    from howdah.machines.fleet import Fleet

    fleet: RunFleet = Fleet.load(Path(file), Path(os.environ.get(MACHINE_SETS) or "var/machines"))
    return fleet
