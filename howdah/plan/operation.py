# SPDX-License-Identifier: Apache-2.0
"""Operations that create nodes, links, addresses, routes and settings. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from howdah.codec import OCCASIONAL, planned
from howdah.linux.kernelfile import sysctl_path
from howdah.linux.netlink.discipline.discipline import Words
from howdah.linux.netlink.ethtool import set_offload
from howdah.linux.netlink.link import (
    add_address,
    add_neighbour,
    create_veth,
    set_gso_max_segs,
    set_mtu,
    set_queue_length,
    set_up,
)
from howdah.linux.netlink.route import RTAX_INITCWND, RTAX_INITRWND, RTAX_QUICKACK, add_route
from howdah.plan.step import BuiltNetwork, Operation

if TYPE_CHECKING:
    from howdah.linux.netlink.message import NetlinkSocket


def _in(node: str) -> Words:
    return ["ip", "netns", "exec", node]


@planned
class Sysctl(Operation):
    """Sets a sysctl of a node, or of the whole kernel if `node` is null."""

    op: ClassVar[str] = "sysctl"
    node: str | None
    name: str
    value: str

    def commands(self) -> list[Words]:
        command: Words = ["sysctl", "-w", f"{self.name}={self.value}"]
        return [command if self.node is None else [*_in(self.node), *command]]

    def apply(self, to: BuiltNetwork) -> None:
        if self.node is None:
            to.settings.write(Path(sysctl_path(self.name)), self.value)
        else:
            to.namespaces[self.node].write_file(sysctl_path(self.name), self.value)


@planned
class ModuleParameter(Operation):
    """Writes to `/sys/module/MODULE/parameters/NAME`."""

    op: ClassVar[str] = "module_parameter"
    module: str
    name: str
    value: str

    def commands(self) -> list[Words]:
        return [["echo", self.value, ">", f"/sys/module/{self.module}/parameters/{self.name}"]]

    def apply(self, to: BuiltNetwork) -> None:
        to.settings.parameter(self.module, self.name, self.value)


@planned
class Node(Operation):
    """A network namespace. A `router` forwards."""

    op: ClassVar[str] = "node"
    name: str
    router: bool

    def commands(self) -> list[Words]:
        commands: list[Words] = [["ip", "netns", "add", self.name]]
        if self.router:
            commands.append([*_in(self.name), "sysctl", "-w", "net.ipv4.ip_forward=1"])
        return commands

    def apply(self, to: BuiltNetwork) -> None:
        from howdah.linux.namespace import Namespace

        namespace = to.namespaces[self.name] = Namespace.create(self.name)
        if self.router:
            namespace.write_file(sysctl_path("net.ipv4.ip_forward"), "1")


@planned
class VethLink(Operation):
    """A veth pair. Both ends come up later."""

    op: ClassVar[str] = "link"
    a_node: str
    a_interface: str
    a_mac: str
    b_node: str
    b_interface: str
    b_mac: str

    @property
    def ends(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Node and interface of both ends."""
        return (self.a_node, self.a_interface), (self.b_node, self.b_interface)

    def commands(self) -> list[Words]:
        near: Words = [self.a_interface, "address", self.a_mac, "netns", self.a_node]
        far: Words = ["name", self.b_interface, "address", self.b_mac, "netns", self.b_node]
        return [["ip", "link", "add", *near, "type", "veth", "peer", *far]]

    def apply(self, to: BuiltNetwork) -> None:
        ends = (self.a_interface, self.a_mac, self.b_interface, self.b_mac)
        create_veth(to.namespaces[self.a_node].netlink, *ends, to.namespaces[self.b_node].descriptor)


@planned
class OfInterface:
    """A step at an interface of a node."""

    node: str
    interface: str

    @property
    def at(self) -> tuple[str, str]:
        """Node and interface."""
        return self.node, self.interface

    def found(self, to: BuiltNetwork) -> tuple[NetlinkSocket, int]:
        """Return the node's netlink socket and the index of the interface there."""
        namespace = to.namespaces[self.node]
        return namespace.netlink, namespace.index(self.interface)

    def _set(self, *words: str | int) -> list[Words]:
        return [["ip", "-n", self.node, "link", "set", "dev", self.interface, *words]]


@planned
class Adopt(OfInterface, Operation):
    """In one machine's part of a plan, replaces a `link` to another machine. The NIC with the permanent address
    `nic_mac`, or its VLAN with the 802.1Q `tag` (null: none), becomes the interface, with address `mac`. Without `ipv6`
    the node has no IPv6."""

    op: ClassVar[str] = "adopt"
    mac: str
    nic_mac: str
    tag: int | None
    ipv6: bool

    def commands(self) -> list[Words]:
        """NIC stands for the machine's own name of the NIC with that address."""
        if self.tag is None:
            given: Words = ["ip", "link", "set", "dev", "NIC", "down", "name", self.interface]
        else:
            given = ["ip", "link", "add", "link", "NIC", "name", self.interface, "type", "vlan", "id", self.tag]
        set_: Words = ["ip", "link", "set", "dev", self.interface, "address", self.mac, "netns", self.node]
        return [["ip", "link", "show", "permaddr", self.nic_mac], given, set_]

    def apply(self, to: BuiltNetwork) -> None:
        to.adopt(self.node, self.interface, self.mac, self.nic_mac, self.tag, ipv6=self.ipv6)


@planned
class Mtu(OfInterface, Operation):
    """Sets the largest packet."""

    op: ClassVar[str] = "mtu"
    mtu_bytes: int

    def commands(self) -> list[Words]:
        return self._set("mtu", self.mtu_bytes)

    def apply(self, to: BuiltNetwork) -> None:
        set_mtu(*self.found(to), self.mtu_bytes)


@planned
class Offload(OfInterface, Operation):
    """Switches `feature`: `tso`, `gso`, `gro`, `lro` or another that ethtool knows."""

    op: ClassVar[str] = "offload"
    feature: str
    enabled: bool

    def commands(self) -> list[Words]:
        return [[*_in(self.node), "ethtool", "-K", self.interface, self.feature, "on" if self.enabled else "off"]]

    def apply(self, to: BuiltNetwork) -> None:
        set_offload(to.namespaces[self.node].any_socket, self.interface, self.feature, self.enabled)


@planned
class Gso(OfInterface, Operation):
    """Sets the most segments of a packet that is segmented below the stack."""

    op: ClassVar[str] = "gso"
    gso_max_segs: int

    def commands(self) -> list[Words]:
        return self._set("gso_max_segs", self.gso_max_segs)

    def apply(self, to: BuiltNetwork) -> None:
        set_gso_max_segs(*self.found(to), self.gso_max_segs)


@planned
class QueueLength(OfInterface, Operation):
    """Sets the limit of a queue without a limit of its own."""

    op: ClassVar[str] = "txqueuelen"
    packets: int

    def commands(self) -> list[Words]:
        return self._set("txqueuelen", self.packets)

    def apply(self, to: BuiltNetwork) -> None:
        set_queue_length(*self.found(to), self.packets)


@planned
class Address(OfInterface, Operation):
    """Adds an `address` such as `10.1.1.1/24`, with the network's broadcast address, as Mininet does."""

    op: ClassVar[str] = "address"
    address: str

    def commands(self) -> list[Words]:
        return [["ip", "-n", self.node, "address", "add", self.address, "broadcast", "+", "dev", self.interface]]

    def apply(self, to: BuiltNetwork) -> None:
        add_address(*self.found(to), self.address)


@planned
class Up(OfInterface, Operation):
    """Brings the interface up, which may be `lo`."""

    op: ClassVar[str] = "up"

    def commands(self) -> list[Words]:
        return self._set("up")

    def apply(self, to: BuiltNetwork) -> None:
        set_up(*self.found(to))


@planned
class AddRoute(Operation):
    """`destination` is `default` or a prefix. An initial window is null if the route sets none. `quick_ack` is 1 if
    ACKs are sent at once, and else left out."""

    op: ClassVar[str] = "route"
    METRICS: ClassVar[Mapping[str, int]] = {
        "initial_window_packets": RTAX_INITCWND,
        "initial_receive_window_packets": RTAX_INITRWND,
        "quick_ack": RTAX_QUICKACK,
    }
    node: str
    destination: str
    via: str
    interface: str
    initial_window_packets: int | None = None
    initial_receive_window_packets: int | None = None
    quick_ack: int = field(default=0, metadata=OCCASIONAL)

    @property
    def metrics(self) -> dict[str, int]:
        """The metrics that the route sets, by name."""
        return {name: value for name in self.METRICS if (value := getattr(self, name))}

    def commands(self) -> list[Words]:
        verb = "replace" if self.quick_ack else "add"  # Mininet already made the default route
        words: Words = ["ip", "-n", self.node, "route", verb, self.destination, "via", self.via, "dev", self.interface]
        words += [word for name, value in self.metrics.items() for word in (_METRIC_WORDS[name], value)]
        return [words]

    def apply(self, to: BuiltNetwork) -> None:
        namespace = to.namespaces[self.node]
        values = {self.METRICS[name]: value for name, value in self.metrics.items()}
        add_route(namespace.netlink, namespace.index(self.interface), self.destination, self.via, values)


_METRIC_WORDS = dict(zip(AddRoute.METRICS, ("initcwnd", "initrwnd", "quickack"), strict=True))


@planned
class Neighbour(OfInterface, Operation):
    """A permanent entry, so that a run has no ARP packets."""

    op: ClassVar[str] = "neighbour"
    address: str
    mac: str

    def commands(self) -> list[Words]:
        entry: Words = [self.address, "lladdr", self.mac, "nud", "permanent", "dev", self.interface]
        return [["ip", "-n", self.node, "neighbour", "add", *entry]]

    def apply(self, to: BuiltNetwork) -> None:
        add_neighbour(*self.found(to), self.address, self.mac)
