# SPDX-License-Identifier: Apache-2.0
"""Adoption of a machine's NICs as interfaces of its hosts during a run; afterwards each NIC is restored as it was."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from dataclasses import dataclass

from howdah.linux.namespace import Namespace
from howdah.linux.netlink.link import (
    LinkState,
    create_vlan,
    delete_link,
    links,
    move,
    set_down,
    set_mac,
    set_mtu,
    set_name,
    set_up,
)
from howdah.linux.netlink.message import NetlinkSocket

_RETURN_S, _POLL_S = 3.0, 0.1
_OWN = "/proc/thread-self/ns/net"


@dataclass
class _Adopted:
    """An adopted interface. ``before`` is the NIC's original state; ``tagged``: the interface is a VLAN on it; ``host``
    is set once the interface is inside."""

    before: LinkState
    tagged: bool
    host: Namespace | None = None


class Adoption:
    """All interfaces that one agent has adopted; ``give_back`` may be called at any time, and repeatedly."""

    def __init__(self) -> None:
        self._home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        self._netlink = NetlinkSocket()
        self._adopted: dict[str, _Adopted] = {}
        self._brought_up: list[LinkState] = []

    def prepare(self, interface: str, mac: str, nic_mac: str, tag: int | None) -> None:
        """Give the NIC with the permanent address ``nic_mac`` the plan's name and address, in its own namespace.

        A killed run leaves its name and address on the NIC, so the NIC is found by its permanent address. Raises
        OSError (ENODEV) for an unknown address.
        """
        nic = self._wait_for_nic(nic_mac)
        if tag is not None:
            self._bring_up(nic)
            with contextlib.suppress(OSError):
                delete_link(self._netlink, _index(self._netlink, interface))
            create_vlan(self._netlink, nic.index, tag, interface)
            self._adopted[interface] = _Adopted(nic, tagged=True)
            set_mac(self._netlink, _index(self._netlink, interface), mac)
            return
        set_down(self._netlink, nic.index)
        self._adopted[interface] = _Adopted(nic, tagged=False)
        set_name(self._netlink, nic.index, interface)
        set_mac(self._netlink, nic.index, mac)

    def _bring_up(self, nic: LinkState) -> None:
        if not nic.up:
            set_up(self._netlink, nic.index)
            self._brought_up.append(nic)

    def _wait_for_nic(self, mac: str) -> LinkState:
        deadline = time.monotonic() + _RETURN_S
        while (found := self._nic_with(mac)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)  # the NIC of a host that has just ended returns a little later
        if found is None:
            there = links(self._netlink)
            has = ", ".join(f"{link.name} {link.permanent_mac or link.mac}" for link in there if link.name != "lo")
            raise OSError(errno.ENODEV, f"no NIC has the address {mac} (there are {has})")
        return found

    def _nic_with(self, mac: str) -> LinkState | None:
        found = links(self._netlink)
        # Interfaces on a NIC share its address, but only the NIC has it as its permanent address.
        for name in ("permanent_mac", "mac"):
            for link in found:
                if getattr(link, name) == mac.lower():
                    return link
        return None

    def move(self, host: Namespace, interface: str) -> None:
        move(self._netlink, _index(self._netlink, interface), host.descriptor, interface)

    def note_host(self, host: Namespace, interface: str) -> None:
        """Record that the interface is now in the host, whoever moved it. Raises OSError if it is not."""
        host.index(interface)
        self._adopted[interface].host = host

    def give_back(self) -> None:
        """Return all NICs. Report each that cannot be returned (one was unplugged) and continue with the others."""
        for interface, taken in self._adopted.items():
            try:
                if taken.tagged:
                    self._remove_tagged(interface, taken)
                else:
                    self._give_back(interface, taken)
            except OSError as error:
                sys.stderr.write(f"howdah-agent: {interface} ({taken.before.name}) is not given back: {error}\n")
        for nic in self._brought_up:
            with contextlib.suppress(OSError):
                set_down(self._netlink, nic.index)
        self._adopted.clear()
        self._brought_up.clear()
        self._netlink.close()
        os.close(self._home)

    def _remove_tagged(self, interface: str, taken: _Adopted) -> None:
        netlink = taken.host.netlink if taken.host else self._netlink
        with contextlib.suppress(OSError):
            delete_link(netlink, _index(netlink, interface))

    def _give_back(self, interface: str, taken: _Adopted) -> None:
        """Move a NIC home and restore its name, address, MTU and state; its queues end with the host."""
        if taken.host is not None:
            index = taken.host.index(interface)
            set_down(taken.host.netlink, index)
            move(taken.host.netlink, index, self._home, interface)
        index = _index(self._netlink, interface)
        set_mac(self._netlink, index, taken.before.permanent_mac or taken.before.mac)
        set_mtu(self._netlink, index, taken.before.mtu_bytes)
        with contextlib.suppress(OSError):  # if the name is taken, the NIC keeps the plan's name
            set_name(self._netlink, index, taken.before.name)
        if taken.before.up:
            set_up(self._netlink, index)


def _index(netlink: NetlinkSocket, interface: str) -> int:
    for link in links(netlink):
        if link.name == interface:
            return link.index
    raise OSError(errno.ENODEV, f"there is no interface {interface}")
