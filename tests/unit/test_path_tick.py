# SPDX-License-Identifier: Apache-2.0
"""``path.tick``: what the plan switches on and off, what the kernel is told, and what the judge sees of it."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path

import numpy as np
import pytest

from howdah.judge.during import releases_before_their_tick, tick_checks
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan, Processor
from howdah.plan.text import render
from howdah.profile import load
from howdah.record.verdict import Check
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, make_flow, make_measured, make_trace

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
        (event.at_us, event.change.arguments()["node"], event.change.arguments()["options"]["tick_us"])
        for event in plan.timeline
        if event.op == "qdisc" and "tick_us" in event.change.arguments()["options"]
    ]


def test_delay_lines_tick_while_flows_run_and_not_while_the_path_is_measured(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    assert ticks(plan) == [(0, "right", 10_000), (0, "left", 10_000), (5_000_000, "right", 0), (5_000_000, "left", 0)]
    assert all("tick_us" not in item.arguments().get("options", {}) for item in plan.operations)
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
    assert all("tick_us" not in event.change.arguments()["options"] for event in changed)
    assert len(ticks(plan)) == 4


@pytest.mark.parametrize("tick_us", [0, 10_000])
def test_the_kernel_is_told_in_nanoseconds(tick_us: int) -> None:
    encoded = qdisc.qdisc_request(2, "root", "1:", Netem(5, 10, tick_us=tick_us))
    tick_ns = tick_us * 1000
    slot = struct.pack("=HHqqiiqq", 44, 12, tick_ns, tick_ns, 0, 0, 0, 0)
    assert slot in encoded
    assert struct.pack("=HH", 44, 12) not in qdisc.qdisc_request(2, "root", "1:", Netem(5, 10))


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


def _tick_plan(tick_us: int = 10_000) -> Plan:
    base = make_plan()
    return dataclasses.replace(
        base, path=dataclasses.replace(base.path, tick_us=tick_us), duration_us=1_000_000, flows=base.flows[:1]
    )


def _tick_check(times_ms: list[float], plan: Plan | None = None) -> Check:
    count = len(times_ms)
    [check] = tick_checks(make_measured([make_trace(times_ms, [0] * count, [1] * count)], plan=plan or _tick_plan()))
    return check


@pytest.mark.parametrize(("early", "ok"), [(0, True), (1, True), (2, False)])
def test_a_hundredth_of_the_releases_may_be_early(early: int, ok: bool) -> None:
    """A hundred releases from 0 ms on, each 9.9 ms after another; an early one 6 ms after it, and then 3.9."""
    times = [9.9 * number for number in range(100)]
    for number in range(early):
        times[20 * number + 20] -= 3.9
    message = f"{early} of 100 releases of the delay line towards s1 came less than 10000 us after another"
    expected = Check("tick s1", "during", ok, message, 0.0, early / 100, 0.01, "ratio")
    assert _tick_check(times) == expected


@pytest.mark.parametrize(
    ("gap_ms", "early", "releases"), [(5.0, 0, 1), (5.1, 1, 2), (9.4, 1, 2), (9.5, 0, 2), (10.0, 0, 2)]
)
def test_a_release_lasts_for_half_a_tick_and_the_next_begins_almost_one_later(
    gap_ms: float, early: int, releases: int
) -> None:
    times = np.array([0, round(gap_ms * MS)], dtype=np.int64)
    assert releases_before_their_tick(times, 10 * MS) == (early, releases)


@pytest.mark.parametrize(
    ("times_ms", "count"),
    [([0.0, 999.9], 2), ([-0.1, 0.0, 999.9, 1000.0], 2), ([0.0, 1000.0], None), ([-1.0, 999.0], None), ([], None)],
)
def test_acks_count_from_the_epoch_to_the_end(times_ms: list[float], count: int | None) -> None:
    check = _tick_check(times_ms)
    if count is None:
        expected = Check("tick s1", "during", None, "fewer than two ACKs of s1 were traced", unit="ratio")
        assert check == expected
    else:
        assert check.message.startswith(f"0 of {count} releases ")


def test_each_sender_has_its_delay_line() -> None:
    flows = [make_flow(id=1), make_flow(id=2), make_flow(id=3, sender="s2"), make_flow(id=4, sender="s3")]
    flows[3] = dataclasses.replace(flows[3], datagram_bytes=1200)
    plan = dataclasses.replace(_tick_plan(), flows=flows)
    times = {1: [0.0, 20.0], 2: [10.0, 30.0], 3: [0.0, 1.0], 4: []}
    traces = [
        make_trace(times[flow.id], [0] * len(times[flow.id]), [1] * len(times[flow.id]), flow=flow) for flow in flows
    ]
    found = tick_checks(make_measured(traces, plan=plan))
    assert [(each.name, each.message[:16]) for each in found] == [
        ("tick s1", "0 of 4 releases "),
        ("tick s2", "0 of 1 releases "),
    ]
    busy = Processor("s1", "s1-eth0", "none", 1, 1, 1, "one-pass", 20, {})
    found = tick_checks(make_measured(traces, plan=dataclasses.replace(plan, processors=[busy])))
    message = "what the delay line lets go waits for the processor of s1 before it is traced"
    assert found[0] == Check("tick s1", "during", None, message, unit="ratio")
    assert found[1].ok is True
    assert tick_checks(make_measured(traces, plan=dataclasses.replace(plan, path=_tick_plan(0).path))) == []
