# SPDX-License-Identifier: Apache-2.0
"""A host of the emulated network: a network namespace under a name that ``ip netns`` knows."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.linux import syscall
from howdah.linux.kernelfile import write_file
from howdah.linux.netlink.link import index_of
from howdah.linux.netlink.message import NetlinkSocket

_DIRECTORY = Path("/run/netns")
_OWN = "/proc/thread-self/ns/net"


def forget(name: str) -> None:
    """Remove a namespace that a killed agent left. Its virtual interfaces end with it, and its NICs return home."""
    path = _DIRECTORY / name
    if path.exists():
        with contextlib.suppress(OSError):  # not mounted if the agent was killed before that
            syscall.unmount(str(path))
        path.unlink()


class Namespace:
    """A network namespace, with its descriptor, an rtnetlink socket inside it, and the indices of its interfaces."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.descriptor = descriptor
        self._indices: dict[str, int] = {}
        with self.entered():
            self.netlink = NetlinkSocket()
            self.any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    @classmethod
    def create(cls, name: str) -> Namespace:
        """Make a new namespace and bind it to /run/netns/NAME, like ``ip netns add NAME``."""
        _DIRECTORY.mkdir(parents=True, exist_ok=True)
        path = _DIRECTORY / name
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            raise OSError(errno.EEXIST, f"there is a network namespace {name} already", str(path)) from None
        home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            syscall.unshare()
            syscall.mount(_OWN, str(path), None, syscall.MS_BIND)
        finally:
            syscall.setns(home)
            os.close(home)
        return cls(name, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def of_process(cls, name: str, process: int) -> Namespace:
        """Return the namespace of a process (a Mininet node), made known to ``ip netns`` under ``name``."""
        _DIRECTORY.mkdir(parents=True, exist_ok=True)
        path = _DIRECTORY / name
        path.touch(exist_ok=False)
        syscall.mount(f"/proc/{process}/ns/net", str(path), None, syscall.MS_BIND)
        return cls(name, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Move this thread into the namespace for the block: whatever it opens there belongs to the namespace."""
        home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            syscall.setns(self.descriptor)
            yield
        finally:
            syscall.setns(home)
            os.close(home)

    def socket(self, kind: int, family: int = socket.AF_INET) -> socket.socket:
        with self.entered():
            return socket.socket(family, kind | socket.SOCK_CLOEXEC)

    def index(self, interface: str) -> int:
        if interface not in self._indices:
            self._indices[interface] = index_of(self.netlink, interface)
        return self._indices[interface]

    def open_file(self, path: str) -> int:
        """Open a file below /proc read-only; it shows this namespace."""
        with self.entered():
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def write_file(self, path: str, value: str) -> None:
        with self.entered():
            write_file(path, value)

    def remove(self) -> None:
        """Remove the name; the namespace itself ends with its last user."""
        self.netlink.close()
        self.any_socket.close()
        os.close(self.descriptor)
        path = _DIRECTORY / self.name
        syscall.unmount(str(path))
        path.unlink()
