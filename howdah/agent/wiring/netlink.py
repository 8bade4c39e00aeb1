# SPDX-License-Identifier: Apache-2.0
"""Applies a plan's operations over netlink, in order; the first one the kernel refuses ends the run."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.settings import Settings
from howdah.agent.wiring.adoption import Adoption
from howdah.linux.namespace import Namespace
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.discipline import class_made, discipline, made
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.linux.netlink.ethtool import set_offload
from howdah.linux.netlink.filter import add_filter
from howdah.linux.netlink.link import (
    add_address,
    add_neighbour,
    create_veth,
    set_gso_max_segs,
    set_mtu,
    set_queue_length,
    set_up,
)
from howdah.linux.netlink.police import add_policer
from howdah.linux.netlink.route import RTAX_INITCWND, RTAX_INITRWND, RTAX_QUICKACK, add_route
from howdah.plan.step import Event, Operation

Arguments = dict[str, Any]
_SHOWN_LETTERS = 100
_CHANGES: dict[str, Callable[..., None]] = {
    "qdisc": qdisc.change_qdisc,
    "replace": qdisc.replace_qdisc,
    "class": qdisc.change_class,
}

ROUTE_METRICS = {
    "initial_window_packets": RTAX_INITCWND,
    "initial_receive_window_packets": RTAX_INITRWND,
    "quick_ack": RTAX_QUICKACK,
}


def describe(operation: Operation) -> str:
    """An operation in one line, as error messages name it."""
    arguments = " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(_shown(value))}"
        for name, value in operation.arguments.items()
    )
    return f"{operation.op} {arguments}"


def _shown(value: Any) -> Any:
    """Without the many numbers that an option may hold, packed into a text."""
    if not isinstance(value, dict):
        return value
    return {
        name: f"{each[:_SHOWN_LETTERS]}…" if isinstance(each, str) and len(each) > _SHOWN_LETTERS else each
        for name, each in value.items()
    }


def sysctl_path(name: str) -> str:
    return "/proc/sys/" + name.replace(".", "/")


def without_ipv6(namespace: Namespace) -> None:
    """Its router solicitations and multicast reports are packets that nobody planned. A kernel may lack it."""
    for place in ("all", "default"):
        path = Path(sysctl_path(f"net.ipv6.conf.{place}.disable_ipv6"))
        if path.exists():
            namespace.write_file(str(path), "1")


def _too_old(operation: Operation, error: OSError) -> str:
    """What to do where a kernel has no queue of the kind."""
    kind = discipline(operation.queue.kind) if operation.queue is not None else None
    since = kind.since if kind is not None and issubclass(kind, HopQueue) and error.errno == errno.ENOENT else ()
    words = f": Linux has it since {'.'.join(map(str, since))}; a profile has it with kernel: debian-newest"
    return words if since else ""


def _of_interface(change: Callable[..., None]) -> Callable[..., None]:
    """The operation that is ``change(netlink, index, **arguments)`` of an interface of a host."""

    def apply(self: NetlinkWiring, node: str, interface: str, **arguments: Any) -> None:
        namespace = self.namespaces[node]
        change(namespace.netlink, namespace.index(interface), **arguments)

    return apply


class NetlinkWiring:
    """``namespaces`` holds the hosts made so far, by name; ``settings`` are those of the whole kernel."""

    _mtu = _of_interface(set_mtu)
    _gso = _of_interface(set_gso_max_segs)
    _txqueuelen = _of_interface(set_queue_length)
    _address = _of_interface(add_address)
    _up = _of_interface(set_up)
    _neighbour = _of_interface(add_neighbour)
    _filter = _of_interface(add_filter)
    _police = _of_interface(add_policer)

    def __init__(self, settings: Settings | None = None) -> None:
        self.namespaces: dict[str, Namespace] = {}
        self.settings = settings or Settings()
        self._adoption: Adoption | None = None

    def apply(self, operations: list[Operation]) -> None:
        """Raises AgentError that names the operation, its number and the kernel's own words."""
        for number, operation in enumerate(operations):
            self.apply_one(f"operation {number}", operation)

    def apply_one(self, label: str, operation: Operation) -> None:
        method = getattr(self, f"_{operation.op}", None)
        text = f"{label} ({describe(operation)})"
        if method is None:
            raise AgentError(text, "this agent knows no such operation")
        try:
            method(**operation.arguments)
        except OSError as error:
            raise AgentError(text, (error.strerror or str(error)) + _too_old(operation, error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise AgentError(text, f"bad arguments: {error}") from error

    def change(self, label: str, event: Event) -> None:
        """A change of path at a time of the timeline: ``qdisc`` or ``class``, in place, packets stay queued; or
        ``replace``, a new queue."""
        method = self._class if event.op == "class" else self._qdisc
        try:
            method(**event.arguments, do=_CHANGES[event.op])
        except OSError as error:
            text = f"{label} ({describe(Operation(event.op, event.arguments))})"
            raise AgentError(text, error.strerror or str(error)) from error

    def follow(self, label: str, began_ns: int, node: str, interface: str, handle: str, follows: bool) -> None:
        """A link follows its trace, which began then, or has its constant rate again; packets stay queued."""
        from howdah.linux.netlink.discipline.howdah_link import TraceLink, begin, end

        namespace = self.namespaces[node]
        message = begin(began_ns) if follows else end()
        try:
            qdisc.ask_qdisc(namespace.netlink, namespace.index(interface), "root", handle, TraceLink.kind, message)
        except OSError as error:
            raise AgentError(f"{label} (link)", error.strerror or str(error)) from error

    def remove(self) -> None:
        """Give back what was adopted and forget the hosts; the kernel takes their interfaces down with them."""
        if self._adoption is not None:
            self._adoption.give_back()
        for namespace in self.namespaces.values():
            namespace.remove()
        self.namespaces.clear()

    def _node(self, name: str, router: bool = False, **_informative: Any) -> None:
        namespace = Namespace.create(name)
        self.namespaces[name] = namespace
        if router:
            namespace.write_file(sysctl_path("net.ipv4.ip_forward"), "1")

    def _sysctl(self, node: str | None, name: str, value: Any) -> None:
        if node is None:
            self.settings.write(Path(sysctl_path(name)), str(value))
        else:
            self.namespaces[node].write_file(sysctl_path(name), str(value))

    def _link(
        self,
        a_node: str,
        a_interface: str,
        a_mac: str | None,
        b_node: str,
        b_interface: str,
        b_mac: str | None,
    ) -> None:
        peer = self.namespaces[b_node].descriptor
        create_veth(self.namespaces[a_node].netlink, a_interface, a_mac, b_interface, b_mac, peer)

    def _adopt(self, node: str, interface: str, mac: str, nic_mac: str, tag: int | None, ipv6: bool) -> None:
        if self._adoption is None:
            self._adoption = Adoption()
        if not ipv6:
            without_ipv6(self.namespaces[node])
        self._adoption.prepare(interface, mac, nic_mac, tag)
        self._enter(node, interface)
        self._adoption.entered(self.namespaces[node], interface)

    def _enter(self, node: str, interface: str) -> None:
        """Move an interface of the machine into a host."""
        assert self._adoption is not None
        self._adoption.move(self.namespaces[node], interface)

    def _offload(self, node: str, interface: str, feature: str, enabled: bool) -> None:
        set_offload(self.namespaces[node].any_socket, interface, feature, enabled)

    def _route(
        self, node: str, destination: str, via: str | None = None, interface: str | None = None, **metrics: int | None
    ) -> None:
        namespace = self.namespaces[node]
        index = None if interface is None else namespace.index(interface)
        values = {ROUTE_METRICS[name]: int(value) for name, value in metrics.items() if value is not None}
        add_route(namespace.netlink, index, destination, via, values)

    def _qdisc(
        self,
        node: str,
        interface: str,
        parent: str,
        handle: str,
        kind: str,
        options: Arguments,
        do: Callable[..., None] = qdisc.add_qdisc,
    ) -> None:
        namespace = self.namespaces[node]
        do(namespace.netlink, namespace.index(interface), parent, handle, made(kind, options))

    def _class(
        self,
        node: str,
        interface: str,
        parent: str,
        classid: str,
        kind: str,
        options: Arguments,
        do: Callable[..., None] = qdisc.add_class,
    ) -> None:
        namespace = self.namespaces[node]
        do(namespace.netlink, namespace.index(interface), parent, classid, kind, class_made(kind, options))

    def _module_parameter(self, module: str, name: str, value: Any) -> None:
        self.settings.parameter(module, name, str(value))
