# SPDX-License-Identifier: Apache-2.0
"""Operations as the command lines they stand for, for people to read; the agent does the same over netlink.

The parameters of each command are the arguments that its operation takes (operation.py checks them).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from howdah.linux.netlink.discipline import class_made, made
from howdah.linux.netlink.discipline.discipline import Words as _Words
from howdah.linux.netlink.filter import MARKS_PRIORITY
from howdah.linux.netlink.police import LARGEST_PACKET_BYTES, PRIORITY
from howdah.plan.step import Event, Operation, PlacedQueue


def command_lines(item: Operation) -> list[str]:
    """The commands of an operation (``ip``, ``tc``, ``ethtool``, ``sysctl``), quoted for a shell."""
    return [_line(words) for words in COMMANDS[item.op](**item.arguments)]


def event_line(item: Event) -> str:
    """What happens, as a command where it is one."""
    if item.queue is not None:
        return _line(_placed(item.queue, "change" if item.op == "qdisc" else "replace"))
    if item.op == "class":
        return _line(_class_words("change", **item.arguments))
    if item.op == "link":
        return _follow(**item.arguments)
    return f"{item.op.replace('_', ' ')} {item.arguments['flow']}"


def _line(words: _Words) -> str:
    return " ".join(word if word == ">" else shlex.quote(word) for word in map(str, words))


def _follow(node: str, interface: str, handle: str, follows: bool) -> str:
    return f"link {node} {interface} {handle} {'follows its trace' if follows else 'has its constant rate'}"


def _in(node: str) -> _Words:
    return ["ip", "netns", "exec", node]


def _sysctl(node: str | None, name: str, value: str) -> list[_Words]:
    command: _Words = ["sysctl", "-w", f"{name}={value}"]
    return [command if node is None else [*_in(node), *command]]


def _module_parameter(module: str, name: str, value: str) -> list[_Words]:
    return [["echo", value, ">", f"/sys/module/{module}/parameters/{name}"]]


def _node(name: str, router: bool) -> list[_Words]:
    commands: list[_Words] = [["ip", "netns", "add", name]]
    if router:
        commands.append([*_in(name), "sysctl", "-w", "net.ipv4.ip_forward=1"])
    return commands


def _link(a_node: str, a_interface: str, a_mac: str, b_node: str, b_interface: str, b_mac: str) -> list[_Words]:
    near: _Words = [a_interface, "address", a_mac, "netns", a_node]
    far: _Words = ["name", b_interface, "address", b_mac, "netns", b_node]
    return [["ip", "link", "add", *near, "type", "veth", "peer", *far]]


def _adopt(node: str, interface: str, mac: str, nic_mac: str, tag: int | None, ipv6: bool) -> list[_Words]:  # noqa: ARG001
    """A NIC of the machine as an interface of a node: whole, or the frames of one 802.1Q tag. NIC is whatever the
    machine calls the one with that address."""
    if tag is None:
        given: _Words = ["ip", "link", "set", "dev", "NIC", "down", "name", interface]
    else:
        given = ["ip", "link", "add", "link", "NIC", "name", interface, "type", "vlan", "id", tag]
    set_: _Words = ["ip", "link", "set", "dev", interface, "address", mac, "netns", node]
    return [["ip", "link", "show", "permaddr", nic_mac], given, set_]


def _set_link(node: str, interface: str, *words: str | int) -> list[_Words]:
    return [["ip", "-n", node, "link", "set", "dev", interface, *words]]


def _mtu(node: str, interface: str, mtu_bytes: int) -> list[_Words]:
    return _set_link(node, interface, "mtu", mtu_bytes)


def _offload(node: str, interface: str, feature: str, enabled: bool) -> list[_Words]:
    return [[*_in(node), "ethtool", "-K", interface, feature, "on" if enabled else "off"]]


def _gso(node: str, interface: str, gso_max_segs: int) -> list[_Words]:
    return _set_link(node, interface, "gso_max_segs", gso_max_segs)


def _txqueuelen(node: str, interface: str, packets: int) -> list[_Words]:
    return _set_link(node, interface, "txqueuelen", packets)


def _address(node: str, interface: str, address: str) -> list[_Words]:
    return [["ip", "-n", node, "address", "add", address, "broadcast", "+", "dev", interface]]


def _up(node: str, interface: str) -> list[_Words]:
    return _set_link(node, interface, "up")


def _route(
    node: str,
    destination: str,
    via: str,
    interface: str,
    initial_window_packets: int | None,
    initial_receive_window_packets: int | None,
    quick_ack: int = 0,
) -> list[_Words]:
    verb = "replace" if quick_ack else "add"  # Mininet has made a default route by then
    words: _Words = ["ip", "-n", node, "route", verb, destination, "via", via, "dev", interface]
    if initial_window_packets is not None:
        words += ["initcwnd", initial_window_packets]
    if initial_receive_window_packets is not None:
        words += ["initrwnd", initial_receive_window_packets]
    if quick_ack:
        words += ["quickack", quick_ack]
    return [words]


def _neighbour(node: str, interface: str, address: str, mac: str) -> list[_Words]:
    entry: _Words = [address, "lladdr", mac, "nud", "permanent", "dev", interface]
    return [["ip", "-n", node, "neighbour", "add", *entry]]


def _placed(queue: PlacedQueue, verb: str) -> _Words:
    parent: _Words = [queue.parent] if queue.parent in ("root", "ingress") else ["parent", queue.parent]
    place: _Words = ["dev", queue.interface, *parent, "handle", queue.handle]
    found = made(queue.kind, queue.options)
    return ["tc", "-n", queue.node, "qdisc", verb, *place, *found.stab_words(), queue.kind, *found.words()]


def _qdisc(node: str, interface: str, parent: str, handle: str, kind: str, options: dict[str, Any]) -> list[_Words]:
    """Some kinds are changed at once when they are there."""
    if kind == "clsact":
        return [["tc", "-n", node, "qdisc", "add", "dev", interface, "clsact"]]
    place: _Words = ["dev", interface, "parent", parent, "handle", handle, kind]
    change: _Words = ["tc", "-n", node, "qdisc", "change", *place]
    further = made(kind, options).further_words()
    added = PlacedQueue(node, interface, parent, handle, kind, options)
    return [_placed(added, "add"), *([*change, *words] for words in further)]


def _filter(node: str, interface: str, dscp: int, queue: int) -> list[_Words]:
    """What leaves an interface with a DSCP belongs to this virtual queue of its GRED."""
    matched: _Words = ["match", "ip", "dsfield", f"{dscp << 2:#x}", "0xfc", "flowid", f":{queue:x}"]
    place: _Words = ["dev", interface, "egress", "protocol", "ip", "prio", MARKS_PRIORITY, "u32"]
    return [["tc", "-n", node, "filter", "add", *place, *matched]]


def _police(node: str, interface: str, rate_bits_per_second: int, burst_bytes: int) -> list[_Words]:
    """What leaves an interface passes a bucket of tokens before its queue."""
    place: _Words = ["dev", interface, "egress", "protocol", "all", "prio", PRIORITY, "matchall"]
    bucket: _Words = ["rate", f"{rate_bits_per_second}bit", "burst", f"{burst_bytes}b"]
    limits: _Words = ["mtu", LARGEST_PACKET_BYTES, "conform-exceed", "drop/continue"]
    return [["tc", "-n", node, "filter", "add", *place, "action", "police", *bucket, *limits]]


def _class(node: str, interface: str, parent: str, classid: str, kind: str, options: dict[str, Any]) -> list[_Words]:
    return [_class_words("add", node, interface, parent, classid, kind, options)]


def _class_words(
    verb: str, node: str, interface: str, parent: str, classid: str, kind: str, options: dict[str, Any]
) -> _Words:
    place: _Words = ["dev", interface, "parent", parent, "classid", classid]
    return ["tc", "-n", node, "class", verb, *place, kind, *class_made(kind, options).words()]


_ALL = (
    *(_sysctl, _module_parameter, _node, _link, _adopt, _mtu, _offload, _gso, _txqueuelen, _address, _up, _route),
    *(_neighbour, _qdisc, _filter, _police, _class),
)
COMMANDS: dict[str, Callable[..., list[_Words]]] = {command.__name__[1:]: command for command in _ALL}
