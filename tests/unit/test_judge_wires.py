# SPDX-License-Identifier: Apache-2.0
"""Wires between kernels and logs of QUIC stacks: healthy accounts, and each one doctored."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.check import VIRTUAL
from howdah.judge.collection import qlog_checks
from howdah.judge.machines import wire_checks
from howdah.plan.kernel import Part
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from howdah.record.wire import CarriedFrames, WireRecord
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import read_as
from tests.unit.traffic_factory import make_quic


def divided() -> Plan:
    """Two kernels, the second one with the receiver r1."""
    plan = make_plan()
    return dataclasses.replace(plan, parts=[Part(name="receivers", kernel=plan.kernel, hosts=["r1"])])


def end(plan: Plan, host: str = "r1", **counts: Any) -> dict[str, int]:
    number = [each.name for each in plan.hosts].index(host)
    zero = dict.fromkeys([field.name for field in dataclasses.fields(CarriedFrames)], 0)
    return {**zero, "wire": number, "arrives": True, **counts}


def wires(first: dict[str, int], second: dict[str, int], plan: Plan) -> dict[str, Any]:
    """Each kernel's end of the wire, and one of another host, which is nobody's concern."""
    other = end(plan, "s1", left_frames=9, lost_frames=9, latest_ns=10**9)
    return {"format": 1, "parts": {"main": [first, other], "receivers": [second]}}


def judged(plan: Plan, record: dict[str, Any] | None) -> dict[str, Check]:
    return {
        check.name: check
        for check in wire_checks(plan, None if record is None else read_as(WireRecord, record), VIRTUAL)
    }


def test_what_left_by_a_wire_arrived_and_in_time() -> None:
    plan = divided()
    step_ns = round(VIRTUAL.clock_step_us * 1000)
    ends = (
        end(plan, left_frames=100, arrived_frames=40, latest_ns=step_ns, late_frames=3),
        end(plan, left_frames=40, arrived_frames=100, late_frames=2),
    )
    found = judged(plan, wires(*ends, plan))
    assert [(name, check.ok) for name, check in found.items()] == [
        ("wire to r1", True),
        ("delay of the wire to r1", True),
    ]
    assert (found["wire to r1"].expected, found["wire to r1"].measured, found["wire to r1"].unit) == (
        140,
        140,
        "frames",
    )
    assert found["wire to r1"].message == "140 frames left by the wire to r1, 140 arrived"
    late = found["delay of the wire to r1"]
    assert (late.measured, late.tolerance, late.unit) == (VIRTUAL.clock_step_us, VIRTUAL.clock_step_us, "us")
    assert "5 frames arrived at r1 after their time" in late.message
    assert (late.expected, late.message) == (0, "5 frames arrived at r1 after their time, by 1 us at most")
    assert {check.stage for check in found.values()} == {"engine"}


@pytest.mark.parametrize(
    ("counts", "name", "words"),
    [
        ({"left_frames": 101}, "wire to r1", "101 frames left by the wire to r1, 100 arrived"),
        ({"left_frames": 99}, "wire to r1", "99 frames left by the wire to r1, 100 arrived"),
        ({"lost_frames": 1}, "wire to r1", "100 arrived, 1 found no room"),
        (
            {"latest_ns": 1000 + round(VIRTUAL.clock_step_us * 1000), "late_frames": 7},
            "delay of the wire to r1",
            "7 frames",
        ),
    ],
)
def test_a_wire_that_loses_or_is_late_fails(counts: dict[str, int], name: str, words: str) -> None:
    plan = divided()
    asked: dict[str, Any] = {"left_frames": 100, **counts}
    first = end(plan, **asked)
    found = judged(plan, wires(first, end(plan, arrived_frames=100), plan))
    assert [each for each, check in found.items() if not check.ok] == [name]
    assert words in found[name].message


def test_a_wire_of_which_nothing_is_recorded_fails() -> None:
    plan = divided()
    message = "the record of the wires between the kernels is missing"
    assert wire_checks(plan, None, VIRTUAL) == [Check("wires", "engine", False, message)]
    assert list(judged(plan, {"format": 1, "parts": {"main": []}}).values()) == [
        Check("wire to r1", "engine", False, "0 frames left by the wire to r1, 0 arrived", 0, 0, 0, "frames"),
        Check(
            "delay of the wire to r1",
            "engine",
            True,
            "0 frames arrived at r1 after their time, by 0 us at most",
            0,
            0.0,
            VIRTUAL.clock_step_us,
            "us",
        ),
    ]
    assert judged(plan, {"format": 1, "parts": {"main": []}})["wire to r1"].ok is False
    assert wire_checks(make_plan(), None, VIRTUAL) == [], "one kernel has no wires"


def quic(**account: Any) -> list[Check]:
    plan = make_plan()
    plan = dataclasses.replace(
        plan, flows=[dataclasses.replace(plan.flows[0], program=make_quic("ngtcp2")), *plan.flows[1:]]
    )
    counts = {
        "packets": 10,
        "bytes": 9000,
        "captured_datagrams": 9,
        "captured_bytes": 9000,
        "padding_bytes": 0,
        **account,
    }
    source = SourceReport(counts={"flows": [{"flow": str(plan.flows[0].id), **counts}]})
    return qlog_checks(plan, IngestReport(sources={"qlog": source}))


@pytest.mark.parametrize(
    ("account", "ok", "words"),
    [
        ({}, True, "has 10 packets of 9000 bytes, the capture at its sender 9 datagrams of 9000 bytes"),
        ({"captured_bytes": 9200, "padding_bytes": 200}, True, "up to 200 bytes of padding are not in it"),
        ({"captured_bytes": 9201, "padding_bytes": 200}, False, "the log lacks 201 bytes"),
        ({"captured_bytes": 9001}, False, "the log lacks 1 bytes"),
        ({"captured_bytes": 8999, "padding_bytes": 200}, False, "the log has more by 1 bytes"),
        ({"captured_bytes": None}, False, "was not captured at its sender's interface"),
    ],
)
def test_a_log_has_what_was_captured_to_the_byte(account: dict[str, Any], ok: bool, words: str) -> None:
    (check,) = quic(**account)
    assert (check.ok, check.stage, check.unit) == (ok, "collection", "bytes")
    assert words in check.message
    if account.get("captured_bytes", 0) is not None:
        assert (check.expected, check.measured) == (account.get("captured_bytes", 9000), 9000)
        assert check.tolerance == account.get("padding_bytes", 0)


def test_a_flow_without_a_log_fails_and_one_of_tcp_needs_none() -> None:
    plan = make_plan()
    assert qlog_checks(plan, IngestReport(sources={})) == []
    plan = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], program=make_quic("ngtcp2"))])
    for report in (IngestReport(sources={}), IngestReport(sources={"qlog": SourceReport(counts={})})):
        (check,) = qlog_checks(plan, report)
        assert check.ok is False
        assert check.name == f"qlog flow {plan.flows[0].id}"
        title = plan.flows[0].title
        message = f"{title} has no qlog that could be read"
        assert check == Check(check.name, "collection", False, message, unit="bytes")
