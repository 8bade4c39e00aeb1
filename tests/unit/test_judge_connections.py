# SPDX-License-Identifier: Apache-2.0
"""The account of connections: planned, recorded, started, ended, opened, accepted, refused; one fault at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from howdah.judge.accounting import Snapshots
from howdah.judge.check import VIRTUAL, failure_summary
from howdah.judge.connections import REFUSED, connection_checks
from howdah.judge.engine import flow_checks
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.told_by_agent import told

COUNT = 30
_STARTED = {"TcpActiveOpens": COUNT, "TcpPassiveOpens": COUNT}


def group(**changes: Any) -> Plan:
    plan = path_factory.path_plan()
    flow = dataclasses.replace(plan.flows[0], group="web", size_bytes=1000, **changes)
    flows = [dataclasses.replace(flow, id=number, name=f"web-{number}") for number in range(1, COUNT + 1)]
    return dataclasses.replace(plan, flows=flows)


def records() -> list[dict[str, Any]]:
    whole = {"start_ns": 0, "connected_ns": 20_000_000, "end_ns": 40_000_000, "bytes_received": 1000, "complete": True}
    return [{"id": number, "sender_cookie": 1, "receiver_cookie": 2, **whole} for number in range(1, COUNT + 1)]


def account(**growth: int) -> Snapshots:
    names = dict.fromkeys([*REFUSED, "TcpExtTCPAbortOnData", "TcpExtTCPAbortOnClose", *_STARTED], 5)
    after = {name: value + {**_STARTED, **growth}.get(name, 0) for name, value in names.items()}
    told: list[Any] = [{"netstat": {"s1": each, "r1": {}}} for each in (names, after)]
    return Snapshots(*told)


def judged(flows: list[dict[str, Any]], rows: list[int] | None = None, **growth: int) -> dict[str, Check]:
    rows = list(range(1, COUNT + 1)) if rows is None else rows
    checks = connection_checks(group(), rows, told(flows=flows), account(**growth))
    assert len(checks) == 4
    return {check.name.removeprefix("connections "): check for check in checks}


def failed(found: dict[str, Check]) -> list[str]:
    return [name for name, check in found.items() if check.ok is not True]


def test_a_whole_account() -> None:
    found = judged(records())
    assert failed(found) == []
    assert found["ended"].message == (
        "30 of 30 connections started: 30 finished, 0 failed, 0 unfinished when the run ended"
    )
    assert (found["opened"].expected, found["opened"].measured, found["opened"].unit) == (30, 30, "connections")


def test_a_connection_that_the_end_of_the_run_cuts_is_unfinished_and_may_be_reset() -> None:
    flows = records()
    flows[4].update(complete=False, bytes_received=400)
    found = judged(flows, TcpExtTCPAbortOnData=2)
    assert failed(found) == []
    assert "29 finished, 0 failed, 1 unfinished" in found["ended"].message


@pytest.mark.parametrize(
    ("change", "rows", "growth", "names", "words"),
    [
        (lambda flows: flows.pop(3), None, {}, ["recorded", "ended", "opened"], "agent.json lacks flow 4"),
        (lambda flows: flows.append({**flows[0], "id": 99}), None, {}, ["recorded"], "and the plan has not, flow 99"),
        (None, [*range(1, COUNT + 1), 7], {}, ["recorded"], "the table flow has twice flow 7"),
        (None, list(range(1, COUNT)), {}, ["recorded"], "the table flow lacks flow 30"),
        (None, [], {}, ["recorded"], "the table flow lacks flow 1, 2, 3 …"),
        (lambda flows: flows[2].update(error="reset"), None, {}, ["ended"], "flow 3 finished and failed"),
        (
            lambda flows: flows[2].update(complete=False),
            None,
            {},
            ["ended"],
            "flow 3 moved all of its bytes and is not",
        ),
        (lambda flows: flows[2].update(start_ns=None), None, {}, ["ended", "opened"], "flow 3 moved data and never"),
        (None, None, {"TcpActiveOpens": 31}, ["opened"], "1 that nobody planned"),
        (None, None, {"TcpActiveOpens": 28}, ["opened"], "2 never left their host"),
        (None, None, {"TcpPassiveOpens": 29}, ["opened"], "the agent has both ends of 30"),
        (None, None, {"TcpPassiveOpens": 31}, ["opened"], "accepted 31"),
        (None, None, {"TcpExtTCPAbortOnClose": 1}, ["opened"], "the kernels reset 1 socket"),
        *((None, None, {name: 2}, ["refused"], f"{name} 2: {REFUSED[name]}") for name in REFUSED),
    ],
)
def test_each_fault_is_named(
    change: Callable[[list[dict[str, Any]]], Any] | None,
    rows: list[int] | None,
    growth: dict[str, int],
    names: list[str],
    words: str,
) -> None:
    flows = records()
    if change is not None:
        change(flows)
    found = judged(flows, rows, **growth)
    assert failed(found) == names
    assert words in " ".join(found[name].message for name in names)


def test_what_the_kernel_does_not_count_one_by_one_is_not_compared() -> None:
    plan = group(traffic="iperf3", sink="iperf3")
    (opened,) = [
        check
        for check in connection_checks(plan, list(range(1, COUNT + 1)), told(flows=records()), account())
        if check.name == "connections opened"
    ]
    assert opened.ok is None
    assert "counts otherwise" in opened.message


def test_a_bulk_flow_alone_has_no_account() -> None:
    assert connection_checks(path_factory.path_plan(), [1], told(), account()) == []


def test_a_group_has_one_check_whose_message_names_some_tens_at_most() -> None:
    flows = records()
    for record in flows[:25]:
        record.update(connected_ns=None)
    (check,) = flow_checks(group().flows, told(flows=flows), VIRTUAL, None)
    assert (check.name, check.ok, check.expected, check.measured) == ("connections web", False, 30, 5)
    assert check.message.count("never connected") == 10
    assert check.message.endswith("; and 15 more")
    (good,) = flow_checks(group().flows, told(flows=records()), VIRTUAL, None)
    assert good.ok is True
    assert failure_summary([good]) == ""
