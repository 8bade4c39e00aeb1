# SPDX-License-Identifier: Apache-2.0
"""The actual state of network and kernel, read from the kernel after wiring, for agent.json."""

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
    """Return ``{node: {name: value}}`` of the sysctls that matter to TCP and of all that the plan sets; node ``*`` is
    the whole kernel."""
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
    """Return each node's queues, classes, filters and policers as tc shows them."""
    found: dict[str, NodeQueues] = {}
    for node, namespace in namespaces.items():
        names = [link.name for link in links(namespace.netlink)]
        commands = ["qdisc show", *(f"class show dev {name}" for name in names)]
        with namespace.entered():
            text = without_unknown(_run("tc", "-j", "-batch", "-", given="\n".join(commands) + "\n"))
            try:
                shown, *classes = _json_values(text) or [[]]
            except ValueError:  # an older tc (iproute2 6.1) prints classes as text, even with -j
                (shown,) = _json_values(without_unknown(_run("tc", "-j", "qdisc", "show"))) or [[]]
                classes = [_run("tc", "class", "show", "dev", name).splitlines() for name in names]
        queues = [_record_of(ShownQueue, row) for row in shown]
        _add_unknown_options(namespace, queues)
        marked = [queue.dev for queue in queues if queue.kind == "clsact" and queue.dev]
        found[node] = NodeQueues(
            queues,
            {
                name: [row if isinstance(row, str) else _record_of(ShownClass, row) for row in rows]
                for name, rows in zip(names, classes, strict=False)
                if rows
            },
            filters={name: _filters(namespace, name) for name in marked},
            policers=_policers(namespace, marked),
        )
    return found


def _record_of(kind: type[_Shown], row: Mapping[str, Any]) -> _Shown:
    """Return the fields of a row of tc that the record has."""
    return kind(**{field.name: row[field.name] for field in fields(kind) if field.name in row})


def without_unknown(text: str) -> str:
    """Remove the text that tc prints inside its JSON for an unknown kind of queue."""
    return re.sub(r"\[Unknown qdisc, optlen=\d+\] ?", "", text)


def _add_unknown_options(namespace: Namespace, shown: list[ShownQueue]) -> None:
    """Fill in the options of queues that tc may not know, as read from the kernel."""
    for found in qdiscs(namespace.netlink):
        for place, item in enumerate(shown if found.settings else ()):
            if (namespace.index(item.dev or ""), item.handle) == (found.index, found.handle):
                names = discipline(found.kind).told
                options = {word: found.settings[name] for word, name in names.items() if name in found.settings}
                shown[place] = replace(item, options=options)


def _filters(namespace: Namespace, name: str) -> list[ShownFilter]:
    """The filters of an interface, read from the kernel because tc prints filters and policers as text only."""
    return [ShownFilter(*each) for each in filters(namespace.netlink, namespace.index(name))]


def _policers(namespace: Namespace, names: list[str]) -> dict[str, list[ShownPolicer]]:
    """A node's policers by interface; empty if it has none."""
    buckets = {
        name: [ShownPolicer(*each) for each in policers(namespace.netlink, namespace.index(name))] for name in names
    }
    return buckets if any(buckets.values()) else {}


def _json_values(text: str) -> list[Any]:
    """Parse concatenated JSON values, the output of a batch of commands."""
    decoder = json.JSONDecoder()
    values = []
    text = text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


def link_dump(namespaces: dict[str, Namespace]) -> dict[str, dict[str, ShownInterface]]:
    """Return the state of each interface, by node and interface name."""
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
    """Return the routes of each node."""
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
    """Return the versions of the programs that drive the flows, and of tc if requested."""
    kinds = {flow.traffic for flow in flows}
    commands = dict(_TC) if tc else {}
    for kind in TRAFFIC.values():
        if kind.name in kinds:
            commands |= kind.versions
    versions = {}
    for name, command in commands.items():
        text = _run(*command)
        versions[name] = text.splitlines()[0].strip() if text else ""
    return versions


def _run(*command: str, given: str = "") -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        return ""
    return done.stdout or done.stderr  # nginx prints its version there


def algorithms(flows: list[Flow], own: dict[str, str]) -> dict[str, AlgorithmRecord]:
    """Return a record of each algorithm of the flows whose module, loaded or built in, has parameters or a version.

    ``own`` maps the profile's algorithms to their modules. ``version`` is the source's MODULE_VERSION, or null without
    one: BBR version 3 has 3, Linux's tcp_bbr none.
    """
    found = {}
    for name in sorted({flow.kernel_algorithm for flow in flows}):
        module = own.get(name, f"tcp_{name}")
        if (SYS_MODULE / module).is_dir():
            version = SYS_MODULE / module / "version"
            found[name] = AlgorithmRecord(module, version.read_text().strip() if version.exists() else None)
    return found


def with_kernel(record: AgentRecord) -> AgentRecord:
    """Return the record with the kernel's release, tick rate, algorithms and boot parameters."""
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
    """Parse the boot parameters of modules and built-in code (words like ``tcp_cubic.hystart=0``; the last of a name
    counts).

    The rest of the command line is dropped: it has paths of the machine that made the run.
    """
    return {match[1]: match[2] for word in command_line.split() if (match := _BOOT_PARAMETER.fullmatch(word))}
