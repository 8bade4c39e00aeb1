# SPDX-License-Identifier: Apache-2.0
"""HTTP transactions in a guest: real programs, the algorithm of the profile, and the same times from all who look."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.connections import read_connections
from howdah.record.metrics import Metrics, read_metrics
from tests.guest.guest_run import failures, plan_of, run
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

_PROFILE = """\
howdah: 1
name: http
description: for a test
path: {rate: 20 Mbit/s, rtt: 100 ms, buffer: 1 bdp}
"""


def _run(engine: UmlEngine, path: Path, text: str, anew: bool = False) -> tuple[Any, dict[str, Any], Metrics]:
    """The run directory, agent.json and metrics.json of a valid run with the rows of its connections; ``anew`` of one
    that is made now."""
    profile = path / "http.yaml"
    profile.write_text(_PROFILE + text, encoding="utf-8")
    plan = plan_of(profile=profile)
    directory, verdict = run(engine, plan, path / "run") if anew else shared_run(engine, plan)
    assert (verdict.verdict, failures(verdict)) == ("pass", {})
    agent = json.loads((directory.raw / "agent.json").read_text())
    metrics = read_metrics(directory)
    metrics.rows += read_connections(directory).rows()
    return directory, agent, metrics


def test_several_requests_over_one_connection(engine: UmlEngine, tmp_path: Path) -> None:
    directory, agent, metrics = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: web, connections: 2, interval: 4 s, http: {object: 2 MB, requests: 3}}\n"
        "- {name: paced, start: 1 s, connections: 1, algorithm: bbr, http: {object: 200 kB, requests: 3, every: 2 s}}\n"
        "algorithm: reno\nduration: 9 s\n",
    )
    flows = agent["flows"]
    assert [flow["complete"] for flow in flows] == [True, True, True]
    assert [flow["kernel_algorithm"] for flow in flows] == ["reno", "reno", "bbr"], "of the server's own socket"
    assert agent["tools"]["nginx"].startswith("nginx version: nginx/")
    assert agent["tools"]["curl"].startswith("curl ")
    for flow, size in zip(flows, (2_000_000, 2_000_000, 200_000), strict=True):
        made = flow["transactions"]
        assert [item["body_bytes"] for item in made] == [size] * 3
        assert [item["connects"] for item in made] == [1, 0, 0], "kept alive"
        assert flow["bytes_sent"] == flow["bytes_received"] == 3 * size, "server and client agree"
        # Connecting takes a round trip, the request and the first byte of its answer another one.
        assert 100_000_000 <= made[0]["connected_ns"] - flow["start_ns"] < 200_000_000
        for item in made:
            assert item["first_ns"] - item["start_ns"] >= 100_000_000
        assert made[0]["first_ns"] - made[0]["start_ns"] >= 200_000_000
    alone = flows[0]["transactions"]
    assert [item["start_ns"] for item in alone[1:]] == [item["end_ns"] for item in alone[:-1]]
    starts = [item["start_ns"] for item in flows[2]["transactions"]]
    assert [start - starts[0] for start in starts] == [0, 2_000_000_000, 4_000_000_000]
    checks = {(check.flow, check.metric): check for check in metrics.cross_checks}
    for group, compared in (("web", 2), ("paced", 1)):
        for name in ("completion_time_s", "transaction_time_s"):
            check = checks[group, name]
            assert check.agree and check.sources["compared"] == compared, check
    rows = {(row.group, row.flow, row.metric): row.value for row in metrics.rows}
    assert rows["web", None, "transactions"] == 6
    assert rows["web", None, "answered_share"] == 1
    assert rows["web", 1, "retransmitted_packets"] == flows[0]["segments_retransmitted"] > 0
    drops = next(row.value for row in metrics.rows if row.metric == "bottleneck_drops_packets")
    assert drops <= sum(flow["segments_retransmitted"] for flow in flows)
    assert set(store.read(directory, "tcp_probe")["flow"].to_pylist()) == {1, 2, 3}


def test_a_transaction_larger_than_the_run_is_cut_off_in_order(engine: UmlEngine, tmp_path: Path) -> None:
    """1 GiB takes the server no memory, and what was acknowledged by the end counts."""
    directory, agent, metrics = _run(
        engine, tmp_path, "groups:\n- {name: big, connections: 1, http: {object: 1 GiB}}\nduration: 3 s\n"
    )
    (flow,) = agent["flows"]
    assert flow["error"] is None
    assert not flow["complete"]
    assert flow["transactions"] == []
    assert 3_000_000 < flow["bytes_received"] < 20e6 / 8 * 3
    values = {row.metric: row.value for row in metrics.rows if row.group == "big" and row.flow == 1}
    assert values["completion_time_s"] is None
    assert values["transactions"] == 0
    assert values["first_transaction_time_s"] is None
    memory = json.loads((directory.raw / "agent.json").read_text())["memory"]
    assert memory["available_bytes_least"] > 0.3 * memory["total_bytes"]


def test_the_same_plan_gives_the_same_rows(engine: UmlEngine, tmp_path: Path) -> None:
    text = "groups:\n- {name: web, connections: 1, http: {object: 500 kB, requests: 2}}\nduration: 3 s\n"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = (_run(engine, tmp_path / name, text, anew=True)[0] for name in ("a", "b"))
    assert store.equal(first, second) is None


def test_processes_that_think_between_their_requests(engine: UmlEngine, tmp_path: Path) -> None:
    directory, agent, metrics = _run(
        engine,
        tmp_path,
        "groups:\n"
        "- {name: loop, connections: 1, request: 400 B, size: 250 kB, requests: 3, think: 1 s}\n"
        "- {name: cut, connections: 1, start: 100 ms, request: 400 B, size: 1 MB, requests: 100}\n"
        "- {name: idle, connections: 1, request: 400 B, size: 10 kB, requests: 3, think: 60 s}\n"
        "algorithm: reno\nduration: 7 s\n",
    )
    loop, cut, idle = agent["flows"]
    assert (len(idle["transactions"]), idle["bytes_sent"], idle["bytes_received"]) == (1, 10_000, 10_000)
    assert (idle["complete"], idle["error"]) == (False, None), "the run ends while it thinks"
    made = loop["transactions"]
    assert loop["complete"]
    assert loop["bytes_sent"] == loop["bytes_received"] == 750_000
    assert [item["body_bytes"] for item in made] == [250_000] * 3
    for before, after in itertools.pairwise(made):
        assert 1_000_000_000 <= after["start_ns"] - before["end_ns"] < 1_001_000_000
    assert made[0]["start_ns"] == loop["start_ns"]
    assert made[0]["first_ns"] - made[0]["start_ns"] >= 200_000_000, "connecting belongs to the first"
    assert 1 < len(cut["transactions"]) < 100
    assert not cut["complete"]
    assert cut["error"] is None
    assert all(check.agree for check in metrics.cross_checks), metrics.cross_checks
    rows = {(row.group, row.flow, row.metric): row.value for row in metrics.rows}
    assert rows["loop", None, "answered_share"] == 1
    assert rows["cut", None, "transactions"] == len(cut["transactions"])
    (answered,) = (row.number for row in metrics.rows if (row.group, row.metric) == ("cut", "answered_share"))
    assert answered is not None and 0 < answered < 1
    assert set(store.read(directory, "tcp_probe")["flow"].to_pylist()) == {1, 2, 3}
