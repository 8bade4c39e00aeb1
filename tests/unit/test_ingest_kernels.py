# SPDX-License-Identifier: Apache-2.0
"""Counters that several kernels have of one thing become one row: sums, a wire's queue, nothing that not all read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from howdah.engine.uml.merge import merge_accounting
from howdah.ingest.machines import add_up, own_counters
from howdah.ingest.source import Made, SourceReport
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.schema import TABLES

QUICK = Path(__file__).parents[2] / "profiles" / "quick.yaml"
SPLIT = ("split=true", "path.loss=1 %", "duration=1 s")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compile_plan(next(iter(load(QUICK, SPLIT).cells())))


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    columns = {field.name: [row.get(field.name) for row in rows] for field in TABLES[name]}
    arrays = {
        field.name: pa.array(columns[field.name], pa.string()).dictionary_encode().cast(field.type)
        if pa.types.is_dictionary(field.type)
        else pa.array(columns[field.name], field.type)
        for field in TABLES[name]
    }
    return pa.table(arrays).cast(TABLES[name])


def _queue(time_ns: int, handle: str, sent: int, waiting: int, kind: str = "howdah_wire") -> dict[str, Any]:
    return {
        "node": "right",
        "interface": "right-eth1",
        "handle": handle,
        "parent": "root",
        "kind": kind,
        "time_ns": time_ns,
        "sent_packets": sent,
        "sent_bytes": sent * 1514,
        "backlog_packets": waiting % 2**32,
        "backlog_bytes": waiting * 1514 % 2**32,
        "drops_packets": 0,
        "overlimits": 0,
    }


def _made(queues: list[dict[str, Any]], counters: list[dict[str, Any]] | None = None) -> Made:
    tables = {"qdisc": _table("qdisc", queues), "interface": _table("interface", [])}
    tables["counter"] = _table("counter", counters or [])
    return {name: (table, SourceReport(table.num_rows)) for name, table in tables.items()}


def test_the_queue_of_a_wire_is_what_left_less_what_arrived(plan: Plan) -> None:
    """Seven left, below a netem that holds one more; four arrived."""
    bottleneck = {**_queue(10, "10:", 8, 0, "bfifo"), "interface": "right-eth0"}
    rows = [
        bottleneck,
        _queue(10, "1:", 0, 1, "netem"),
        _queue(10, "20:", 0, 7),
        {**bottleneck, "sent_packets": 0},
        _queue(10, "1:", 4, -4),
    ]
    found = add_up(plan, _made(rows))["qdisc"][0].to_pylist()
    assert [(row["handle"], row["sent_packets"], row["backlog_packets"]) for row in found] == [
        ("10:", 8, 0),
        ("1:", 4, 4),
    ]
    assert found[1]["backlog_bytes"] == 4 * 1514


def test_times_that_one_kernel_alone_read_are_left_out(plan: Plan) -> None:
    rows = [_queue(10, "1:", 3, 0), _queue(10, "1:", 4, 0), _queue(20, "1:", 9, 0)]
    found = add_up(plan, _made(rows))["qdisc"][0]
    assert found["time_ns"].to_pylist() == [10]


def _counter(node: str | None, name: str, value: int, time_ns: int = 10) -> dict[str, Any]:
    return {"node": node, "source": "snmp", "name": name, "time_ns": time_ns, "value": value}


def test_a_hosts_counters_are_of_the_kernel_it_lives_in(plan: Plan) -> None:
    rows = [_counter("s1", "TcpOutSegs", 7), _counter("r1", "TcpOutSegs", 0), _counter("left", "IpForwDatagrams", 7)]
    kept = own_counters(plan, "senders", _table("counter", rows)).to_pylist()
    assert [(row["node"], row["value"]) for row in kept] == [("s1", 7), ("left", 7)]


def test_counters_of_routers_are_added_and_those_of_hosts_and_kernels_stay(plan: Plan) -> None:
    rows = [
        _counter("s1", "TcpOutSegs", 7),
        _counter("r1", "TcpOutSegs", 4),
        _counter("left", "IpForwDatagrams", 7),
        _counter("left", "IpForwDatagrams", 4),
        _counter("left", "OfNewerKernelsAlone", 1),
        _counter("@senders", "MemFree", 5),
        _counter("left", "IpForwDatagrams", 9, time_ns=20),
    ]
    found = add_up(plan, _made([], rows))["counter"][0].to_pylist()
    assert {(row["node"], row["name"]): row["value"] for row in found} == {
        ("s1", "TcpOutSegs"): 7,
        ("r1", "TcpOutSegs"): 4,
        ("left", "IpForwDatagrams"): 11,
        ("left", "OfNewerKernelsAlone"): 1,
        ("@senders", "MemFree"): 5,
    }


def _state(sent: int, waiting: int, host: int) -> Any:
    queue = {"interface": "right-eth1", "handle": "1:", "parent": "root", "kind": "howdah_wire", "packets": sent}
    queue |= {"backlog_packets": waiting % 2**32, "backlog_bytes": waiting % 2**32}
    node = {"interfaces": {"right-eth1": {"tx_packets": sent}}, "qdiscs": [queue]}
    part = {
        "time_ns": 5,
        "nodes": {"right": node},
        "softnet": {"dropped": 1},
        "netstat": {"s1": {"InSegs": host}, "right": {"Forwarded": sent}},
    }
    return {"silent": True, "before": part, "after": part}


def test_accounts_are_sums_and_a_hosts_own(plan: Plan) -> None:
    merged = merge_accounting(plan, {"senders": _state(0, 9, 3), "receivers": _state(6, -6, 0)})["after"]
    assert merged["nodes"]["right"]["interfaces"] == {"right-eth1": {"tx_packets": 6}}
    (queue,) = merged["nodes"]["right"]["qdiscs"]
    assert (queue["packets"], queue["backlog_packets"], queue["kind"]) == (6, 3, "howdah_wire")
    assert merged["netstat"] == {"s1": {"InSegs": 3}, "right": {"Forwarded": 6}}
    assert merged["softnet"] == {"dropped": 2}
