# SPDX-License-Identifier: Apache-2.0
"""Clocks, processors and round trips of several machines, at what is just allowed and one step beyond it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.judge.check import REAL
from howdah.judge.machines import clock_gain, clock_known, machine_checks, processor, round_trip_checks
from howdah.plan.plan import CalibrationTarget, Plan
from howdah.record.agent import ProcessorRecord
from howdah.record.calibration import CalibrationRecord
from howdah.record.clock import ClockRecord, MachineClock
from howdah.record.verdict import Check
from tests.calibrated import calibrated
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import told

PLAN = make_plan()  # a round trip of 40 ms: 1 ms and 1 % of it, 1.4 ms, are allowed for a delay in real time


@pytest.mark.parametrize(("uncertainty_ns", "ok"), [(4_000_000, True), (4_001_000, False)])
def test_a_clock_is_known_to_a_tenth_of_the_round_trip(uncertainty_ns: int, ok: bool) -> None:
    message = f"the clock of far is known to {uncertainty_ns // 1000} us"
    if not ok:
        message += ", 4000 us are allowed: what happens on two machines cannot be put in order"
    assert clock_known(PLAN, "far", MachineClock(uncertainty_ns=uncertainty_ns)) == Check(
        "clock of far", "engine", ok, message, 0, uncertainty_ns / 1000, 4000.0, "us"
    )


@pytest.mark.parametrize(
    ("gain", "ok", "told"), [(0.001, True, "1000.0"), (-0.001, True, "-1000.0"), (0.0011, False, "1100.0")]
)
def test_a_clock_may_gain_or_lose_a_thousandth(gain: float, ok: bool, told: str) -> None:
    message = f"the clock of far gained {told} us a second" + ("" if ok else ": it does not run at the speed of time")
    assert clock_gain("far", MachineClock(gain=gain)) == Check(
        "clock rate of far", "engine", ok, message, 0, gain, 0.001, "ratio"
    )
    assert clock_gain("far", MachineClock(gain=-0.0011)).ok is False


def watched(**changes: Any) -> dict[str, Any]:
    return {"wakeups": 100, "missed": 0, "late": [], "late_worst_ns": 100_000_000, **changes}


@pytest.mark.parametrize(
    ("found", "ok", "share", "numbers"),
    [
        (watched(), True, 0.0, "0.00% of 100 wake-ups came more than 1.4 ms late, the worst 100 ms"),
        # 1.4 ms are not late, a nanosecond more is: one of 100.
        (
            watched(late=[[0, 1_400_000], [0, 1_400_001]]),
            True,
            0.01,
            "1.00% of 100 wake-ups came more than 1.4 ms late, the worst 100 ms",
        ),
        (
            watched(late=[[0, 1_400_001], [9, 2_000_000]], late_worst_ns=2_000_000),
            False,
            0.02,
            "2.00% of 100 wake-ups came more than 1.4 ms late, the worst 2 ms",
        ),
        # What was missed was due as well: 3 late ones and 3 missed ones of 57 and 3.
        (
            watched(wakeups=57, missed=3, late=[[0, 1_400_001]] * 3),
            False,
            0.1,
            "10.00% of 60 wake-ups came more than 1.4 ms late, the worst 100 ms",
        ),
        (
            watched(late_worst_ns=100_001_000),
            False,
            0.0,
            "0.00% of 100 wake-ups came more than 1.4 ms late, the worst 100 ms",
        ),
    ],
)
def test_a_processor_is_there_when_a_packet_is_due(found: dict[str, Any], ok: bool, share: float, numbers: str) -> None:
    message = f"far: {numbers}" + ("" if ok else ": it was short of processor time, and so was the network in it")
    expected = Check("processor of far", "engine", ok, message, 0, share, 0.01, "ratio")
    assert processor(PLAN, "far", ProcessorRecord(**found), REAL) == [expected]


@pytest.mark.parametrize(("steal", "ok", "told"), [(0.0, True, "0.00%"), (0.01, True, "1.00%"), (0.02, False, "2.00%")])
def test_other_machines_may_take_a_hundredth_of_a_processor(steal: float, ok: bool, told: str) -> None:
    message = f"{told} of the processor time of far went to other virtual machines"
    assert processor(PLAN, "far", ProcessorRecord(**watched(steal=steal)), REAL)[1:] == [
        Check("stolen time of far", "engine", ok, message, 0, steal, 0.01, "ratio")
    ]


@pytest.mark.parametrize("found", [None, {"wakeups": 0, "missed": 1}])
def test_a_processor_that_nobody_watched_fails(found: dict[str, Any] | None) -> None:
    message = "the processor of far was not watched while the flows ran"
    assert processor(PLAN, "far", None if found is None else ProcessorRecord(**found), REAL) == [
        Check("processor of far", "engine", False, message)
    ]


def test_each_machine_has_a_clock_and_a_processor() -> None:
    clocks = ClockRecord(1, machines={name: MachineClock() for name in ("near", "far")})
    agent = told(machines={"far": {"processor": watched(steal=0.5)}})
    found = machine_checks(PLAN, clocks, agent, REAL)
    assert [(check.name, check.ok) for check in found] == [
        ("clock of near", True),
        ("clock rate of near", True),
        ("processor of near", False),
        ("clock of far", True),
        ("clock rate of far", True),
        ("processor of far", True),
        ("stolen time of far", False),
    ]
    assert len(machine_checks(PLAN, clocks, told(), REAL)) == 6
    missing = [Check("clocks", "engine", False, "the record of the machines' clocks is missing")]
    assert machine_checks(PLAN, None, agent, REAL) == machine_checks(PLAN, clocks, None, REAL) == missing


def varied(early_us: int = 0, forward_us: int = 0, reverse_us: int = 0) -> Plan:
    target = CalibrationTarget("s1", "r1", "10.2.0.1", "10.4.0.1", 30_000, 10_000, forward_us, reverse_us)
    calibration = dataclasses.replace(PLAN.calibration, targets=[target], early_us=early_us)
    return dataclasses.replace(PLAN, calibration=calibration)


@pytest.mark.parametrize(
    ("plan", "least_us", "relation"),
    [
        # Each of 30 and 10 ms is exact to 1 ms and 1 %: 1300 + 1100 us.
        (varied(), 37_600, "as configured"),
        (varied(), 42_400, "as configured"),
        (varied(), 37_599, "too short"),
        (varied(), 42_401, "too long"),
        (varied(early_us=500), 37_100, "as configured"),
        (varied(early_us=500), 37_099, "too short"),
        (varied(early_us=500), 42_401, "too long"),
        (varied(forward_us=700, reverse_us=20), 43_120, "as configured"),
        (varied(forward_us=700, reverse_us=20), 43_121, "too long"),
        (varied(forward_us=700, reverse_us=20), 37_599, "too short"),
    ],
)
@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_round_trip_is_the_two_delays(plan: Plan, least_us: int, relation: str, stage: str) -> None:
    other = {"sender": "s2", "receiver": "r1", "round_trip_ns": [1]}
    item = {"sender": "s1", "receiver": "r1", "round_trip_ns": [least_us * 1000, 10**9]}
    (target,) = plan.calibration.targets
    varies = target.variation_us + target.variation_reverse_us
    message = f"the round trip from s1 to r1 is {relation}: {least_us} us, expected 40000 ± 2400"
    ok = relation == "as configured"
    assert round_trip_checks(plan, stage, calibrated({"round_trips": [item, other]}), REAL) == [
        Check("round trip s1-r1", stage, ok, message, 40_000, float(least_us), 2400.0 + varies, "us")
    ]


def test_a_round_trip_without_an_echo_fails_and_one_nobody_asked_for_is_no_check() -> None:
    plan = varied()
    missing = Check("round trip s1-r1", "after", False, "no echo came from r1 to s1", 40_000, None, None, "us")
    silent = {"round_trips": [{"sender": "s1", "receiver": "r1", "round_trip_ns": []}]}
    answers: list[dict[str, Any]] = [{}, {"round_trips": None}, {"round_trips": []}, silent]
    for found in answers:
        assert round_trip_checks(plan, "after", calibrated(found), REAL) == [missing]
    assert (
        round_trip_checks(plan, "after", None, REAL)
        == round_trip_checks(plan, "during", CalibrationRecord(), REAL)
        == []
    )
    off = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, enabled=False))
    assert round_trip_checks(off, "after", CalibrationRecord(), REAL) == []
