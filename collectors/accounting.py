# SPDX-License-Identifier: Apache-2.0
"""All packet counters in one snapshot: packets sent minus received must equal the sum of known drops."""

from __future__ import annotations

import os

from howdah.codec import planned
from howdah.linux.kernelfile import parse_snmp, parse_softnet, read_again
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.link import links
from howdah.linux.netlink.qdisc import qdiscs
from howdah.record.account import CounterState, NodeCounters


def snapshot(namespaces: dict[str, Namespace], time_ns: int) -> CounterState:
    """Return one state S of accounting.json (docs/data-format.md), without the loopback interface."""
    nodes: dict[str, NodeCounters] = {}
    netstat = {}
    for name, namespace in namespaces.items():
        found = {link.index: link for link in links(namespace.netlink) if link.name != "lo"}
        nodes[name] = {
            "interfaces": {link.name: link.statistics for link in found.values()},
            "qdiscs": [
                {
                    "interface": found[qdisc.index].name,
                    "handle": qdisc.handle,
                    "parent": qdisc.parent,
                    "kind": qdisc.kind,
                    "bytes": qdisc.bytes,
                    "packets": qdisc.packets,
                    "drops": qdisc.drops,
                    "marked": qdisc.marked,
                    "backlog_bytes": qdisc.backlog_bytes,
                    "backlog_packets": qdisc.backlog_packets,
                    "overlimits": qdisc.overlimits,
                    **qdisc.causes,
                    **qdisc.limits,
                }
                for qdisc in qdiscs(namespace.netlink)
                if qdisc.index in found
            ],
        }
        netstat[name] = {
            **_read(namespace.open_file("/proc/net/snmp"), snmp=True),
            **_read(namespace.open_file("/proc/net/netstat"), snmp=True),
        }
    softnet = _read(os.open("/proc/net/softnet_stat", os.O_RDONLY | os.O_CLOEXEC), snmp=False)
    return {"time_ns": time_ns, "nodes": nodes, "softnet": softnet, "netstat": netstat}


def _read(descriptor: int, snmp: bool) -> dict[str, int]:
    try:
        text = read_again(descriptor)
    finally:
        os.close(descriptor)
    return parse_snmp(text) if snmp else parse_softnet(text)


_WIRE = "howdah_wire"  # a line between two kernels of a run


@planned
class Marks:
    """``sent`` changes whenever a packet is sent; ``queued`` counts queued packets, which may wait for seconds."""

    sent: tuple[int, ...]
    queued: int


def traffic_marks(namespaces: dict[str, Namespace]) -> Marks:
    """Read the transmit counters of all interfaces and all backlogs.

    The backlog of a wire between kernels is what left here minus what arrived elsewhere, so alone it only shows
    changes.
    """
    sent: list[int] = []
    queued = 0
    for namespace in namespaces.values():
        sent += [link.statistics["tx_packets"] for link in links(namespace.netlink) if link.name != "lo"]
        for qdisc in qdiscs(namespace.netlink):
            if qdisc.kind == _WIRE:
                sent.append(qdisc.backlog_packets)
            else:
                queued += qdisc.backlog_packets
    return Marks(tuple(sent), queued)
