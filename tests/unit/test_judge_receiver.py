# SPDX-License-Identifier: Apache-2.0
"""What the judge allows a receiver that is not Linux, and nobody else."""

from __future__ import annotations

import dataclasses

import pytest

from howdah.judge.check import VIRTUAL
from howdah.judge.during import minimum_rtt
from howdah.judge.limits import limit_checks
from howdah.measure.trace import FlowTrace
from tests.unit import path_factory
from tests.unit.trace_factory import make_info, make_measured, make_trace
from tests.unit.traffic_factory import make_stack


def trace_to(receiver: str, rtt_ms: float = 40) -> FlowTrace:
    """A flow to a receiver of that behaviour whose every RTT is ``rtt_ms``."""
    times = [rtt_ms + index for index in range(6)]
    found = make_trace(times, [2 * index for index in range(6)], [10 + 2 * index for index in range(6)])
    return dataclasses.replace(found, flow=dataclasses.replace(found.flow, receiver_behaviour=receiver))


@pytest.mark.parametrize(("receiver", "ok"), [("linux", False), ("windows-xp", False), ("no-sack", True)])
def test_a_window_holds_back_what_waits_for_a_receiver_without_sack(receiver: str, ok: bool) -> None:
    info = make_info(
        [0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 200_000], sndbuf_limited_us=[0, 200_000]
    )
    plan = path_factory.path_plan()
    flows = [dataclasses.replace(flow, receiver_behaviour=receiver) for flow in plan.flows]
    data = make_measured([trace_to(receiver)], plan=dataclasses.replace(plan, flows=flows), info=info)
    checks = {check.name: check for check in limit_checks(data, VIRTUAL)}
    assert checks["receive window flow 1"].ok is ok
    assert ("without SACK" in checks["receive window flow 1"].message) is ok
    assert checks["send buffer flow 1"].ok is False


def test_a_receiver_of_today_may_offer_no_more() -> None:
    info = make_info(
        [0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 200_000], sndbuf_limited_us=[0, 200_000]
    )
    plan = path_factory.path_plan()
    flows = [dataclasses.replace(flow, receiver_behaviour="macos") for flow in plan.flows]
    data = make_measured([trace_to("macos")], plan=dataclasses.replace(plan, flows=flows), info=info)
    checks = {check.name: check for check in limit_checks(data, VIRTUAL)}
    assert checks["receive window flow 1"].ok is True
    assert "the receiver macos offers no more" in checks["receive window flow 1"].message
    assert checks["send buffer flow 1"].ok is False


def test_the_window_of_another_stack_is_its_own() -> None:
    """It is what is measured; the sender's buffer is ours all the same."""
    info = make_info(
        [0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 900_000], sndbuf_limited_us=[0, 200_000]
    )
    plan = path_factory.path_plan()
    flows = [dataclasses.replace(flow, receiver_stack=make_stack("lwip")) for flow in plan.flows]
    data = make_measured([trace_to("linux")], plan=dataclasses.replace(plan, flows=flows), info=info)
    checks = {check.name: check for check in limit_checks(data, VIRTUAL)}
    assert checks["receive window flow 1"].ok is True
    assert "for 90.0% of its time, as the kernel counts it: the stack lwip offers no more" in (
        checks["receive window flow 1"].message
    )
    assert checks["send buffer flow 1"].ok is False


@pytest.mark.parametrize(
    ("receiver", "rtt_ms", "ok"),
    [
        ("linux", 44, False),
        ("delayed-ack", 44, False),
        ("stretch-ack", 44, True),  # seven more frames at 20 Mbit/s take 4.2 ms
        ("stretch-ack", 80, True),  # and a window of less than eight waits for the timer
        ("stretch-ack", 90, False),
    ],
)
def test_the_shortest_rtt_contains_what_one_ack_waits_for(receiver: str, rtt_ms: float, ok: bool) -> None:
    trace = trace_to(receiver, rtt_ms)
    assert minimum_rtt(make_measured([trace]), trace, VIRTUAL).ok is ok
