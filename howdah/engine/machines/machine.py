# SPDX-License-Identifier: Apache-2.0
"""The engine's interface to several machines, virtual or not; howdah/machines/fleet.py implements it with SSH."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

# Variables that pass the machines file, and the directory of all machine sets, to the processes that make runs.
MACHINES_FILE, MACHINE_SETS = "HOWDAH_MACHINES", "HOWDAH_MACHINE_SETS"


class WireEnd(Protocol):
    """The NIC at one end of a wire."""

    @property
    def name(self) -> str: ...

    @property
    def mac(self) -> str: ...


class RunMachine(Protocol):
    """One machine. ``role`` is ``sender``, ``emulator`` or ``receiver``. ``interfaces`` maps wires to the machine's
    NICs; a wire connects the machines that list it. Methods raise HowdahError if the machine cannot be reached."""

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
        """Run a command and return its output. Raises HowdahError unless its status is 0."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy the content of a directory of the machine into a local directory."""
        ...

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command with three pipes. It ends when its input is closed."""
        ...


class RunMachineSet(Protocol):
    @property
    def name(self) -> str: ...


class RunFleet(Protocol):
    """All machines by name, in the order of the machines file. Their clocks run ``dilation`` times slower than the
    local one (howdah/machines/qemu.py)."""

    @property
    def machine_set(self) -> RunMachineSet: ...

    @property
    def machines(self) -> Mapping[str, RunMachine]: ...

    @property
    def dilation(self) -> int: ...


def fleet_of_environment() -> RunFleet | None:
    """Return the machines that the environment names; None without. Raises HowdahError if they are not up."""
    file = os.environ.get(MACHINES_FILE)
    if not file:
        return None
    # Imported here because no other engine needs the reader of machines files.
    from howdah.machines.fleet import Fleet

    fleet: RunFleet = Fleet.load(Path(file), Path(os.environ.get(MACHINE_SETS) or "var/machines"))
    return fleet
