# SPDX-License-Identifier: Apache-2.0
"""``path.tick``: what the plan switches on and off, what the kernel is told, and what the judge sees of it."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.judge.tick import releases_before_their_tick, tick_checks
from howdah.linux.netlink import qdisc
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, make_measured, make_trace

PROFILE = """
howdah: 1
name: ticks
path: {rate: 10 Mbit/s, rtt: 40 ms, tick: 10 ms}
duration: 5 s
"""


def plan_of(tmp_path: Path, *overrides: str) -> Plan:
    file = tmp_path / "ticks.yaml"
    file.write_text(PROFILE)
    return compile_plan(load(file, overrides).cells()[0])


def ticks(plan: Plan) -> list[tuple[int, str, int]]:
    """When, where and what of every change of a tick."""
    return [
        (event.at_us, event.arguments["node"], event.arguments["options"]["tick_us"])
        for event in plan.timeline
        if event.op == "qdisc" and "tick_us" in event.arguments["options"]
    ]


def test_delay_lines_tick_while_flows_run_and_not_while_the_path_is_measured(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert ticks(plan) == [(0, "right", 10_000), (0, "left", 10_000), (5_000_000, "right", 0), (5_000_000, "left", 0)]
    assert all("tick_us" not in item.arguments.get("options", {}) for item in plan.operations)
    at_zero = [event.op for event in plan.timeline if event.at_us == 0]
    assert at_zero == ["qdisc", "qdisc", "start_flow"], "a flow that starts at 0 meets the tick"
    assert Plan.from_json(plan.to_json()) == plan
    text = render(plan)
    assert "slot 10ms" in text
    assert "10 ms between releases" in text


def test_without_a_tick_nothing_is_said_of_one(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "path.tick=null")
    assert not ticks(plan)
    assert "tick_us" not in plan.to_json()


def test_other_changes_leave_the_tick_as_it_is(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "path.schedule=[{at: 2 s, loss: 5 %}]")
    changed = [event for event in plan.timeline if event.op == "qdisc" and event.at_us == 2_000_000]
    assert changed
    assert all("tick_us" not in event.arguments["options"] for event in changed)
    assert len(ticks(plan)) == 4


def test_in_real_time_a_tick_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ticks.yaml"
    file.write_text(PROFILE)
    with pytest.raises(ProfileError, match="not exact to a tick"):
        compile_plan(load(file).cells()[0], engine="host")


@pytest.mark.parametrize("tick_us", [0, 10_000])
def test_the_kernel_is_told_in_nanoseconds(tick_us: int) -> None:
    options = {"delay_us": 5, "limit_packets": 10, "tick_us": tick_us}
    encoded = qdisc.qdisc_request(2, "root", "1:", "netem", options)
    tick_ns = tick_us * 1000
    slot = struct.pack("=HHqqiiqq", 44, 12, tick_ns, tick_ns, 0, 0, 0, 0)
    assert slot in encoded
    del options["tick_us"]
    assert struct.pack("=HH", 44, 12) not in qdisc.qdisc_request(2, "root", "1:", "netem", options)


def test_releases_at_least_a_tick_apart() -> None:
    tick = 10 * MS
    bursts = np.concatenate([np.arange(5) * 1000 + start * MS for start in (0, 10, 20, 47, 57)]).astype(np.int64)
    assert releases_before_their_tick(bursts, tick) == (0, 5)
    every_ms = np.arange(100, dtype=np.int64) * MS
    early, releases = releases_before_their_tick(every_ms, tick)
    assert early == releases - 1


def test_only_acks_of_the_run_count() -> None:
    """Before and after it the delay lines have no tick."""
    base = make_plan()
    plan = dataclasses.replace(
        base, path=dataclasses.replace(base.path, tick_us=10_000), duration_us=1_000_000, flows=base.flows[:1]
    )
    inside = [10.0 * index for index in range(1, 100)]
    trace = make_trace([-3.0, -2.0, -1.0, *inside, 1001.0, 1002.0, 1003.0], [0] * 105, [1] * 105)
    [check] = tick_checks(make_measured([trace], plan=plan))
    assert (check.name, check.ok) == (f"tick {plan.flows[0].sender}", True)
    early = make_trace([float(index) for index in range(1000)], [0] * 1000, [1] * 1000)
    [check] = tick_checks(make_measured([early], plan=plan))
    assert check.ok is False
    assert "less than 10000 us after another" in check.message
    assert not tick_checks(make_measured([early], plan=base))
