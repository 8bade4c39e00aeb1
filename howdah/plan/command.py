# SPDX-License-Identifier: Apache-2.0
"""Operations as the command lines they stand for, for people to read; the agent does the same over netlink."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from howdah.linux.netlink.discipline import class_made, made
from howdah.linux.netlink.discipline.discipline import Words as _Words
from howdah.linux.netlink.filter import MARKS_PRIORITY
from howdah.linux.netlink.police import LARGEST_PACKET_BYTES, PRIORITY
from howdah.plan.plan import Event, Operation


def command_lines(item: Operation) -> list[str]:
    """The commands of an operation (``ip``, ``tc``, ``ethtool``, ``sysctl``), quoted for a shell."""
    return [_line(words) for words in _COMMANDS[item.op](item.arguments)]


def event_line(item: Event) -> str:
    """What happens, as a command where it is one."""
    if item.op in ("qdisc", "replace"):
        return _line(_qdisc(item.arguments, "change" if item.op == "qdisc" else "replace"))
    if item.op == "class":
        return _line(_class(item.arguments, "change"))
    if item.op == "link":
        link = f"{item.arguments['node']} {item.arguments['interface']} {item.arguments['handle']}"
        return f"link {link} {'follows its trace' if item.arguments['follows'] else 'has its constant rate'}"
    return f"{item.op.replace('_', ' ')} {item.arguments['flow']}"


def _line(words: _Words) -> str:
    return " ".join(word if word == ">" else shlex.quote(word) for word in map(str, words))


def _in(node: str) -> _Words:
    return ["ip", "netns", "exec", node]


def _sysctl(a: dict[str, Any]) -> list[_Words]:
    command: _Words = ["sysctl", "-w", f"{a['name']}={a['value']}"]
    return [command if a["node"] is None else [*_in(a["node"]), *command]]


def _module_parameter(a: dict[str, Any]) -> list[_Words]:
    return [["echo", a["value"], ">", f"/sys/module/{a['module']}/parameters/{a['name']}"]]


def _node(a: dict[str, Any]) -> list[_Words]:
    commands: list[_Words] = [["ip", "netns", "add", a["name"]]]
    if a["router"]:
        commands.append([*_in(a["name"]), "sysctl", "-w", "net.ipv4.ip_forward=1"])
    return commands


def _link(a: dict[str, Any]) -> list[_Words]:
    near: _Words = [a["a_interface"], "address", a["a_mac"], "netns", a["a_node"]]
    far: _Words = ["name", a["b_interface"], "address", a["b_mac"], "netns", a["b_node"]]
    return [["ip", "link", "add", *near, "type", "veth", "peer", *far]]


def _adopt(a: dict[str, Any]) -> list[_Words]:
    """NIC is whatever the machine calls the one with that address."""
    if a["tag"] is None:
        given: _Words = ["ip", "link", "set", "dev", "NIC", "down", "name", a["interface"]]
    else:
        given = ["ip", "link", "add", "link", "NIC", "name", a["interface"], "type", "vlan", "id", a["tag"]]
    set_: _Words = ["ip", "link", "set", "dev", a["interface"], "address", a["mac"], "netns", a["node"]]
    return [["ip", "link", "show", "permaddr", a["nic_mac"]], given, set_]


def _set_link(a: dict[str, Any], *words: str | int) -> list[_Words]:
    return [["ip", "-n", a["node"], "link", "set", "dev", a["interface"], *words]]


def _offload(a: dict[str, Any]) -> list[_Words]:
    return [[*_in(a["node"]), "ethtool", "-K", a["interface"], a["feature"], "on" if a["enabled"] else "off"]]


def _address(a: dict[str, Any]) -> list[_Words]:
    return [["ip", "-n", a["node"], "address", "add", a["address"], "broadcast", "+", "dev", a["interface"]]]


def _route(a: dict[str, Any]) -> list[_Words]:
    verb = "replace" if a.get("quick_ack") else "add"  # Mininet has made a default route by then
    words: _Words = ["ip", "-n", a["node"], "route", verb, a["destination"], "via", a["via"], "dev", a["interface"]]
    if a["initial_window_packets"] is not None:
        words += ["initcwnd", a["initial_window_packets"]]
    if a["initial_receive_window_packets"] is not None:
        words += ["initrwnd", a["initial_receive_window_packets"]]
    if a.get("quick_ack"):
        words += ["quickack", a["quick_ack"]]
    return [words]


def _neighbour(a: dict[str, Any]) -> list[_Words]:
    entry: _Words = [a["address"], "lladdr", a["mac"], "nud", "permanent", "dev", a["interface"]]
    return [["ip", "-n", a["node"], "neighbour", "add", *entry]]


def _qdisc(a: dict[str, Any], verb: str) -> _Words:
    parent: _Words = [a["parent"]] if a["parent"] in ("root", "ingress") else ["parent", a["parent"]]
    place: _Words = ["dev", a["interface"], *parent, "handle", a["handle"]]
    found = made(a["kind"], a["options"])
    return ["tc", "-n", a["node"], "qdisc", verb, *place, *found.stab_words(), a["kind"], *found.words()]


def _added_qdisc(a: dict[str, Any]) -> list[_Words]:
    """Some kinds are changed at once when they are there."""
    if a["kind"] == "clsact":
        return [["tc", "-n", a["node"], "qdisc", "add", "dev", a["interface"], "clsact"]]
    place: _Words = ["dev", a["interface"], "parent", a["parent"], "handle", a["handle"], a["kind"]]
    change: _Words = ["tc", "-n", a["node"], "qdisc", "change", *place]
    further = made(a["kind"], a["options"]).further_words()
    return [_qdisc(a, "add"), *([*change, *words] for words in further)]


def _filter(a: dict[str, Any]) -> list[_Words]:
    matched: _Words = ["match", "ip", "dsfield", f"{a['dscp'] << 2:#x}", "0xfc", "flowid", f":{a['queue']:x}"]
    place: _Words = ["dev", a["interface"], "egress", "protocol", "ip", "prio", MARKS_PRIORITY, "u32"]
    return [["tc", "-n", a["node"], "filter", "add", *place, *matched]]


def _police(a: dict[str, Any]) -> list[_Words]:
    place: _Words = ["dev", a["interface"], "egress", "protocol", "all", "prio", PRIORITY, "matchall"]
    bucket: _Words = ["rate", f"{a['rate_bits_per_second']}bit", "burst", f"{a['burst_bytes']}b"]
    limits: _Words = ["mtu", LARGEST_PACKET_BYTES, "conform-exceed", "drop/continue"]
    return [["tc", "-n", a["node"], "filter", "add", *place, "action", "police", *bucket, *limits]]


def _class(a: dict[str, Any], verb: str) -> _Words:
    place: _Words = ["dev", a["interface"], "parent", a["parent"], "classid", a["classid"]]
    rate = class_made(a["kind"], a["options"]).words()
    return ["tc", "-n", a["node"], "class", verb, *place, a["kind"], *rate]


_COMMANDS: dict[str, Callable[[dict[str, Any]], list[_Words]]] = {
    "sysctl": _sysctl,
    "module_parameter": _module_parameter,
    "node": _node,
    "link": _link,
    "adopt": _adopt,
    "mtu": lambda a: _set_link(a, "mtu", a["mtu_bytes"]),
    "offload": _offload,
    "gso": lambda a: _set_link(a, "gso_max_segs", a["gso_max_segs"]),
    "txqueuelen": lambda a: _set_link(a, "txqueuelen", a["packets"]),
    "address": _address,
    "up": lambda a: _set_link(a, "up"),
    "route": _route,
    "neighbour": _neighbour,
    "qdisc": _added_qdisc,
    "filter": _filter,
    "police": _police,
    "class": lambda a: [_class(a, "add")],
}
