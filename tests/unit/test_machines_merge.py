# SPDX-License-Identifier: Apache-2.0
"""Records of several machines as one; what such a run cannot have is not held against it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.codec import encoded
from howdah.engine.machines.merge import add_accounts, join_ends, merge_accounting, merge_agents
from howdah.errors import RunFailedError
from howdah.ingest.run import ingest
from howdah.judge.settings import settings_checks
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.account import TraceAccount, TraceFile
from howdah.record.agent import AgentFailure, AgentRecord, FlowRecord, MemoryRecord, NodeQueues, Phase
from howdah.record.clock import Correction
from howdah.record.directory import RunDirectory, write_json
from howdah.record.run import read_record
from tests.unit.plan_factory import make_plan, on_engine
from tests.unit.told_by_agent import told

S = 1_000_000_000
SENDER = FlowRecord(
    id=1, end="sender", sender_cookie=11, source_port=40001, start_ns=1000, connected_ns=2000, bytes_sent=500,
    bytes_received=0, segments_sent=4, segments_retransmitted=1, complete=True,
)  # fmt: skip
RECEIVER = FlowRecord(
    id=1, end="receiver", receiver_cookie=22, source_port=40001, start_ns=1500, connected_ns=1700, end_ns=9000,
    bytes_sent=0, bytes_received=500, complete=True,
)  # fmt: skip


def test_a_flow_is_what_each_end_knows_best() -> None:
    joined = join_ends(SENDER, RECEIVER, None)
    assert joined == dataclasses.replace(SENDER, end=None, receiver_cookie=22, end_ns=9000, bytes_received=500)


@pytest.mark.parametrize(
    ("sender", "receiver", "size"),
    [
        ({}, {"bytes_received": 499}, None),
        ({}, {}, 501),
        ({}, {"complete": False}, None),
        ({"error": "connect: Connection refused"}, {}, None),
        ({}, {"error": "the connection was reset"}, None),
    ],
)
def test_a_flow_is_complete_only_if_everything_came(
    sender: dict[str, Any], receiver: dict[str, Any], size: int | None
) -> None:
    joined = join_ends(dataclasses.replace(SENDER, **sender), dataclasses.replace(RECEIVER, **receiver), size)
    assert not joined.complete
    assert joined.error == (sender.get("error") or receiver.get("error"))


def test_iperf3_tells_of_both_ends_at_one() -> None:
    client = dataclasses.replace(SENDER, segments_sent=None, segments_retransmitted=None, bytes_received=480, end_ns=7)
    server = dataclasses.replace(RECEIVER, end_ns=None, bytes_received=0)
    told = join_ends(client, server, None)
    assert (told.bytes_received, told.end_ns, told.complete) == (480, 7, True)


def agent(part: list[str], *flows: FlowRecord) -> AgentRecord:
    return AgentRecord(
        format=1, status="ok", kernel_release=f"of {part[0]}", kernel_version="#1", hertz=250,
        available_algorithms=["cubic"], epoch_monotonic_ns=5, phases=[Phase("flows", 0, 2 * S, 5)], flows=[*flows],
        part=part, operations_wall_us=3, tools={}, sysctls={"*": {"a": part[0]}, part[0]: {"b": "1"}},
        qdiscs={part[0]: NodeQueues([])}, links={part[0]: {}}, modules={}, memory=MemoryRecord(10, len(part[0])),
    )  # fmt: skip


def agents() -> dict[str, AgentRecord]:
    return {"to": agent(["r1"], RECEIVER), "src": agent(["s1"], SENDER), "middle": agent(["left", "right"])}


def test_an_agent_of_all_is_the_senders_where_only_one_can_be() -> None:
    right = {"to": Correction(1e-3, 0), "src": Correction(), "middle": Correction()}
    merged = merge_agents(make_plan(), agents(), right, epoch_ns=77)
    assert merged.kernel_release == "of s1" and merged.epoch_monotonic_ns == 77 and merged.status == "ok"
    assert merged.flows[0].end_ns == 9000 - 9, "in the experiment's time"
    assert merged.phases == [Phase("flows", 0, 2 * S, 5)]
    assert merged.sysctls is not None and merged.links is not None and merged.machines is not None
    assert merged.sysctls["*"] == {"a": "s1"} and merged.sysctls["*to"] == {"a": "r1"}
    assert set(merged.links) == {"s1", "left", "r1"}
    assert merged.machines["to"].kernel_release == "of r1"
    assert merged.memory == MemoryRecord(10, 2)


def test_an_end_that_nobody_told_of_fails_the_run() -> None:
    found = agents()
    found["to"] = agent(["r1"])
    with pytest.raises(RunFailedError, match="flow 1: of its two ends only sender left a record"):
        merge_agents(make_plan(), found, dict.fromkeys(found, Correction()), 0)


def test_one_machine_in_error_is_an_error_of_all() -> None:
    found = agents()
    found["middle"] = dataclasses.replace(found["middle"], status="error", error=AgentFailure("x", "y"))
    merged = merge_agents(make_plan(), found, dict.fromkeys(found, Correction()), 0)
    assert merged.status == "error" and merged.error == AgentFailure("x", "y")


def test_counters_of_kernels_are_added_and_those_of_hosts_put_together() -> None:
    def state(node: str, dropped: int, silent: bool) -> Any:
        part = {"time_ns": dropped, "nodes": {node: dropped}, "softnet": {"dropped": dropped}, "netstat": {node: {}}}
        return {"before": part, "after": part, "silent": silent}

    merged = merge_accounting([state("s1", 1, True), state("r1", 2, False)])
    assert merged["silent"] is False
    assert merged["after"] == {
        "time_ns": 2, "nodes": {"s1": 1, "r1": 2}, "softnet": {"dropped": 3}, "netstat": {"s1": {}, "r1": {}},
    }  # fmt: skip
    account = TraceAccount(4096, "mono", entries=5, overrun=1, cpus=[TraceFile(0, "tcp_probe.bin", 9)])
    assert add_accounts([account, account]) == TraceAccount(4096, "mono", entries=10, overrun=2, cpus=[])


def machine_set_plan() -> Plan:
    plan = make_plan()
    collect = dataclasses.replace(plan.collect, tcp_probe=False, slow_start=False)
    return on_engine(plan, "machines", collect=collect)


def test_tables_of_machines_are_joined_in_one_time(tmp_path: Path) -> None:
    plan = machine_set_plan()
    run = RunDirectory(tmp_path / "run")
    run.raw.mkdir(parents=True)
    run.plan.write_text(plan.to_json())
    entries = {}
    for number, (name, node) in enumerate((("src", "s1"), ("to", "r1"))):
        place = run.raw / name
        place.mkdir()
        write_json(place / "part.json", {**json.loads(plan.to_json()), "slice": {}})
        write_json(place / "agent.json", {"flows": [], "links": {}})
        epoch = 100 * S * (number + 1)
        lines = [
            {"time_ns": epoch + at * S, "node": where, "source": "snmp", "values": {"A": at}}
            for at in (0, 10)
            for where in (node, None)
        ]
        (place / "counters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        # The second machine's clock gains a millisecond a second, and was right at the epoch.
        entries[name] = {"epoch_monotonic_ns": epoch, "gain": 1e-3 * number, "right_ns": 0}
    write_json(run.raw / "clock.json", {"format": 1, "epoch_ns": 5, "machines": entries})
    write_json(run.raw / "agent.json", {"flows": [encoded(SENDER)], "epoch_monotonic_ns": 5})
    report = ingest(run)
    assert report.all_problems == []
    table = store.read(run, "counter")
    rows = list(zip(table["node"].cast(pa.string()).to_pylist(), table["time_ns"].to_pylist(), strict=True))
    assert rows == [
        ("s1", 0), ("@src", 0), ("r1", 0), ("@to", 0),
        ("r1", 10 * S - 10_000_000), ("@to", 10 * S - 10_000_000), ("s1", 10 * S), ("@src", 10 * S),
    ]  # fmt: skip
    assert np.all(np.diff(table["time_ns"].to_numpy()) >= 0)
    assert store.read(run, "flow").num_rows == 1


AGENT = told(modules={"ipv6": {"srcversion": None, "parameters": {"disable": "0"}}})


def _ok(engine: str) -> bool | None:
    plan = on_engine(make_plan(), engine, kernel_parameters={"ipv6.disable": "1"})
    (found,) = [check for check in settings_checks(plan, AGENT) if check.name == "module parameters"]
    return found.ok


def test_what_only_a_boot_can_set_is_asked_of_kernels_that_boot_for_the_run() -> None:
    assert _ok("uml") is False
    assert _ok("machines") is not False


def test_the_record_of_a_machine_set_names_no_guest_tree(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    write_json(run.provenance, {"format": 1, "status": "finished", "guest_tree": None})
    assert read_record(run).guest_tree is None
