# SPDX-License-Identifier: Apache-2.0
"""Wires made of this machine's kernel: bridges between the taps of each wire's ends, in a separate network namespace.

Only root can make them. They have no connection to this machine, no address, no route and no packet filter. To see what
a wire carries: ``ip netns exec NAMESPACE tcpdump -i WIRE``.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import json
import os
import struct
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from howdah.distribution import installing
from howdah.errors import EngineUnavailableError, HowdahError

_TUN = Path("/dev/net/tun")
_NAMESPACES = Path("/run/netns")
# linux/if_tun.h. Without IFF_VNET_HDR the guest is offered no offloading, so frames are as long as on a cable.
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_REQUEST = struct.Struct("16sH22x")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
# Queue for the time in which QEMU does not run: half a second at 240 Mbit/s. A lost frame makes a run invalid.
_QUEUE_PACKETS = 10_000
_MTU_BYTES = 65_521  # a tap's maximum; the machines choose their own
# Forward link-local frames (IEEE 802.1D, table 7-10), except the three kinds that no bridge may forward.
_LINK_LOCAL = 0xFFF8


@dataclass(frozen=True)
class TapNetwork:
    """The wires of one machine set, identified by its directory: two sets of the same name do not interfere."""

    machine_set: str
    directory: Path

    @property
    def namespace(self) -> str:
        return f"howdah-{self.machine_set}-{hashlib.sha256(str(self.directory.resolve()).encode()).hexdigest()[:8]}"

    def make(self, wires: Sequence[str]) -> None:
        """Make a bridge for each wire. Raises HowdahError after removing what was made."""
        remove(self.namespace)  # left by a howdah that was killed before it recorded the namespace
        _ip("netns", "add", self.namespace)
        try:
            # The bridges are wires and must not send anything themselves.
            self._silence()
            for wire in wires:
                # Without learned addresses a bridge forwards everything to the other end.
                quiet = ["ageing_time", "0", "mcast_snooping", "0", "group_fwd_mask", str(_LINK_LOCAL)]
                self._ip("link", "add", wire, "type", "bridge", *quiet)
                self._ip("link", "set", wire, "up")
        except BaseException:
            remove(self.namespace)
            raise

    def tap(self, wire: str, host: str) -> int:
        """Make a tap at ``wire`` for a host; return its descriptor. The tap lasts until the last process closes it."""
        name = "tap-" + hashlib.sha256(f"{wire} {host}".encode()).hexdigest()[:8]
        try:
            with ThreadPoolExecutor(max_workers=1) as thread:  # network namespaces are per thread
                descriptor = thread.submit(_open_tap, self.namespace, name).result()
        except OSError as error:
            raise HowdahError(f"no tap can be made: {error.strerror}", where=str(error.filename or _TUN)) from error
        try:
            own = ["alias", host, "mtu", str(_MTU_BYTES), "txqueuelen", str(_QUEUE_PACKETS)]
            self._ip("link", "set", name, *own, "master", wire, "up")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _silence(self) -> None:
        switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
        if switch.exists():
            _run(["ip", "netns", "exec", self.namespace, "tee", str(switch)], "1\n")

    def _ip(self, *arguments: str) -> str:
        return _ip("-n", self.namespace, *arguments)


def _open_tap(namespace: str, name: str) -> int:
    """Open a tap; it is made in the network namespace of the calling thread. Raises OSError."""
    place = os.open(_NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(place, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(_NAMESPACES / namespace))
    finally:
        os.close(place)
    descriptor = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _TUNSETIFF, _REQUEST.pack(name.encode(), _IFF_TAP | _IFF_NO_PI))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require() -> None:
    """Raise EngineUnavailableError unless this process may make taps."""
    hint = "Without 'taps: true' the machines file needs neither: wires are sockets then."
    if os.geteuid() != 0:
        raise EngineUnavailableError("wires by taps need root", hint=hint)
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise EngineUnavailableError(f"this machine has no taps: {_TUN}: {error.strerror}", hint=hint) from None


def lost_frames(namespace: str) -> dict[str, int]:
    """Return the frames lost at taps so far, by ``WIRE to HOST``, because the machine did not read them in time.

    Raises HowdahError without permission to look.
    """
    found = {}
    for link in json.loads(_ip("-n", namespace, "-s", "-json", "link", "show")):
        if "master" in link:
            counted = link["stats64"]
            dropped = counted["tx"]["dropped"] + counted["rx"]["dropped"]
            found[f"{link['master']} to {link.get('ifalias', '?')}"] = int(dropped)
    return found


def remove(namespace: str) -> bool:
    """Remove the namespace with its interfaces; return whether it existed."""
    if not (_NAMESPACES / namespace).exists():
        return False
    _ip("netns", "delete", namespace)
    return True


def _ip(*arguments: str) -> str:
    return _run(["ip", *arguments])


def _run(command: Sequence[str], data: str = "") -> str:
    try:
        done = subprocess.run(command, input=data, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngineUnavailableError("the program ip is missing", hint=installing("iproute2")) from None
    if done.returncode:
        words = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
        raise HowdahError(f"'{' '.join(command)}' failed: {words}")
    return done.stdout
