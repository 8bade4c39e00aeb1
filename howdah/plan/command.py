# SPDX-License-Identifier: Apache-2.0
"""Operations as the command lines they stand for, for people to read; the agent does the same over netlink."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from howdah.plan.plan import Event, Operation
from howdah.quantity import format_duration, format_nanoseconds
from howdah.search import SEARCHES

_Words = list[str | int]


def command_lines(item: Operation) -> list[str]:
    """The commands of an operation (``ip``, ``tc``, ``ethtool``, ``sysctl``), quoted for a shell."""
    return [_line(words) for words in _COMMANDS[item.op](item.arguments)]


def event_line(item: Event) -> str:
    """What happens, as a command where it is one."""
    if item.op == "qdisc":
        return _line(_qdisc(item.arguments, "change"))
    if item.op == "class":
        return _line(_class(item.arguments, "change"))
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
    return ["tc", "-n", a["node"], "qdisc", verb, *place, a["kind"], *_OPTIONS[a["kind"]](a["options"])]


def _added_qdisc(a: dict[str, Any]) -> list[_Words]:
    """The virtual queues of GRED are set up one by one when it is there."""
    if a["kind"] == "clsact":
        return [["tc", "-n", a["node"], "qdisc", "add", "dev", a["interface"], "clsact"]]
    added = [_qdisc(a, "add")]
    if a["kind"] == "gred":
        place: _Words = ["dev", a["interface"], "parent", a["parent"], "handle", a["handle"], "gred"]
        change: _Words = ["tc", "-n", a["node"], "qdisc", "change", *place]
        added += [[*change, *_virtual_queue(a["options"], marked)] for marked in (False, True)]
    return added


def _filter(a: dict[str, Any]) -> list[_Words]:
    matched: _Words = ["match", "ip", "dsfield", f"{a['dscp'] << 2:#x}", "0xfc", "flowid", f":{a['queue']:x}"]
    place: _Words = ["dev", a["interface"], "egress", "protocol", "ip", "prio", 1, "u32"]
    return [["tc", "-n", a["node"], "filter", "add", *place, *matched]]


def _class(a: dict[str, Any], verb: str) -> _Words:
    options = a["options"]
    place: _Words = ["dev", a["interface"], "parent", a["parent"], "classid", a["classid"]]
    rate: _Words = ["rate", f"{options['rate_bits_per_second']}bit", "burst", f"{options['burst_bytes']}b"]
    rate += ["cburst", f"{options['cburst_bytes']}b", "quantum", options["quantum_bytes"]]
    return ["tc", "-n", a["node"], "class", verb, *place, a["kind"], *rate]


def _netem(options: dict[str, Any]) -> _Words:
    words: _Words = ["limit", options["limit_packets"], "delay", _compact(options["delay_us"])]
    if options["jitter_us"]:
        words.append(_compact(options["jitter_us"]))
    if options["distribution"] is not None:
        words += ["distribution", f"table[{len(options['distribution'])}]"]
    if "burst_begins_ratio" in options:
        ratios = (options["burst_begins_ratio"], options["burst_ends_ratio"])
        words += ["loss", "gemodel", *(f"{ratio * 100:.10g}%" for ratio in ratios)]
    elif options["loss_ratio"]:
        words += ["loss", f"{options['loss_ratio'] * 100:.10g}%"]
    if options["reorder_ratio"]:
        words += ["reorder", f"{options['reorder_ratio'] * 100:.10g}%", "gap", options["reorder_gap"]]
    if options["seed"] is not None:
        words += ["seed", options["seed"]]
    if options["rate_bits_per_second"] is not None:
        words += ["rate", f"{options['rate_bits_per_second']}bit"]
    if "tick_us" in options:
        words += ["slot", _compact(options["tick_us"])]
    return words


def _times(options: dict[str, Any], word: str, second_us: int) -> _Words:
    return ["target", _compact(options["target_us"]), word, _compact(second_us)]


def _ecn(options: dict[str, Any]) -> _Words:
    return ["ecn" if options["ecn"] else "noecn"]


def _red(options: dict[str, Any]) -> _Words:
    words: _Words = ["limit", f"{options['limit_bytes']}b", "min", f"{options['least_bytes']}b"]
    words += ["max", f"{options['most_bytes']}b", "avpkt", f"{options['packet_bytes']}b"]
    words += ["burst", options["burst_packets"], "probability", f"{options['probability']:.10g}"]
    words += ["bandwidth", f"{options['rate_bits_per_second']}bit"]
    return words + ["adaptive"] * options["adaptive"] + ["ecn"] * options["ecn"]


def _choke(options: dict[str, Any]) -> _Words:
    words: _Words = ["limit", options["limit_packets"], "min", options["least_packets"]]
    words += ["max", options["most_packets"], "avpkt", f"{options['packet_bytes']}b"]
    words += ["burst", options["burst_packets"], "probability", f"{options['probability']:.10g}"]
    return [*words, "bandwidth", f"{options['rate_bits_per_second']}bit", *["ecn"] * options["ecn"]]


def _virtual_queue(options: dict[str, Any], marked: bool) -> _Words:
    least, most, burst = (f"{'marked_' * marked}{name}" for name in ("least_bytes", "most_bytes", "burst_packets"))
    words: _Words = ["limit", f"{options['limit_bytes']}b", "min", f"{options[least]}b", "max", f"{options[most]}b"]
    words += ["avpkt", f"{options['packet_bytes']}b", "burst", options[burst]]
    words += ["bandwidth", f"{options['rate_bits_per_second']}bit"]
    return [*words, "probability", f"{options['probability']:.10g}", "vq", int(marked), "prio", 1]


def _codel(options: dict[str, Any]) -> _Words:
    return ["limit", options["limit_packets"], *_times(options, "interval", options["interval_us"]), *_ecn(options)]


def _fq_codel(options: dict[str, Any]) -> _Words:
    words: _Words = ["limit", options["limit_packets"], *_times(options, "interval", options["interval_us"])]
    words += ["flows", options["flows"]]
    words += ["quantum", options["quantum_bytes"], "memory_limit", f"{options['memory_limit_bytes']}b"]
    return words + _ecn(options)


def _pie(options: dict[str, Any]) -> _Words:
    gains: _Words = ["alpha", options["alpha"], "beta", options["beta"]]
    return [
        "limit",
        options["limit_packets"],
        *_times(options, "tupdate", options["update_us"]),
        *gains,
        *_ecn(options),
    ]


def _cake(options: dict[str, Any]) -> _Words:
    rest: _Words = ["rtt", _compact(options["rtt_us"]), "memlimit", f"{options['memory_limit_bytes']}b"]
    return ["unlimited", "besteffort", options["isolation"], *rest]


def _receiver(options: dict[str, Any]) -> _Words:
    """Of our own module, which tc does not know: as it would be written."""
    words: _Words = ["every", options["acknowledge_every"], "delay", _compact(options["delay_us"])]
    words += ["quick-first", options["quick_first"]]
    return [*words, "sack-blocks", options["sack_blocks"], "backlog-blocks", options["backlog_blocks"]]


def _processor(options: dict[str, Any]) -> _Words:
    """Likewise."""
    times = [(name, options[f"{name}_ns"]) for name in ("packet", "ack", "searched")]
    words: _Words = [word for name, ns in times for word in (name, format_nanoseconds(ns).replace(" ", ""))]
    return [*words, "search", SEARCHES[options["search"]], "limit", options["queue_packets"]]


def _compact(us: int) -> str:
    return format_duration(us).replace(" ", "")


_OPTIONS: dict[str, Callable[[dict[str, Any]], _Words]] = {
    "htb": lambda options: ["default", options["default_class"]],
    "bfifo": lambda options: ["limit", f"{options['limit_bytes']}b"],
    "pfifo": lambda options: ["limit", options["limit_packets"]],
    "fq": lambda options: ["limit", options["limit_packets"], "flow_limit", options["flow_limit_packets"]],
    "red": _red,
    "choke": _choke,
    "gred": lambda options: ["setup", "vqs", 2, "default", 0, "grio", "limit", f"{options['limit_bytes']}b"],
    "codel": _codel,
    "fq_codel": _fq_codel,
    "pie": _pie,
    "cake": _cake,
    "netem": _netem,
    "howdah_receiver": _receiver,
    "howdah_cpu": _processor,
}

_COMMANDS: dict[str, Callable[[dict[str, Any]], list[_Words]]] = {
    "sysctl": _sysctl,
    "module_parameter": _module_parameter,
    "node": _node,
    "link": _link,
    "adopt": _adopt,
    "mtu": lambda a: _set_link(a, "mtu", a["mtu_bytes"]),
    "offload": _offload,
    "gso": lambda a: _set_link(a, "gso_max_segs", a["gso_max_segs"]),
    "address": _address,
    "up": lambda a: _set_link(a, "up"),
    "route": _route,
    "neighbour": _neighbour,
    "qdisc": _added_qdisc,
    "filter": _filter,
    "class": lambda a: [_class(a, "add")],
}
