# SPDX-License-Identifier: Apache-2.0
"""What the engine needs of a lab and its machines, virtual or not; howdah/lab/fleet.py has those that SSH reaches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

# How the lab is named to the processes that make runs: its file, and the directory in which labs lie.
LAB_FILE, LABS = "HOWDAH_LAB", "HOWDAH_LABS"


class Interface(Protocol):
    """The NIC at an end of a wire."""

    @property
    def name(self) -> str: ...

    @property
    def mac(self) -> str: ...


class Machine(Protocol):
    """``role`` is ``sender``, ``emulator`` or ``receiver``. ``interfaces`` are its ends of wires, by the wire's name;
    a wire joins the machines that have it. Methods raise HowdahError when the machine cannot be reached."""

    @property
    def name(self) -> str: ...

    @property
    def role(self) -> str: ...

    @property
    def interfaces(self) -> Mapping[str, Interface]: ...

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


class Lab(Protocol):
    @property
    def name(self) -> str: ...


class Fleet(Protocol):
    """All machines of a lab, by name, in the order of the lab file. Their clocks run ``dilation`` times slower than
    ours (howdah/lab/dilation.py)."""

    @property
    def lab(self) -> Lab: ...

    @property
    def machines(self) -> Mapping[str, Machine]: ...

    @property
    def dilation(self) -> int: ...


def fleet_of_environment() -> Fleet | None:
    """The lab that the environment names, None without one. Raises HowdahError for a lab that is not up."""
    file = os.environ.get(LAB_FILE)
    if not file:
        return None
    from howdah.lab.fleet import Fleet as SshFleet  # here: no other engine needs what labs are described with

    fleet: Fleet = SshFleet.load(Path(file), Path(os.environ.get(LABS, "var/labs")))
    return fleet
