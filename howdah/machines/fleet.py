# SPDX-License-Identifier: Apache-2.0
"""Several machines ready for use, each with its role, its SSH route and its interfaces.

They come from the machines file and, if they are virtual, from the state that ``howdah machines up`` has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess, Popen

from howdah.errors import HowdahError
from howdah.machines.inventory import MachineSetDirectory, directory_of
from howdah.machines.machine_set import MachineSet, load_machine_set
from howdah.machines.ssh import SshRoute
from howdah.machines.state import MachineSetState, MachineState, read_state

_SHORT_S = 60.0


@dataclass(frozen=True)
class MachineInterface:
    """An end of a wire on its machine."""

    wire: str
    name: str
    mac: str


@dataclass
class Machine:
    """One machine with Linux. Methods raise HowdahError if it cannot be reached."""

    name: str
    role: str  # sender, emulator, receiver
    route: SshRoute
    wires: dict[str, str]  # wire to interface
    state: MachineState | None = field(default=None)  # None for a real machine

    def run(
        self, argv: Sequence[str], *, timeout_s: float = _SHORT_S, data: bytes | None = None
    ) -> CompletedProcess[bytes]:
        """Run a program to its end, whatever its status; ``data`` is its standard input."""
        return self.route.run(argv, timeout_s=timeout_s, data=data)

    def check(self, argv: Sequence[str], *, timeout_s: float = _SHORT_S, data: bytes | None = None) -> str:
        """Run a program and return its standard output. Raises HowdahError with its last lines on failure."""
        done = self.run(argv, timeout_s=timeout_s, data=data)
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()[-5:]
            raise HowdahError(f"{argv[0]} ended with status {done.returncode}: {' / '.join(said)}", where=self.name)
        return done.stdout.decode(errors="replace")

    def spawn(self, argv: Sequence[str]) -> Popen[bytes]:
        """Start a program with three pipes. It must end when its standard input is closed."""
        return self.route.spawn(argv)

    def put(self, source: Path, target: str) -> None:
        """Copy a file to a path, or the content of a directory into a directory, on that machine."""
        self.route.put(source, target)

    def get(self, source: str, target: Path) -> None:
        """Copy the content of a directory of that machine into a local directory."""
        self.route.get(source, target)

    @cached_property
    def kernel_release(self) -> str:
        return self.check(["uname", "-r"]).strip()

    @cached_property
    def interfaces(self) -> dict[str, MachineInterface]:
        """Interfaces by wire. Raises HowdahError for one that the machine lacks."""
        found = {}
        for wire, name in self.wires.items():
            place = f"/sys/class/net/{name}/address"
            mac = self.state.macs[wire] if self.state else self.check(["cat", place]).strip()
            found[wire] = MachineInterface(wire, name, mac)
        return found

    @property
    def accelerator(self) -> str:
        """``tcg`` or ``kvm``; ``none`` for a real machine, as far as is known here."""
        return self.state.accelerator if self.state else "none"

    @property
    def modules_left_out(self) -> dict[str, str]:
        """Modules of the project that do not build for its kernel, with the compiler's message."""
        return self.state.modules_left_out if self.state else {}


@dataclass
class Fleet:
    """All machines that run Linux, by name, in the order of the machines file."""

    machine_set: MachineSet
    directory: MachineSetDirectory
    machines: dict[str, Machine]
    state: MachineSetState | None

    @classmethod
    def load(cls, file: Path, machine_sets: Path = Path("var/machines")) -> Fleet:
        """Load a machines file. Raises ProfileError for a wrong file, HowdahError if virtual machines are down."""
        machine_set = load_machine_set(file)
        return cls.of(machine_set, directory_of(machine_set, machine_sets))

    @classmethod
    def of(cls, machine_set: MachineSet, directory: MachineSetDirectory) -> Fleet:
        state = read_state(directory.state) if machine_set.virtual is not None else None
        if machine_set.virtual is not None:
            down = [name for name in machine_set.hosts if state is None or name not in state.alive()]
            if down:
                do = "does" if len(down) == 1 else "do"
                raise HowdahError(
                    f"the machine set {machine_set.name} is not up: {', '.join(down)} {do} not run",
                    where=str(directory.path),
                    hint="'howdah machines up FILE' starts it.",
                )
        machines = {}
        for name, host in machine_set.hosts.items():
            own = state.machines[name] if state else None
            assert host.address is not None
            port = own.port if own else host.ssh_port
            route = SshRoute(
                name, host.address, port, host.user, directory.path, accept_new=host.image is not None or own is None
            )
            if host.system == "linux":
                machines[name] = Machine(name, host.role, route, machine_set.interfaces(name), own)
        return cls(machine_set, directory, machines, state)

    @property
    def dilation(self) -> int:
        """The factor by which the machines' clocks are slowed down; 1 for real machines."""
        return self.state.dilation if self.state else 1

    def close(self) -> None:
        """Close persistent connections."""
        for machine in self.machines.values():
            machine.route.close()
