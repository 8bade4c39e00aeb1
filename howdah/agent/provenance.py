# SPDX-License-Identifier: Apache-2.0
"""What the network and the kernel really were: dumps for agent.json, taken from the kernel after wiring."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from howdah.agent.settings import SYS_MODULE
from howdah.linux.clock import SECOND, TICK_NS
from howdah.linux.kernelfile import read_file, sysctl_path
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.discipline import discipline
from howdah.linux.netlink.ethtool import offloads
from howdah.linux.netlink.filter import filters
from howdah.linux.netlink.link import links
from howdah.linux.netlink.police import policers
from howdah.linux.netlink.qdisc import qdiscs
from howdah.linux.netlink.route import routes
from howdah.plan.operation import AddRoute, Sysctl
from howdah.plan.plan import Flow
from howdah.plan.step import Operation
from howdah.record.agent import (
    AgentRecord,
    AlgorithmRecord,
    NodeQueues,
    ShownClass,
    ShownFilter,
    ShownInterface,
    ShownPolicer,
    ShownQueue,
    ShownRoute,
)
from howdah.traffic import TRAFFIC

_Shown = TypeVar("_Shown", ShownQueue, ShownClass)

_BOOT_PARAMETER = re.compile(r"([A-Za-z0-9_]+\.[A-Za-z0-9_]+)=(\S*)")
_ALWAYS_RECORDED = (
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.ip_forward",
)
_KERNEL_WIDE = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.netdev_max_backlog",
    "net.core.default_qdisc",
    "net.ipv4.tcp_mem",
)
_TC: dict[str, tuple[str, ...]] = {"tc": ("tc", "-V")}


def sysctls(namespaces: dict[str, Namespace], operations: list[Operation]) -> dict[str, dict[str, str]]:
    """``{node: {name: value}}``; the node ``*`` is the whole kernel. Those that matter to TCP, and every one set."""
    chosen: dict[str, dict[str, None]] = {"*": dict.fromkeys(_KERNEL_WIDE)}
    for node in namespaces:
        chosen[node] = dict.fromkeys(_ALWAYS_RECORDED)
    for operation in operations:
        if isinstance(operation, Sysctl):
            chosen.setdefault(operation.node or "*", {})[operation.name] = None
    found: dict[str, dict[str, str]] = {"*": _read_all(chosen["*"])}
    for node, namespace in namespaces.items():
        with namespace.entered():
            found[node] = _read_all(chosen[node])
    return found


def _read_all(names: dict[str, None]) -> dict[str, str]:
    values = {}
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            values[name] = " ".join(read_file(sysctl_path(name)).split())
    return values


def qdisc_dump(namespaces: dict[str, Namespace]) -> dict[str, NodeQueues]:
    """By node, by the tool people trust."""
    found: dict[str, NodeQueues] = {}
    for node, namespace in namespaces.items():
        names = [link.name for link in links(namespace.netlink)]
        commands = ["qdisc show", *(f"class show dev {name}" for name in names)]
        with namespace.entered():
            text = known(_output("tc", "-j", "-batch", "-", given="\n".join(commands) + "\n"))
            try:
                shown, *classes = _json_values(text) or [[]]
            except ValueError:  # an older tc (of iproute2 6.1) prints classes as text whatever it is asked for
                (shown,) = _json_values(known(_output("tc", "-j", "qdisc", "show"))) or [[]]
                classes = [_output("tc", "class", "show", "dev", name).splitlines() for name in names]
        queues = [_kept(ShownQueue, row) for row in shown]
        _tell_unknown(namespace, queues)
        marked = [queue.dev for queue in queues if queue.kind == "clsact" and queue.dev]
        found[node] = NodeQueues(
            queues,
            {
                name: [row if isinstance(row, str) else _kept(ShownClass, row) for row in rows]
                for name, rows in zip(names, classes, strict=False)
                if rows
            },
            filters={name: _filters(namespace, name) for name in marked},
            policers=_policers(namespace, marked),
        )
    return found


def _kept(kind: type[_Shown], row: Mapping[str, Any]) -> _Shown:
    """Of what tc prints, what the record has."""
    return kind(**{field.name: row[field.name] for field in fields(kind) if field.name in row})


def known(text: str) -> str:
    """Without what tc prints amid its JSON of a kind that it does not know."""
    return re.sub(r"\[Unknown qdisc, optlen=\d+\] ?", "", text)


def _tell_unknown(namespace: Namespace, shown: list[ShownQueue]) -> None:
    """The options of kinds that tc may not know, from the kernel itself."""
    for found in qdiscs(namespace.netlink):
        for place, item in enumerate(shown if found.settings else ()):
            if (namespace.index(item.dev or ""), item.handle) == (found.index, found.handle):
                names = discipline(found.kind).told
                options = {word: found.settings[name] for word, name in names.items() if name in found.settings}
                shown[place] = replace(item, options=options)


def _filters(namespace: Namespace, name: str) -> list[ShownFilter]:
    """Of an interface; tc prints them as text, and policers, too."""
    return [ShownFilter(*each) for each in filters(namespace.netlink, namespace.index(name))]


def _policers(namespace: Namespace, names: list[str]) -> dict[str, list[ShownPolicer]]:
    """By interface, of a node that has any."""
    buckets = {
        name: [ShownPolicer(*each) for each in policers(namespace.netlink, namespace.index(name))] for name in names
    }
    return buckets if any(buckets.values()) else {}


def _json_values(text: str) -> list[Any]:
    """JSON values that follow each other, as a batch of commands prints them."""
    decoder = json.JSONDecoder()
    values = []
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


def link_dump(namespaces: dict[str, Namespace]) -> dict[str, dict[str, ShownInterface]]:
    """By node and interface."""
    return {
        node: {
            link.name: ShownInterface(
                link.index,
                link.mac,
                link.mtu_bytes,
                link.up,
                link.gso_max_segs,
                link.gso_max_size_bytes,
                link.queue_packets,
                offloads(namespace.any_socket, link.name),
            )
            for link in links(namespace.netlink)
            if link.name != "lo"
        }
        for node, namespace in namespaces.items()
    }


def route_dump(namespaces: dict[str, Namespace]) -> dict[str, list[ShownRoute]]:
    """By node."""
    found: dict[str, list[ShownRoute]] = {}
    for node, namespace in namespaces.items():
        names = {link.index: link.name for link in links(namespace.netlink)}
        found[node] = [
            ShownRoute(
                route.destination,
                route.via,
                names.get(route.index or 0),
                **{name: route.metrics.get(number) for name, number in AddRoute.METRICS.items()},
            )
            for route in routes(namespace.netlink)
        ]
    return found


def tool_versions(flows: list[Flow], *, tc: bool) -> dict[str, str]:
    """Versions of the programs that send the flows, and of tc where it is asked."""
    kinds = {flow.traffic for flow in flows}
    commands = dict(_TC) if tc else {}
    for kind in TRAFFIC.values():
        if kind.name in kinds:
            commands |= kind.versions
    versions = {}
    for name, command in commands.items():
        text = _output(*command)
        versions[name] = text.splitlines()[0].strip() if text else ""
    return versions


def _output(*command: str, given: str = "") -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        return ""
    return done.stdout or done.stderr  # nginx tells its version there


def algorithms(flows: list[Flow], own: dict[str, str]) -> dict[str, AlgorithmRecord]:
    """Of the flows' algorithms: what the kernel knows of a module, built in or
    not, that has parameters or a version.

    ``own`` says which module of the profile provides an algorithm. ``version`` is what the source says of itself
    (MODULE_VERSION), null where it says nothing: BBR version 3 says 3, and the tcp_bbr of Linux nothing.
    """
    found = {}
    for name in sorted({flow.kernel_algorithm for flow in flows}):
        module = own.get(name, f"tcp_{name}")
        if (SYS_MODULE / module).is_dir():
            version = SYS_MODULE / module / "version"
            found[name] = AlgorithmRecord(module, version.read_text().strip() if version.exists() else None)
    return found


def of_kernel(record: AgentRecord) -> AgentRecord:
    """With what is known of the kernel."""
    name = os.uname()
    return replace(
        record,
        kernel_release=name.release,
        kernel_version=name.version,
        hertz=SECOND // TICK_NS,
        available_algorithms=Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        boot_parameters=boot_parameters(Path("/proc/cmdline").read_text()),
    )


def boot_parameters(command_line: str) -> dict[str, str]:
    """What the kernel was given for modules and built-in code: words like ``tcp_cubic.hystart=0``, the last of a name.

    The rest of the command line has paths of the machine that made the run.
    """
    return {match[1]: match[2] for word in command_line.split() if (match := _BOOT_PARAMETER.fullmatch(word))}
