# SPDX-License-Identifier: Apache-2.0
"""HTTP transactions: what a profile may ask for, what is planned, and what client and server say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from howdah.agent.traffic.http_client import client_command, complaints, parse_transactions
from howdah.agent.traffic.http_server import configuration, served_bytes
from howdah.errors import ProfileError
from howdah.measure.group import traced_ends_ns, transaction_rows
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Flow, Plan
from howdah.plan.text import render
from howdah.plan.traffic import HttpRequests
from howdah.record.agent import FlowRecord
from howdah.record.connections import Connections
from tests.unit.profile_factory import make_one
from tests.unit.told_by_agent import flow_record

WEB = "groups:\n- {name: web, connections: 2, interval: 1 s, http: {object: 1 GiB, requests: 3, every: 4 s}}\n"
SAID = """\
transaction 200 2000000 1 0.100006 0.200009 1.350458
curl: (56) Recv failure: Connection reset by peer
transaction 200 2000000 0 0.000000 0.100006 0.971465
transaction 200
"""


def test_a_group_of_transactions_becomes_flows_opened_by_the_receiver(tmp_path: Path) -> None:
    plan = make_one(tmp_path, WEB)
    assert [flow.start_us for flow in plan.flows] == [0, 1_000_000]
    assert {(flow.traffic, flow.sink, flow.opener) for flow in plan.flows} == {("http", "http", "receiver")}
    assert plan.flows[0].size_bytes == 3 << 30
    assert plan.flows[0].http == HttpRequests(object_bytes=1 << 30, requests=3, every_us=4_000_000)
    assert "howdah_traffic" not in (plan.required_modules or [])
    assert Plan.from_json(plan.to_json()) == plan
    assert "nginx to curl, 3 requests of" in render(plan)


def test_plans_of_other_flows_do_not_speak_of_it(tmp_path: Path) -> None:
    assert '"http"' not in make_one(tmp_path, "").to_json()


@pytest.mark.parametrize(
    ("http", "also", "what"),
    [
        ("{object: 0 B}", "", "groups.1.http.object"),
        ("{object: 1 MB, every: 1 s}", "", "there is one request"),
        ("{object: 1 MB, requests: 2, every: 7 ms}", "", "that divide a day"),
        ("{object: 1 MB, requests: 0}", "", "groups.1.http.requests"),
        ("{object: 1 MB}", ", size: 1 MB", "size cannot be combined with http"),
        ("{object: 1 MB}", ", request: 300 B", "request cannot be combined with http"),
    ],
)
def test_what_cannot_be_asked_for(tmp_path: Path, http: str, also: str, what: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, f"groups:\n- {{name: web, connections: 1, http: {http}{also}}}\n")
    assert what in str(caught.value)


def test_too_many_programs(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="at most 50 connections"):
        make_one(tmp_path, "groups:\n- {name: web, connections: 51, http: {object: 1 MB}}\n")


def test_the_client_uses_the_addresses_and_ports_of_the_plan(tmp_path: Path) -> None:
    flow = make_one(tmp_path, WEB).flows[1]
    command = client_command(flow)
    assert command[command.index("--local-port") + 1] == str(flow.destination_port)
    assert command[command.index("--interface") + 1] == flow.destination_address
    assert command[command.index("--rate") + 1] == "21600/d"
    assert command[-1] == f"http://{flow.source_address}:{flow.source_port}/object#[1-3]"
    once = client_command(dataclasses.replace(flow, http=HttpRequests(1, 1, None)))
    assert "--rate" not in once
    assert once[-1].endswith("/object")


def test_what_the_client_says_of_its_transactions() -> None:
    first, second = parse_transactions(SAID, None)
    assert (first.start_ns, first.connected_ns, first.first_ns, first.end_ns) == (
        0,
        100_006_000,
        200_009_000,
        1_350_458_000,
    )
    assert (second.start_ns, second.end_ns) == (1_350_458_000, 1_350_458_000 + 971_465_000)
    assert (second.connects, second.status, second.body_bytes) == (0, 200, 2_000_000)
    assert complaints(SAID) == "curl: (56) Recv failure: Connection reset by peer"


def test_requests_that_wait_for_their_time() -> None:
    assert [item.start_ns for item in parse_transactions(SAID, 4_000_000)] == [0, 4_000_000_000]
    assert [item.start_ns for item in parse_transactions(SAID, 1_000_000)] == [0, 1_350_458_000]


def test_the_server_says_what_it_sent() -> None:
    text = "1700000007.960 200 2000000 0.709 1\n1700000009.018 200 500 0.517 2\n"
    assert served_bytes(text) == 2_000_500
    assert served_bytes("") == 0


def test_the_servers_configuration() -> None:
    text = configuration(Path("/tmp/x/7"), Path("/raw"), 7, "10.0.0.1", 40008)
    for line in ("listen 10.0.0.1:40008;", "root /tmp/x/7/root;", "access_log /raw/7-server.txt howdah;"):
        assert line in text
    assert "{" in text and text.count("{") == text.count("}")


def _trace(flow: Flow, times_s: list[float], acknowledged: list[int]) -> FlowTrace:
    """Each ACK's record holds what was acknowledged before it; one more follows, so that the last is seen."""
    count = len(times_s)
    zeros = np.zeros(count + 1, dtype=np.int64)
    times = np.array([*times_s, times_s[-1]]) * 1e9
    una = np.array([0, *acknowledged], dtype=np.int64)
    time_ns = times.astype(np.int64)
    return FlowTrace(flow, 1448, 0, 0, 10**10, time_ns, una, una, zeros, zeros.astype(float), zeros + 100_000_000)


def _record(ends_s: list[float]) -> FlowRecord:
    starts = [0.0, *ends_s[:-1]]
    made = [{"start_ns": int(a * 1e9), "end_ns": int(b * 1e9)} for a, b in zip(starts, ends_s, strict=True)]
    return flow_record(transactions=made, complete=True)


def _flow(path: Path) -> Flow:
    return make_one(path, "groups:\n- {name: web, connections: 1, http: {object: 10 kB, requests: 2}}\n").flows[0]


def test_the_trace_tells_when_each_answer_was_acknowledged(tmp_path: Path) -> None:
    trace = _trace(_flow(tmp_path), [0.5, 1.0, 1.5, 2.0], [5_000, 10_200, 15_200, 20_400])
    assert traced_ends_ns(trace, 2, 10_000) == [1_000_000_000, 2_000_000_000]


@pytest.mark.parametrize(("end_s", "agree"), [(1.88, True), (1.0, False)])
def test_client_and_trace_are_compared(tmp_path: Path, end_s: float, agree: bool) -> None:
    trace = _trace(_flow(tmp_path), [0.5, 1.0, 1.5, 2.0], [5_000, 10_200, 15_200, 20_400])
    sheet = Sheet({})
    transaction_rows(sheet, trace, _record([0.9, end_s]))
    values = {row.metric: row.value for row in Connections(sheet.connections.table()).rows()}
    assert values["transactions"] == 2
    assert values["first_transaction_time_s"] == 0.9
    assert values["last_transaction_time_s"] == pytest.approx(end_s - 0.9)
    (check,) = sheet.compared
    assert check.agree is agree
    assert check.sources == {"compared": 1, "agree": int(agree)}
