# SPDX-License-Identifier: Apache-2.0
"""A machine of a cluster as namespaces: its network can be cut and its disk be full. Also for those who are not root.

Everything runs within one network and mount namespace (``inside``): each island has a network of its own at the end
of a wire, and a small file system of memory for its cache.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

MIDDLE = "10.77.0.1"  # of scheduler and client, reached from every island
_DISK = "size=700m,nr_inodes=200000"


def inside(module: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs a module of this Python in namespaces in which islands can be made."""
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    isolate = ["unshare", "--net", "--mount", "--propagation", "private", *own]
    return [*isolate, sys.executable, "-m", module, *arguments]


def islands_missing() -> str | None:
    """Why no islands can be made here; None where they can."""
    own = [] if os.geteuid() == 0 else ["--map-root-user"]
    script = "mount -t tmpfs none /mnt && ip link add name wire0 type veth peer name wire9"
    probe = ["unshare", "--net", "--mount", "--propagation", "private", *own, "sh", "-c", script]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return f"the program {error.filename} is not installed"
    return None if done.returncode == 0 else f"no namespaces with wires here: {done.stderr.strip()}"


def make_middle() -> None:
    """Once, before the first island."""
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "address", "add", f"{MIDDLE}/32", "dev", "lo")
    with contextlib.suppress(OSError):  # without it workers do not reach each other, and ask the client
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


class Island:
    """Number ``number`` from 1, whose cache is ``cache``."""

    def __init__(self, number: int, cache: Path) -> None:
        self.wire = f"wire{number}"
        self.address = f"10.77.{number}.2"
        self.cache = cache
        hold = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
        self._holder = subprocess.Popen(hold, cwd="/")
        own = Path("/proc/self/ns/net").readlink()
        while Path(f"/proc/{self._holder.pid}/ns/net").readlink() == own:
            if self._holder.poll() is not None:
                raise AssertionError("the namespace of an island ended at once")
        end = f"10.77.{number}.1"
        _call("ip", "link", "add", self.wire, "type", "veth", "peer", "name", "eth0", "netns", str(self._holder.pid))
        _call("ip", "address", "add", f"{end}/24", "dev", self.wire)
        _call("ip", "link", "set", self.wire, "up")
        for words in (
            ["link", "set", "lo", "up"],
            ["address", "add", f"{self.address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["route", "add", "default", "via", end],
        ):
            _call(*self.enter(["ip", *words]))
        cache.mkdir(parents=True, exist_ok=True)
        _call("mount", "-t", "tmpfs", "-o", _DISK, "none", str(cache))

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command on the island."""
        return ["nsenter", "-t", str(self._holder.pid), "--net", "--", *command]

    def cut(self) -> None:
        """Nothing comes through any more; connections are neither closed nor refused."""
        _call("ip", "link", "set", self.wire, "down")

    def join(self) -> None:
        """The wire is whole again."""
        _call("ip", "link", "set", self.wire, "up")

    def fill(self) -> None:
        """The disk has no room any more."""
        with self._ballast.open("wb") as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * (1 << 20))
                file.flush()

    def empty(self) -> None:
        """The disk has room again."""
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.cache / ".ballast"

    def end(self) -> None:
        self._holder.kill()
        self._holder.wait()
        with contextlib.suppress(subprocess.CalledProcessError):
            _call("umount", "--lazy", str(self.cache))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
