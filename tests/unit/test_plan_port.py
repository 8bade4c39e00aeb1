# SPDX-License-Identifier: Apache-2.0
"""Ports that a profile names for its flows: where they go, and which are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.agent.traffic.iperf3 import client_command, server_command
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from tests.unit.profile_factory import make_one


def ports(plan: Plan) -> list[int]:
    return [flow.destination_port for flow in plan.flows]


def test_flows_that_name_none_have_the_numbers_from_5001_on(tmp_path: Path) -> None:
    without = make_one(tmp_path, "flows: [{}, {}]\n")
    assert ports(without) == [5001, 5002]
    named = make_one(tmp_path, "flows: [{port: 5001}, {port: 5002}]\n")
    assert named.to_json() == without.to_json(), "the key of a plan is its text"


def test_a_port_changes_nothing_else(tmp_path: Path) -> None:
    without = make_one(tmp_path, "flows: [{}, {}]\n").to_json()
    named = make_one(tmp_path, "flows: [{port: 443}, {}]\n")
    assert ports(named) == [443, 5002]
    assert named.to_json().replace(":443,", ":5001,").replace(": 443,", ": 5001,") == without


def test_receivers_may_share_a_number_and_background_may_have_one(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "flows: [{port: 443}, {port: 443}]\nbackground: [{port: 8080}]\n")
    assert ports(plan) == [443, 443, 8080]
    assert len({flow.receiver for flow in plan.flows[:2]}) == 2


def test_programs_are_told(tmp_path: Path) -> None:
    flow = make_one(tmp_path, "flows: [{port: 443}]\ntraffic: {source: iperf3}\n").flows[0]
    for command in (client_command(flow), server_command(flow)):
        assert command[command.index("--port") + 1] == "443"


@pytest.mark.parametrize("number", ["0", "65536", "-1", "http", "44.5", "true"])
def test_a_number_that_is_no_port(tmp_path: Path, number: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, f"flows: [{{port: {number}}}]\n")
    assert ".yaml:" in str(caught.value.where)


@pytest.mark.parametrize(
    ("extra", "what"),
    [
        (
            "topology: {pairs: 1}\nflows:\n  - {}\n  - {port: 443}\n  - {port: 443}\n",
            "flow2 and flow3 would both use port 443 of r1",
        ),
        ("topology: {pairs: 1}\nflows:\n  - {}\n  - {port: 5001}\n", "flow1 and flow2 would both use port 5001 of r1"),
        ("topology: {pairs: 1}\nflows:\n  - {port: 5002}\n  - {}\n", "flow1 and flow2 would both use port 5002 of r1"),
        (
            "topology: {pairs: 1}\nflows:\n  - {port: 5004}\n"
            "groups:\n  - {name: many, connections: 4, size: 10 kB, role: background}\n",
            "flow1 and many-3 would both use port 5004 of r1",
        ),
        ("flows:\n  - {}\n  - {port: 40002}\n", "port 40002 is one of those that senders connect from"),
    ],
)
def test_a_port_that_is_taken_is_told_with_its_line(tmp_path: Path, extra: str, what: str) -> None:
    with pytest.raises(ProfileError, match=what) as caught:
        make_one(tmp_path, extra)
    assert caught.value.hint is not None
    file, _, line = str(caught.value.where).rpartition(":")
    assert "port:" in Path(file).read_text().splitlines()[int(line) - 1]


def test_datagrams_share_no_port_with_connections(tmp_path: Path) -> None:
    groups = "groups: [{name: noise, connections: 1, role: background, udp: {packet: 1200 B, rate: 1 Mbit/s}}]\n"
    plan = make_one(tmp_path, f"topology: {{pairs: 1}}\nflows: [{{port: 5002}}]\n{groups}")
    assert ports(plan) == [5002, 5002]
    assert plan.flows[1].datagram_bytes is not None
