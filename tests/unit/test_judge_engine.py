# SPDX-License-Identifier: Apache-2.0
"""Whether the guest did what the plan says, when it says: a healthy record, and one doctored so that it must fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from howdah.judge.check import REAL, VIRTUAL
from howdah.judge.engine import engine_checks, flow_checks, placement
from howdah.judge.settings import settings_checks
from howdah.plan.plan import Flow, Host, Plan
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.plan_factory import on_engine
from tests.unit.recorded_lines import compare_checks
from tests.unit.told_by_agent import agent_of, told

Doctor = Callable[[dict[str, Any]], Any]


def failed(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.message for check in checks if check.ok is False}


def engine(doctor: Doctor | None = None, plan: Plan | None = None) -> list[Check]:
    found = path_factory.agent()
    if doctor is not None:
        doctor(found)
    return engine_checks(plan or path_factory.path_plan(), agent_of(found), VIRTUAL)


def _phase(found: dict[str, Any], number: int, **changes: int) -> None:
    found["phases"][number].update(changes)


def test_a_late_phase_is_excused_by_a_processor_that_was_busy_from_then_on() -> None:
    """Due at 2 s, ended at 2.5 s; of these 500 ms a processor may have been idle for 25."""
    plan = path_factory.path_plan()
    late = path_factory.agent()
    _phase(late, 2, end_ns=2_500_000_000)
    for idle_ns, ok in ((25_000_000, True), (25_000_001, False)):
        asked: list[tuple[int, int]] = []

        def idle(begin_ns: int, end_ns: int, idle_ns: int = idle_ns, asked: list[tuple[int, int]] = asked) -> int:
            asked.append((begin_ns, end_ns))
            return idle_ns

        checks = {check.name: check for check in engine_checks(plan, agent_of(late), VIRTUAL, idle)}
        assert checks["clock flows"].ok is ok
        assert (2_000_000_000, 2_500_000_000) in asked
        assert checks["clock flows"].message.startswith("phase flows ended at 2.500000 s, the plan allows until 2.0")


def test_a_phase_without_a_calibration_is_not_asked_for() -> None:
    plan = path_factory.path_plan()
    off = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, enabled=False))
    assert [check.name for check in engine(plan=off) if check.name.startswith("clock")] == [
        "clock setup",
        "clock flows",
    ]


AWAY = ": the guest's clock ran away, because something made it wait for the host"


@pytest.mark.parametrize(
    ("number", "phase", "allowed_us", "end_us", "words"),
    [
        # Each phase may end 10 ms after its time; the flows may not end 10 ms before theirs either.
        (0, "setup", -3_000_000, -2_990_000, ""),
        (0, "setup", -3_000_000, -2_989_999, AWAY),
        (1, "calibrate-before", -500_000, -490_000, ""),  # 2 s of measuring and 0.5 s of silence after -3 s
        (1, "calibrate-before", -500_000, -489_999, AWAY),
        (2, "flows", 2_000_000, 2_010_000, ""),
        (2, "flows", 2_000_000, 2_010_001, AWAY),
        (2, "flows", 2_000_000, 1_990_000, ""),
        (2, "flows", 2_000_000, 1_989_999, ": it was cut short"),
        (3, "quiesce", 3_000_000, 3_010_000, ""),
        (3, "quiesce", 3_000_000, 3_010_001, AWAY),
        (3, "quiesce", 3_000_000, 0, ""),
        (4, "calibrate-after", 5_500_000, 5_510_000, ""),
        (4, "calibrate-after", 5_500_000, 5_510_001, AWAY),
    ],
)
def test_a_phase_ends_when_the_plan_says(number: int, phase: str, allowed_us: int, end_us: int, words: str) -> None:
    (check,) = [
        each
        for each in engine(lambda found: _phase(found, number, end_ns=end_us * 1000))
        if each.name == f"clock {phase}"
    ]
    message = f"phase {phase} ended at {end_us / 1e6:.6f} s, the plan allows until {allowed_us / 1e6:.6f} s{words}"
    expected = Check(f"clock {phase}", "engine", not words, message, allowed_us, float(end_us), 10_000, "us")
    assert check == expected
    missing = engine(lambda found: found["phases"].pop(number))
    message = f"phase {phase} did not happen"
    assert Check(f"clock {phase}", "engine", False, message, allowed_us, None, None, "us") in missing


def test_a_set_up_may_last_until_zero_where_nothing_is_measured_before() -> None:
    plan = path_factory.path_plan()
    late = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, before_us=5))
    (check,) = [each for each in engine(plan=late) if each.name == "clock setup"]
    assert check.expected == 0
    assert failed(engine(lambda found: found.update(phases=[])))["clock flows"] == "phase flows did not happen"


def test_what_excuses_a_late_phase_is_said() -> None:
    found = path_factory.agent()
    _phase(found, 2, end_ns=2_500_000_000)
    checks = {
        each.name: each for each in engine_checks(path_factory.path_plan(), agent_of(found), VIRTUAL, lambda *_: 0)
    }
    message = "phase flows ended at 2.500000 s, the plan allows until 2.000000 s"
    message += ", because the processor was busy without a pause"
    assert (checks["clock flows"].ok, checks["clock flows"].message) == (True, message)


def test_time_zero_is_at_the_uptime_of_the_plan_or_after_the_network() -> None:
    for found_ns, ok in ((5_000_000_000, True), (4_999_999_999, False), (None, False)):
        checks = engine(lambda found, ns=found_ns: found.update(epoch_monotonic_ns=ns))  # type: ignore[misc]
        message = f"time zero was at an uptime of {found_ns} ns, the plan says 5000000000 ns"
        assert Check("epoch", "engine", ok, message, 5_000_000_000, found_ns, 0, "ns") in checks
    real = on_engine(path_factory.path_plan(), "host")
    for found_ns, ok in ((7, True), (None, False)):
        checks = engine(lambda found, ns=found_ns: found.update(epoch_monotonic_ns=ns), real)  # type: ignore[misc]
        assert Check("epoch", "engine", ok, "the epoch follows from when the network was built") in checks


def test_where_the_agent_stopped_is_said() -> None:
    for found, words in (
        ({"status": "error"}, "None: None"),
        ({"status": None, "error": {"operation": "x"}}, "x: None"),
    ):
        checks = engine(lambda record, found=found: record.update(found))  # type: ignore[misc]
        assert Check("agent", "engine", False, f"the agent stopped at {words}") in checks
    assert Check("agent", "engine", True, "every operation of the plan was carried out") in engine()
    missing = Check("agent", "engine", False, "agent.json is missing: the guest did not finish")
    assert engine_checks(path_factory.path_plan(), None, VIRTUAL) == [missing]


FLOW = dataclasses.replace(path_factory.path_plan().flows[0], start_us=500_000, stop_us=2_000_000)
SIZED = dataclasses.replace(FLOW, size_bytes=4_000_000)
PYTHON, PROGRAM = (dataclasses.replace(FLOW, traffic=traffic) for traffic in ("python", "program"))
FLOWS: dict[str, tuple[Flow, dict[str, Any], bool]] = {
    "as planned": (FLOW, {}, True),
    "of another number": (FLOW, {"id": 2}, False),
    "not started": (FLOW, {"start_ns": None}, False),
    "refused": (FLOW, {"error": "refused", "connected_ns": None}, False),
    "an error without words": (FLOW, {"error": ""}, True),
    "not connected": (FLOW, {"connected_ns": None}, False),
    "10 ms late": (FLOW, {"start_ns": 510_000_000}, True),
    "10 ms early": (FLOW, {"start_ns": 490_000_000}, True),
    "10.001 ms late": (FLOW, {"start_ns": 510_001_000}, False),
    "10.001 ms early": (FLOW, {"start_ns": 489_999_000}, False),
    "no data": (FLOW, {"bytes_received": 0}, False),
    "one byte": (FLOW, {"bytes_received": 1}, True),
    "the planned control": (FLOW, {"kernel_algorithm": "cubic"}, True),
    "another control": (FLOW, {"kernel_algorithm": "reno"}, False),
    "a bulk flow that ends 10 ms before its time": (FLOW, {"end_ns": 1_990_000_000}, True),
    "10.001 ms before it": (FLOW, {"end_ns": 1_989_999_000}, False),
    "a second before it, and not complete": (FLOW, {"end_ns": 10**9, "complete": False}, True),
    "one of fixed size, a second before it": (SIZED, {"end_ns": 10**9}, True),
    "a process, a second before it": (PYTHON, {"end_ns": 10**9}, False),
    "a program, a second before it": (PROGRAM, {"end_ns": 10**9}, True),
    "a byte too few": (SIZED, {"bytes_received": 3_999_999}, False),
    "a byte too many": (SIZED, {"bytes_received": 4_000_001}, False),
    "too few, and not complete": (SIZED, {"bytes_received": 5, "complete": False}, True),
    "too few at the end of the run": (SIZED, {"bytes_received": 5, "end_ns": 2_000_000_000}, False),
    "too few as the end of the run cuts it": (SIZED, {"bytes_received": 5, "end_ns": 2_000_001_000}, True),
}


def test_a_flow_does_what_the_plan_says() -> None:
    """10 ms early or late are allowed, and an end as much before its time."""
    record = {"id": 1, "start_ns": 500_000_000, "connected_ns": 540_000_000, "bytes_received": 4_000_000}

    def judged(flow: Flow, changes: dict[str, Any]) -> Check:
        agent = told(flows=[{**record, "id": 9}, {**record, "complete": True, **changes}])
        (check,) = flow_checks([flow], agent, VIRTUAL, None)
        return check

    compare_checks("flows", ((title, ok, judged(flow, changes)) for title, (flow, changes, ok) in FLOWS.items()))


@pytest.mark.parametrize("is_black_hole", [True, False])
def test_nothing_moves_through_a_black_hole(is_black_hole: bool) -> None:
    record: dict[str, int | None] = {"id": 1, "start_ns": 500_000_000, "connected_ns": 540_000_000, "bytes_received": 0}
    (found,) = flow_checks([FLOW], told(flows=[record]), VIRTUAL, None, is_black_hole=is_black_hole)
    assert found.ok is (None if is_black_hole else False)
    record["connected_ns"] = None
    (found,) = flow_checks([FLOW], told(flows=[record]), VIRTUAL, None, is_black_hole=is_black_hole)
    assert found.ok is False, "the handshake's packets are small"


def test_a_flow_that_starts_late_is_excused_by_a_busy_processor() -> None:
    record = {"id": 1, "start_ns": 600_000_000, "connected_ns": 1, "bytes_received": 1}
    asked: list[tuple[int, int]] = []

    def idle(begin_ns: int, end_ns: int) -> int:
        asked.append((begin_ns, end_ns))
        return 0

    assert flow_checks([FLOW], told(flows=[record]), VIRTUAL, idle)[0].ok is True
    assert asked == [(500_000_000, 600_000_000)]
    assert flow_checks([FLOW], told(flows=[record]), REAL, None)[0].ok is True, "100 ms in real time"
    assert flow_checks([FLOW], told(), VIRTUAL, None)[0].ok is False


def test_netem_is_on_routers_alone() -> None:
    plan = path_factory.path_plan()
    plan = dataclasses.replace(plan, hosts=[*plan.hosts, Host("s2", "sender", "10.1.0.2")])
    netem, other = {"kind": "netem", "dev": "e1"}, {"kind": "htb", "dev": "e2"}
    fine = Check("netem placement", "engine", True, "delay is added on routers only", 0, 0, 0, "qdiscs")
    assert (
        placement(plan, told(qdiscs={"left": {"qdiscs": [netem]}, "s1": {"qdiscs": [other]}, "x": {"qdiscs": [netem]}}))
        == fine
    )
    message = "netem sits on a host (s1:e1, s2:e1): delay belongs on a router"
    on_hosts = told(qdiscs={"s1": {"qdiscs": [netem, other]}, "s2": {"qdiscs": [other, netem]}})
    assert placement(plan, on_hosts) == Check("netem placement", "engine", False, message, 0, 2, 0, "qdiscs")
    missing = Check("netem placement", "engine", False, "agent.json holds no dump of the qdiscs")
    assert placement(plan, told()) == placement(plan, told(qdiscs={})) == missing
    uncalibrated = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, enabled=False))
    not_asked = "the plan asks for no calibration, so tc was not asked"
    assert placement(uncalibrated, told()) == Check("netem placement", "engine", None, not_asked)
    assert placement(uncalibrated, on_hosts).ok is False  # whoever asked all the same
    queues = [each for each in settings_checks(uncalibrated, told()) if each.name == "queues"]
    assert queues == [Check("queues", "engine", None, not_asked)]
