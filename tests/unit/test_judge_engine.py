# SPDX-License-Identifier: Apache-2.0
"""Whether the guest did what the plan says, when it says: a healthy record, and one doctored so that it must fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from howdah.judge.check import Check
from howdah.judge.engine import engine_checks
from howdah.judge.tolerance import VIRTUAL
from howdah.plan.plan import Plan
from tests.unit import path_factory

Doctor = Callable[[dict[str, Any]], Any]


def failed(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.message for check in checks if check.ok is False}


def engine(doctor: Doctor | None = None, plan: Plan | None = None) -> list[Check]:
    found = path_factory.agent()
    if doctor is not None:
        doctor(found)
    return engine_checks(plan or path_factory.path_plan(), found, VIRTUAL)


def _phase(found: dict[str, Any], number: int, **changes: int) -> None:
    found["phases"][number].update(changes)


@pytest.mark.parametrize(
    ("doctor", "name", "words"),
    [
        (
            lambda found: found.update(status="error", error={"operation": "qdisc 12", "message": "no such device"}),
            "agent",
            "stopped at qdisc 12: no such device",
        ),
        (lambda found: _phase(found, 2, end_ns=7_200 * 10**9), "clock flows", "clock ran away"),
        (lambda found: _phase(found, 2, end_ns=10**9), "clock flows", "until 2.000000 s: it was cut short"),
        (lambda found: _phase(found, 0, end_ns=-2 * 10**9), "clock setup", "clock ran away"),
        (lambda found: _phase(found, 4, end_ns=3_600 * 10**9), "clock calibrate-after", "clock ran away"),
        (lambda found: found["phases"].pop(3), "clock quiesce", "did not happen"),
        (lambda found: found.update(epoch_monotonic_ns=5_000_000_001), "epoch", "the plan says 5000000000 ns"),
        (lambda found: found.update(flows=[]), "flow 1", "never started"),
        (lambda found: found["flows"][0].update(error="connection refused"), "flow 1", "failed: connection refused"),
        (lambda found: found["flows"][0].update(connected_ns=None), "flow 1", "never connected"),
        (lambda found: found["flows"][0].update(start_ns=50_000_000), "flow 1", "started at 50000 us instead of 0 us"),
        (lambda found: found["flows"][0].update(bytes_received=0), "flow 1", "moved no data"),
        (
            lambda found: found["qdiscs"]["s1"]["qdiscs"].append({"kind": "netem", "dev": "s1-eth0"}),
            "netem placement",
            "netem sits on a host (s1:s1-eth0)",
        ),
        (lambda found: found.pop("qdiscs"), "netem placement", "no dump"),
    ],
)
def test_a_guest_that_did_not_follow_the_plan_is_named(doctor: Doctor, name: str, words: str) -> None:
    assert failed(engine()) == {}
    found = failed(engine(doctor))
    assert name in found
    assert words in found[name]


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

        checks = {check.name: check for check in engine_checks(plan, late, VIRTUAL, idle)}
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


def test_a_fixed_flow_moves_its_size() -> None:
    plan = path_factory.path_plan()
    fixed = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=4_000_000)])
    assert failed(engine(plan=fixed)) == {}
    short = failed(engine(lambda found: found["flows"][0].update(bytes_received=3_999_999), fixed))
    assert "3999999 bytes instead of 4000000" in short["flow 1"]


def test_a_transfer_that_the_end_of_the_run_cuts_short_moves_what_it_had_written() -> None:
    plan = path_factory.path_plan()
    fixed = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=4_000_000)])
    late = plan.flows[0].stop_us * 1000 + 1
    assert failed(engine(lambda found: found["flows"][0].update(bytes_received=3_999_999, end_ns=late), fixed)) == {}


def test_a_missing_agent_record_fails() -> None:
    assert "did not finish" in failed(engine_checks(path_factory.path_plan(), None, VIRTUAL))["agent"]
