# SPDX-License-Identifier: Apache-2.0
"""Groups of connections in a guest: each starts when it should, moves what it should, and is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.connections import read_connections
from howdah.record.directory import RunDirectory
from howdah.record.metrics import MetricRow, read_metrics
from tests.guest.guest_run import boot, failures, plan_of
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

_PATH = """\
howdah: 1
name: group
description: for a test
path: {rate: 10 Mbit/s, reverse_rate: 10 Mbit/s, rtt: 40 ms, buffer: 60 packets}
"""


def _run(
    engine: UmlEngine, path: Path, text: str, expected: str = "pass"
) -> tuple[RunDirectory, dict[int, dict[str, Any]], list[MetricRow]]:
    """The run, what the agent recorded of each flow, and the rows of its measures."""
    profile = path / "group.yaml"
    profile.write_text(_PATH + text, encoding="utf-8")
    directory, verdict = shared_run(engine, plan_of(profile=profile))
    assert (verdict.verdict, failures(verdict)) == (expected, {})
    agent = json.loads((directory.raw / "agent.json").read_text())
    metrics = read_metrics(directory)
    assert [check for check in metrics.cross_checks if not check.agree] == []
    rows = [*metrics.rows, *read_connections(directory).rows()]
    return directory, {flow["id"]: flow for flow in agent["flows"]}, rows


def _of_group(rows: list[MetricRow], group: str) -> dict[str, Any]:
    return {row.metric: row.value for row in rows if row.flow is None and row.group == group}


def test_short_connections_and_lifetimes(engine: UmlEngine, tmp_path: Path) -> None:
    directory, flows, rows = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: short, connections: 130, interval: 50 ms, size: 30001 B, pairs: 2}\n"
        "- {name: asked, connections: 5, interval: 1 s, size: 50 kB, request: 400 B}\n"
        "- {name: back, role: background, direction: reverse, connections: 3, start: 1 s, interval: 1 s,"
        " lifetime: 500 ms}\n"
        "duration: 8 s\n",
    )
    parts = range(1, 131), range(131, 136), range(136, 139)
    short, asked, back = ([flows[number] for number in part] for part in parts)
    assert [flow["start_ns"] for flow in short] == [50_000_000 * number for number in range(130)]
    assert {flow["bytes_received"] for flow in short} == {30_001}
    assert all(flow["complete"] for flow in short + asked)
    # A connection that is asked takes a round trip to connect, and its answer one and a half at least.
    assert all(flow["connected_ns"] - flow["start_ns"] >= 60_000_000 for flow in asked)
    assert {flow["bytes_received"] for flow in asked} == {50_000}
    for flow in back:
        assert 400_000_000 < flow["end_ns"] - flow["start_ns"] < 1_500_000_000
        assert flow["bytes_received"] > 100_000
    probe = store.read(directory, "tcp_probe")
    assert set(probe["flow"].to_pylist()) == set(range(1, 139)), "every connection's ACKs were traced"
    for flow in short:
        assert flow["segments_sent"] - flow["segments_retransmitted"] >= 21  # 30001 / 1448
    whole = _of_group(rows, "short")
    took = [row for row in rows if row.metric == "completion_time_s" and row.flow in parts[0]]
    times = sorted(row.number for row in took if row.number is not None)
    assert len(times) == 130
    assert times[64] <= whole["completion_time_median_s"] <= times[65]
    assert whole["completed_share"] == 1
    assert whole["received_bytes"] == 130 * 30_001
    assert whole["retransmitted_packets"] == sum(flow["segments_retransmitted"] for flow in short)
    drops = next(row.value for row in rows if row.metric == "bottleneck_drops_packets")
    again = sum(flow["segments_retransmitted"] for flow in short + asked)
    assert again == drops, "forward, every drop is repaired by one retransmission"


def test_connections_do_not_outlast_their_end(engine: UmlEngine, tmp_path: Path) -> None:
    """Collectors ask for a connection while it is there: readings end with it."""
    directory, flows, _ = _run(
        engine,
        tmp_path,
        "flows: [{name: bulk, start: 3 s}]\n"
        "groups:\n- {name: early, connections: 4, size: 200 kB, interval: 200 ms}\n"
        "duration: 5 s\n",
    )
    table = store.read(directory, "tcp_info").to_pylist()
    for number in range(2, 6):
        times = [row["time_ns"] for row in table if row["flow"] == number]
        assert times
        assert max(times) < flows[number]["end_ns"] + 300_000_000
    assert max(row["time_ns"] for row in table if row["flow"] == 1) > 4_800_000_000


def test_datagrams_keep_their_rate_and_their_periods(engine: UmlEngine, tmp_path: Path) -> None:
    directory, flows, rows = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: one, connections: 1, size: 500 kB}\n"
        "- {name: steady, role: background, connections: 1, start: 500 ms, lifetime: 6 s,"
        " udp: {rate: 2 Mbit/s, packet: 1000 B}}\n"
        "- {name: waves, role: background, connections: 1, start: 1 s, lifetime: 5 s,"
        " udp: {rate: 1 Mbit/s, packet: 500 B, on_off: {on: 300 ms, off: 700 ms}}}\n"
        "collect: {interfaces: 10 ms}\n"
        "duration: 8 s\n",
    )
    steady, waves = flows[2], flows[3]
    assert steady["start_ns"] == 500_000_000
    # 972 bytes of payload in a frame of 1014: 2 Mbit/s on the wire for six seconds, to a tenth of a per cent.
    assert steady["bytes_sent"] == pytest.approx(2e6 / 8 * 972 / 1014 * 6, rel=1e-3)
    assert waves["bytes_sent"] == pytest.approx(1e6 / 8 * 472 / 514 * 5 * 0.3, rel=2e-3)
    assert steady["complete"] and waves["complete"]
    assert _of_group(rows, "steady")["delivered_share"] == 1
    table = store.read(directory, "interface").to_pylist()
    # What the sender of the waves puts on the wire in each period, from the counters of its interface.
    sent = {row["time_ns"]: row["tx_bytes"] for row in table if row["node"] == "s3"}
    times = sorted(sent)

    def grown(begin_ms: int, end_ms: int) -> int:
        inside = [time for time in times if begin_ms * 1_000_000 <= time <= end_ms * 1_000_000]
        return int(sent[inside[-1]] - sent[inside[0]])

    for period in range(5):
        assert grown(1000 + 1000 * period + 20, 1000 + 1000 * period + 280) > 25_000
        assert grown(1000 + 1000 * period + 320, 1000 + 1000 * period + 980) == 0


def test_web_sessions_and_a_mix(engine: UmlEngine, tmp_path: Path) -> None:
    """Every drawn connection moves its size; with a request it is the answer that is counted."""
    plan_directory, flows, rows = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: web, web: {sessions: 12, largest: 300 kB}}\n"
        "- {name: mid, role: background, direction: reverse, mix: {rate: 3 Mbit/s, most: 400 kB}, pairs: 2}\n"
        "duration: 12 s\n",
    )
    plan = json.loads(plan_directory.plan.read_text())
    web = [flow for flow in plan["flows"] if flow["group"] == "web"]
    mid = [flow for flow in plan["flows"] if flow["group"] == "mid"]
    assert len(web) > 50 and len(mid) > 10
    for flow in web + mid:
        assert flows[flow["id"]]["start_ns"] == flow["start_us"] * 1000
        assert flows[flow["id"]]["bytes_received"] == flow["size_bytes"]
        assert flows[flow["id"]]["complete"]
    assert _of_group(rows, "web")["connections"] == len(web)
    assert _of_group(rows, "mid")["received_bytes"] == sum(flow["size_bytes"] for flow in mid)
    # A page's object takes at least a round trip to connect and one for request and answer.
    took = [row for row in rows if row.metric == "completion_time_s" and row.flow is not None]
    assert min(row.number for row in took if row.number is not None) >= 0.080


def test_processes_at_both_ends(engine: UmlEngine, tmp_path: Path) -> None:
    """Where the module cannot be loaded, processes do the same."""
    _, flows, rows = _run(
        engine,
        tmp_path,
        "traffic: {source: python, sink: python}\n"
        "groups:\n- {name: asked, connections: 6, interval: 300 ms, size: 40 kB, request: 400 B}\n"
        "duration: 4 s\n",
    )
    assert {flow["bytes_received"] for flow in flows.values()} == {40_000}
    assert _of_group(rows, "asked")["completed_share"] == 1


def test_the_same_plan_twice_sends_the_same_packets(engine: UmlEngine, tmp_path: Path) -> None:
    profile = tmp_path / "group.yaml"
    text = (
        "groups:\n"
        "- {name: web, web: {sessions: 6, largest: 200 kB}}\n"
        "- {name: udp, role: background, connections: 2, udp: {rate: 1 Mbit/s, on_off:"
        " {on: 50 ms, off: 80 ms, distribution: pareto}}}\n"
        "calibrate: false\nduration: 6 s\n"
    )
    profile.write_text(_PATH + text, encoding="utf-8")
    plan = plan_of(profile=profile)
    one, two = (boot(engine, plan, tmp_path / name) for name in ("one", "two"))
    for file in ("tcp_probe.bin", "tcp_info.bin", "qdisc.bin"):
        assert (one.raw / file).read_bytes() == (two.raw / file).read_bytes(), file
    agents = [json.loads((directory.raw / "agent.json").read_text()) for directory in (one, two)]
    assert agents[0]["flows"] == agents[1]["flows"]


def test_connections_that_the_end_of_the_run_cuts_are_not_complete_and_no_error(
    engine: UmlEngine, tmp_path: Path
) -> None:
    _, flows, rows = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: large, connections: 3, interval: 500 ms, size: 100 MB}\n"
        "- {name: asked, connections: 1, size: 100 MB, request: 400 B}\n"
        "- {name: long, connections: 2, lifetime: 1 min}\n"
        "duration: 4 s\n",
    )
    for number, flow in flows.items():
        assert flow["error"] is None
        assert flow["complete"] == (number >= 5), "a lifetime has no size: it ends with what was sent"
        assert 10_000 < flow["bytes_received"] < 5_000_000
    assert _of_group(rows, "large")["completed_share"] == 0
