# SPDX-License-Identifier: Apache-2.0
"""What the agent of a healthy run writes, for tests that doctor one thing at a time. The plan is plan_factory's."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.ingest.source import IngestReport, SourceReport
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.operation import VethLink
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan
from howdah.plan.step import Operation
from howdah.record.account import TraceAccount
from howdah.record.schema import TABLES
from tests.unit.plan_factory import make_plan

_LINKS = (
    ("s1", "s1-eth0", "left", "left-eth0"),
    ("left", "left-eth1", "right", "right-eth0"),
    ("right", "right-eth1", "r1", "r1-eth0"),
)
FORWARD = (("s1", "s1-eth0"), ("left", "left-eth1"), ("right", "right-eth1"))
REVERSE = (("r1", "r1-eth0"), ("right", "right-eth0"), ("left", "left-eth0"))
SENT = 1000
DROPPED = 8
ACKS = 500


def path_plan(**changes: Any) -> Plan:
    """One flow over s1 - left - right - r1, with netem on the routers' far interfaces."""
    operations: list[Operation] = [
        VethLink(a, b, "02:00:00:00:00:01", c, d, "02:00:00:00:00:02") for a, b, c, d in _LINKS
    ]
    for node, interface in (("right", "right-eth1"), ("left", "left-eth0")):
        operations.append(Qdisc(node, interface, "root", "1:", Netem(delay_us=20000, limit_packets=10000)))
    return dataclasses.replace(make_plan(), operations=operations, **changes)


def calibration() -> dict[str, Any]:
    delay = [20_000_000, 20_000_000, 20_000_256]
    return {
        "format": 2,
        "silent": True,
        "targets": [
            {"sender": "s1", "receiver": "r1", "forward_delay_ns": list(delay), "reverse_delay_ns": list(delay)}
        ],
        "rate_bits_per_second": 19_999_944.4,
        "buffer_bytes": 100_681,
        "buffer_why": None,
        "loss": {"sent": 94, "received": 94},
    }


def _interface(tx: int, rx: int) -> dict[str, int]:
    names = ("tx_bytes", "rx_bytes", "tx_dropped", "rx_dropped", "tx_errors", "rx_errors")
    return {"tx_packets": tx, "rx_packets": rx, **dict.fromkeys(names, 0)}


def _queue(interface: str, handle: str, parent: str, kind: str, packets: int, drops: int = 0) -> dict[str, Any]:
    counters = {"bytes": packets * 1514, "packets": packets, "drops": drops, "backlog_packets": 0, "backlog_bytes": 0}
    return {"interface": interface, "handle": handle, "parent": parent, "kind": kind, **counters, "overlimits": 0}


def snapshot(sent: int, dropped: int, acks: int) -> dict[str, Any]:
    """Counters after ``sent`` data packets, of which the bottleneck dropped some, and ``acks`` the other way."""
    arrived = sent - dropped
    nodes = {
        "s1": {
            "interfaces": {"s1-eth0": _interface(sent, acks)},
            "qdiscs": [_queue("s1-eth0", "10:", "1:1", "pfifo", sent)],
        },
        "left": {
            "interfaces": {"left-eth0": _interface(acks, sent), "left-eth1": _interface(arrived, acks)},
            "qdiscs": [
                _queue("left-eth1", "1:", "root", "htb", arrived, dropped),
                _queue("left-eth1", "10:", "1:1", "bfifo", arrived, dropped),
                _queue("left-eth0", "1:", "root", "netem", acks),
            ],
        },
        "right": {
            "interfaces": {"right-eth0": _interface(acks, arrived), "right-eth1": _interface(arrived, acks)},
            "qdiscs": [_queue("right-eth1", "1:", "root", "netem", arrived)],
        },
        "r1": {"interfaces": {"r1-eth0": _interface(acks, arrived)}, "qdiscs": []},
    }
    counters = ("TcpExtTCPMemoryPressures", "TcpExtPruneCalled", "TcpExtTCPRcvQDrop", "TcpExtTCPBacklogDrop")
    netstat = {node: dict.fromkeys(counters, 0) for node in nodes}
    return {"time_ns": 0, "nodes": nodes, "softnet": {"processed": sent, "dropped": 0}, "netstat": netstat}


def accounting() -> dict[str, Any]:
    return {"before": snapshot(100, 0, 50), "after": snapshot(100 + SENT, DROPPED, 50 + ACKS)}


def agent() -> dict[str, Any]:
    """Of the plan of plan_factory: calibration at -3 s and +3 s, flows for 2 s."""
    phases = (
        ("setup", -5.0, -4.9),
        ("calibrate-before", -4.9, -1.0),
        ("flows", -1.0, 2.0),
        ("quiesce", 2.0, 2.2),
        ("calibrate-after", 2.2, 5.0),
    )
    flow = {
        "id": 1,
        "start_ns": 0,
        "connected_ns": 40_000_768,
        "bytes_received": 4_000_000,
        "complete": True,
        "error": None,
    }
    return {
        "format": 1,
        "status": "ok",
        "error": None,
        "epoch_monotonic_ns": 5_000_000_000,
        "phases": [
            {"phase": name, "start_ns": int(start * 1e9), "end_ns": int(end * 1e9)} for name, start, end in phases
        ],
        "flows": [flow],
        "qdiscs": {
            "s1": {"qdiscs": [{"kind": "htb", "dev": "s1-eth0"}], "classes": {}},
            "right": {"qdiscs": [{"kind": "netem", "dev": "right-eth1"}], "classes": {}},
        },
    }


def trace() -> TraceAccount:
    return TraceAccount(65536, "mono", entries=500)


def report() -> IngestReport:
    sources = {name: SourceReport(rows=500) for name in TABLES}
    sources["tcp_probe"].counts = {
        "unknown_rows": 0,
        "unknown_sockets": [],
        "lost_events": 0,
        "gaps_of_unknown_size": 0,
    }
    return IngestReport(sources)
