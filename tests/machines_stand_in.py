# SPDX-License-Identifier: Apache-2.0
"""Several machines that are namespaces of this kernel: processes, wires and NICs are real, clocks and SSH are not.

Needs root. What such a machine cannot do here (netem, settings of the whole kernel, tracing) is taken out of the plan.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from howdah.plan.plan import Plan

PROGRAMS = ("unshare", "nsenter", "ip", "tc", "setpriv")
_CONTAINED = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork"]
_CONTAINED += ["--kill-child=KILL", "--mount-proc"]
_READY = " && ".join(f"mount -t tmpfs tmpfs {place}" for place in ("/run", "/var/tmp", "/var/cache"))
_READY += " && ip link set lo up && exec sleep infinity"


@dataclass(frozen=True)
class Named:
    name: str


@dataclass(frozen=True)
class Nic:
    name: str
    mac: str


@dataclass
class NamespaceMachine:
    """``wires`` is filled when a wire is laid."""

    name: str
    role: str
    kernel_release: str
    process: subprocess.Popen[bytes]
    interfaces: dict[str, Nic] = field(default_factory=dict)
    accelerator: str = "none"

    @property
    def inside(self) -> int:
        """The process whose namespaces they are: the child of unshare."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    def _command(self, argv: Sequence[str]) -> list[str]:
        return ["nsenter", "-t", str(self.inside), "-n", "-m", "-p", *argv]

    def run(
        self, argv: Sequence[str], *, timeout_s: float, data: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._command(argv), input=data, capture_output=True, timeout=timeout_s, check=False, env=_environment()
        )

    def check(self, argv: Sequence[str], *, timeout_s: float, data: bytes | None = None) -> str:
        done = self.run(argv, timeout_s=timeout_s, data=data)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def processes(self, word: str) -> list[int]:
        """Processes of this machine, by their number outside, with a word in their command line."""
        own = Path(f"/proc/{self.inside}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "ns/pid").readlink() == own and word in (entry / "cmdline").read_text():
                    found.append(int(entry.name))
        return found

    def get(self, source: str, target: Path) -> None:
        packed = self.run(["tar", "-C", source, "-cf", "-", "."], timeout_s=30).stdout
        subprocess.run(["tar", "-C", str(target), "-xf", "-"], input=packed, check=True)

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command(argv), stdin=pipe, stdout=pipe, stderr=pipe, env=_environment())


@dataclass
class NamespaceFleet:
    machines: dict[str, NamespaceMachine]
    machine_set: Named = field(default_factory=lambda: Named("stand-in"))
    dilation: int = 1


def _environment() -> dict[str, str]:
    """The interpreter of these tests is the machine's python3."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def needs_machines() -> None:
    """Skip where such machines cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("namespaces of a machine's own need root")
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")
    tried = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "name", "va", "type", "veth"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"no veth pairs here: {tried.stderr.decode().strip()}")


@contextlib.contextmanager
def fleet(roles: dict[str, str], wires: dict[str, tuple[str, str]]) -> Iterator[NamespaceFleet]:
    """Machines by name with their roles, joined by wires; all of it ends with the block."""
    machines: dict[str, NamespaceMachine] = {}
    with contextlib.ExitStack() as stack:
        for name, role in roles.items():
            process = subprocess.Popen(
                [*_CONTAINED, "sh", "-c", _READY],
            )
            stack.callback(_end, process)
            machines[name] = NamespaceMachine(name, role, f"6.{len(machines)}.0-test", process)
        for name, machine in machines.items():
            _await(machine, name)
        for wire, ends in wires.items():
            _lay(wire, *(machines[end] for end in ends))
        yield NamespaceFleet(machines)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def _await(machine: NamespaceMachine, name: str) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError, IndexError):
            if Path(f"/proc/{machine.inside}/comm").read_text().strip() == "sleep":
                return
        time.sleep(0.02)
    raise RuntimeError(f"the machine {name} did not start")


def _lay(wire: str, one: NamespaceMachine, other: NamespaceMachine) -> None:
    ends = []
    for number, machine in enumerate((one, other)):
        mac = f"02:aa:{len(one.interfaces):02x}:{len(other.interfaces):02x}:{number:02x}:01"
        ends.append(["name", wire, "address", mac, "netns", str(machine.inside)])
    subprocess.run(["ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1]], check=True)
    for machine, end in ((one, ends[0]), (other, ends[1])):
        machine.interfaces[wire] = Nic(wire, end[3])


def for_namespaces(plan: Plan) -> Plan:
    """Without what the machines here cannot do."""
    kept = [
        item
        for item in plan.operations
        if item.arguments().get("kind") != "netem"
        and item.op != "module_parameter"
        and not (item.op == "sysctl" and item.arguments()["node"] is None)
    ]
    collect = dataclasses.replace(plan.collect, tcp_probe=False, slow_start=False)
    return dataclasses.replace(plan, operations=kept, collect=collect, required_modules=[])
