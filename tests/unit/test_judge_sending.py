# SPDX-License-Identifier: Apache-2.0
"""The judge sees a sender with nothing to send, and says what is to be said of it."""

from __future__ import annotations

import dataclasses

import pytest

from howdah.judge.check import VIRTUAL
from howdah.judge.limits import limit_checks, sending_checks
from howdah.measure.sampled import Samples
from howdah.plan.operation import Sysctl
from howdah.plan.plan import Plan
from howdah.plan.traffic import HttpRequests
from howdah.record.verdict import Check
from tests.unit.plan_factory import make_plan
from tests.unit.test_measure_limit import RECOVERY, readings
from tests.unit.trace_factory import make_flow, make_info, make_measured, make_trace
from tests.unit.traffic_factory import make_stack


def check(info: Samples, plan: Plan | None = None, **flow: object) -> Check:
    trace = make_trace([10], [0], [10], flow=make_flow(**flow), stop_ms=1000)
    plan = plan and dataclasses.replace(plan, flows=[trace.flow])
    (found,) = sending_checks(make_measured([trace], plan=plan, info=info), VIRTUAL)
    assert found.name == "nothing to send flow 1"
    return found


STALLED = readings(notsent_bytes=[9, 9, *[0] * 8])
IN_RECOVERY = readings(notsent_bytes=[9, 9, *[0] * 8], ca_state=[0, 0, *[RECOVERY] * 8])


def test_a_sender_that_always_has_data_passes() -> None:
    found = check(readings())
    assert (found.ok, found.measured) == (True, 0.0)


def test_a_bulk_sender_that_stalls_makes_the_run_invalid() -> None:
    found = check(STALLED)
    assert (found.ok, found.measured) == (False, 0.8)
    assert "flow 1 (bulk) had nothing to send for 80.0% of its time while its window had room (0.8 s)" in found.message
    assert "its application stalled, or its send buffer is too small" in found.message


def test_what_stalls_in_a_recovery_is_seen_where_the_kernel_counts_nothing() -> None:
    found = check(IN_RECOVERY)
    assert found.ok is False
    assert "(0.8 s, 0.8 s of it in recoveries)" in found.message
    assert "what lies beyond a gap filled its send buffer" in found.message
    trace = make_trace([10], [0], [10], stop_ms=1000)
    quiet = dataclasses.replace(
        IN_RECOVERY,
        columns={
            **IN_RECOVERY.columns,
            "busy_time_us": IN_RECOVERY["time_ns"] * 0 + 1000,
            "sndbuf_limited_us": IN_RECOVERY["time_ns"] * 0,
        },
    )
    kernel = {each.name: each for each in limit_checks(make_measured([trace], info=quiet), VIRTUAL)}
    assert kernel["send buffer flow 1"].ok is True
    assert "as the kernel counts it" in kernel["send buffer flow 1"].message


def with_sysctl(name: str, value: str, node: str | None = None) -> Plan:
    plan = make_plan()
    operation = Sysctl(node, name, value)
    return dataclasses.replace(plan, operations=[*plan.operations, operation])


@pytest.mark.parametrize(
    ("plan", "flow", "words"),
    [
        (with_sysctl("net.ipv4.tcp_wmem", "4096 8192 8192"), {}, "the profile sets the sender's buffer"),
        (with_sysctl("net.ipv4.tcp_sack", "0"), {}, "without SACK"),
        (with_sysctl("net.ipv4.tcp_sack", "0", "r1"), {}, "without SACK"),
        (make_plan(), {"receiver_behaviour": "no-sack"}, "without SACK"),
        (make_plan(), {"receiver_stack": make_stack("lwip")}, "what the stack lwip does not acknowledge"),
        (make_plan(), {"http": HttpRequests(1, 1, None)}, "requests and answers"),
        (make_plan(), {"traffic": "program"}, "its programs decide what they send"),
        # Large, but not as large as where a profile says nothing.
        (with_sysctl("net.ipv4.tcp_wmem", "4096 87380 200000000"), {}, "the profile sets the sender's buffer"),
    ],
)
def test_what_was_asked_for_is_told_and_makes_no_run_invalid(plan: Plan, flow: dict[str, object], words: str) -> None:
    found = check(IN_RECOVERY, plan, **flow)
    assert (found.ok, found.measured) == (True, 0.8)
    assert words in found.message


def test_another_hosts_sack_is_no_excuse() -> None:
    assert check(IN_RECOVERY, with_sysctl("net.ipv4.tcp_sack", "0", "s2")).ok is False


def test_without_tcp_info_the_check_cannot_be_made() -> None:
    found = check(make_info([]))
    assert found.ok is None
    assert "tcp_info of flow 1 (bulk) was not read" in found.message
