# SPDX-License-Identifier: Apache-2.0
"""Paths that change with time: schedules, traces and drawn series, from a profile to the timeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.plan.timetable import add_steps
from tests.unit.profile_factory import make_one


def error(directory: Path, overrides: list[str]) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        make_one(directory, overrides=overrides)
    return caught.value


def trace_error(directory: Path, text: str, name: str = "trace.csv", more: str = "") -> ProfileError:
    (directory / name).write_text(text)
    return error(directory, [f"path.trace={{file: {name}{more}}}"])


def rates(plan: Plan) -> list[tuple[int, int]]:
    return [
        (item.at_us, item.change.arguments()["options"]["rate_bits_per_second"])
        for item in plan.timeline
        if item.op == "class"
    ]


def delays(plan: Plan, interface: str) -> list[tuple[int, int]]:
    return [
        (item.at_us, item.change.arguments()["options"]["delay_us"])
        for item in plan.timeline
        if item.op == "qdisc" and item.change.arguments()["interface"] == interface
    ]


def losses(plan: Plan, interface: str) -> list[tuple[int, float]]:
    return [
        (item.at_us, item.change.arguments()["options"]["loss_ratio"])
        for item in plan.timeline
        if item.op == "qdisc" and item.change.arguments()["interface"] == interface
    ]


def test_a_schedule_becomes_events_and_ends_as_the_path_began(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.schedule=[{at: 1 s, rate: 5 Mbit/s}, {at: 2 s, rtt: 60 ms}]"])
    assert rates(plan) == [(1_000_000, 5_000_000), (4_000_000, 20_000_000)]
    assert delays(plan, "right-eth1") == [(2_000_000, 30_000), (4_000_000, 20_000)]
    assert delays(plan, "left-eth1") == [(2_000_000, 30_000), (4_000_000, 20_000)]
    assert plan.path.rate_steps == [[1_000_000, 5_000_000], [4_000_000, 20_000_000]]
    assert "tc -n left class change" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_delay_that_falls_keeps_order_and_may_be_shorter_than_the_paths(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.schedule=[{at: 1 s, forward_delay: 5 ms}]"])
    assert delays(plan, "right-eth1") == [(1_000_000, 5_000), (4_000_000, 20_000)]
    assert plan.path.least_added_us == -15_000
    (line,) = [item for item in plan.operations if item.op == "qdisc" and item.arguments()["interface"] == "right-eth1"]
    assert line.arguments()["options"]["rate_bits_per_second"] == 100_000_000_000


def test_an_outage_silences_both_directions_and_then_the_loss_is_what_it_was(tmp_path: Path) -> None:
    schedule = "path.schedule=[{at: 1 s, loss: 2 %}, {at: 2 s, outage: 100 ms}]"
    plan = make_one(tmp_path, overrides=[schedule])
    assert losses(plan, "right-eth1") == [(1_000_000, 0.02), (2_000_000, 1.0), (2_100_000, 0.02), (4_000_000, 0.0)]
    assert losses(plan, "left-eth1") == [(2_000_000, 1.0), (2_100_000, 0.0), (4_000_000, 0.0)]
    seeds = [item.change.arguments()["options"]["seed"] for item in plan.timeline if item.op == "qdisc"]
    assert None not in seeds
    assert len(set(seeds)) == len(seeds)


def test_memory_is_for_the_highest_rate_and_the_longest_delay(tmp_path: Path) -> None:
    calm = make_one(tmp_path)
    wild = make_one(tmp_path, overrides=["path.schedule=[{at: 1 s, rate: 200 Mbit/s, rtt: 200 ms}]"])
    assert wild.guest_memory_bytes > calm.guest_memory_bytes
    limits = [
        [
            item.arguments()["options"]["limit_packets"]
            for item in plan.operations
            if item.arguments().get("kind") == "netem"
        ]
        for plan in (calm, wild)
    ]
    assert min(limits[1]) > 2 * 200_000_000 * 100_000 / 8_000_000 / 1514 > max(limits[0])


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (
            ["path.schedule=[{at: 2 s, rate: 5 Mbit/s}, {at: 1 s, rate: 6 Mbit/s}]"],
            "path.schedule.2.at: this step is not",
        ),
        (["path.schedule=[{at: 2 s}]"], "changes nothing"),
        (["path.schedule=[{at: 2 s, rate: 0 Mbit/s}]"], "expected a rate between 1 kbit/s"),
        (["path.schedule=[{at: 2 s, rtt: 1 ms, forward_delay: 1 ms}]"], "give one"),
        (
            ["path.rate_variation={least: 1 Mbit/s, correlation_time: 0, source: x}", "path.trace={file: x.csv}"],
            "trace and rate_variation are both given",
        ),
        (
            [
                "path.rate_variation={least: 1 Mbit/s, correlation_time: 0, source: x}",
                "path.schedule=[{at: 1 s, rate: 5 Mbit/s}]",
            ],
            "path.schedule.1.rate: rate_variation draws the rates",
        ),
        (
            ["path.schedule=[{at: 1 s, reverse_rate: 5 Mbit/s}]"],
            "path.schedule.1.reverse_rate: the reverse direction has no rate",
        ),
        (["path.schedule=[{at: 1 s, rate: 5 Mbit/s, loss_for: 1 s}]"], "there is no loss to end"),
        (["path.reverse_loss=51 %"], "path.reverse_loss: expected a loss of at most 50 %"),
        (["path.reverse_loss_burst=3"], "give path.reverse_loss"),
        (["path.delay_limit=10", "path.loss=1 %"], "path.delay_limit: a delay line with a limit drops packets itself"),
        (
            ["path.delay_variation={distribution: pareto, amplitude: 1 ms, correlation_time: 0, source: x}"],
            "distribution pareto needs standard_deviation",
        ),
        (
            ["path.rate_variation={least: 30 Mbit/s, correlation_time: 0, source: x}"],
            "path.rate_variation.least: expected at most path.rate",
        ),
        (["path.handover={every: 1 s, delay: 1 ms, outage: 1 s, source: x}"], "an outage shorter than that"),
    ],
)
def test_schedules_that_make_no_sense(tmp_path: Path, overrides: list[str], what: str) -> None:
    assert what in error(tmp_path, overrides).what


def test_a_trace_of_rates_delays_and_losses(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(
        "# measured on a roof\ntime, rate, forward_delay, loss\n0 s, 8 Mbit/s, 20 ms, 0 %\n\n"
        "500 ms, 12 Mbit/s, 30 ms, 1 %\n1 s, 4 Mbit/s, 25 ms, 0 %\n"
    )
    plan = make_one(tmp_path, overrides=["path.trace.file=trace.csv"])
    expected = [(0, 8_000_000), (500_000, 12_000_000), (1_000_000, 4_000_000), (4_000_000, 20_000_000)]
    assert rates(plan) == expected
    assert delays(plan, "right-eth1") == [(500_000, 30_000), (1_000_000, 25_000), (4_000_000, 20_000)]
    assert losses(plan, "right-eth1") == [(500_000, 0.01), (1_000_000, 0.0), (4_000_000, 0.0)]
    again = make_one(tmp_path, overrides=["path.trace={file: trace.csv, repeat: 1500 ms, scale: 50 %}"])
    assert rates(again)[:5] == [
        (0, 4_000_000),
        (500_000, 6_000_000),
        (1_000_000, 2_000_000),
        (1_500_000, 4_000_000),
        (2_000_000, 6_000_000),
    ]


def test_a_trace_of_mahimahi_is_packets_of_1500_bytes(tmp_path: Path) -> None:
    """Ten in the first 100 ms, thirty in the next: 1.2 and 3.6 Mbit/s; then it begins anew."""
    lines = [number * 10 for number in range(10)] + [100 + number * 3 for number in range(30)]
    (tmp_path / "cell.up").write_text("\n".join(map(str, [*lines[:-1], 200])) + "\n")
    plan = make_one(tmp_path, overrides=["path.trace.file=cell.up", "duration=1 s"])
    assert rates(plan)[:4] == [(0, 1_200_000), (100_000, 3_600_000), (200_000, 1_200_000), (300_000, 3_600_000)]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("time,rate\n0 s,5 Mbit/s\n1 s,0 Mbit/s\n", 3, "a rate of zero"),
        ("time,rate\n0 s,5 Mbit/s\n1 s,\n", 3, "rate is missing in this row"),
        ("time,rate\n0 s,5 Mbit/s\n2 s,6 Mbit/s\n1 s,5 Mbit/s\n", 4, "rows are in order of time"),
        ("time,speed\n0 s,5 Mbit/s\n", 1, "there is no column 'speed'"),
        ("time,rates\n0 s,5 Mbit/s\n", 1, "there is no column 'rates'"),
        ("time,rate\n1 s,5 Mbit/s\n", 2, "the trace begins at 1 s"),
        ("time,rate\n0 s,5\n", 2, "rate: expected a rate such as"),
        ("time,rate\n0 s,5 Mbit/s,1\n", 2, "3 values under 2 columns"),
        ("time\n0 s\n", 1, "a column time and at least one other"),
        (
            "time,rate\n" + "".join(f"{k} s,{k + 1} Mbit/s\n" for k in range(5)) + "30 s,5 Mbit/s\n",
            7,
            "a gap of 26 s",
        ),
    ],
)
def test_wrong_traces_are_named_by_file_and_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    found = trace_error(tmp_path, text)
    assert found.where == f"{tmp_path / 'trace.csv'}:{line}"
    assert what in found.what


def test_wrong_traces_of_mahimahi(tmp_path: Path) -> None:
    late = trace_error(tmp_path, "0\n10\n5\n", "cell.up")
    assert (late.where, "before that of the line above" in late.what) == (f"{tmp_path / 'cell.up'}:3", True)
    silent = trace_error(tmp_path, "0\n10\n900\n1000\n", "cell.up")
    assert "no packet may be sent from 100 to 200 ms" in silent.what
    assert "a rate of zero" in silent.what
    assert "expected a time in milliseconds" in trace_error(tmp_path, "0\nten\n", "cell.up").what
    assert "the trace is empty" in trace_error(tmp_path, "\n", "cell.up").what
    (tmp_path / "cell.up").write_text("0\n")
    uneven = error(tmp_path, ["path.trace.file=cell.up", "path.trace.interval=1.5 ms"])
    assert "whole milliseconds" in uneven.what
    assert str(uneven.where).startswith("--set path.trace"), "where the profile says it, not the trace"
    assert "cannot be read" in error(tmp_path, ["path.trace.file=nowhere.csv"]).what


def test_drawn_rates_stay_within_their_bounds_and_are_the_seeds(tmp_path: Path) -> None:
    override = "path.rate_variation={least: 5 Mbit/s, correlation_time: 300 ms, interval: 20 ms, source: test}"
    drawn = rates(make_one(tmp_path, overrides=[override, "duration=60 s"]))
    values = [rate for _, rate in drawn[:-1]]
    assert min(values) >= 5_000_000
    assert max(values) <= 20_000_000
    assert sum(values) / len(values) == pytest.approx(12.5e6, rel=0.1)
    assert drawn[-1] == (60_000_000, 20_000_000)
    assert rates(make_one(tmp_path, overrides=[override, "duration=60 s"])) == drawn
    assert rates(make_one(tmp_path, overrides=[override, "duration=60 s", "seed=2"])) != drawn


def test_handovers_change_the_delay_and_are_silent_meanwhile(tmp_path: Path) -> None:
    override = "path.handover={every: 1 s, first: 500 ms, delay: 20 ms, outage: 40 ms, source: test}"
    plan = make_one(tmp_path, overrides=[override])
    silent = [at_us for at_us, loss in losses(plan, "right-eth1") if loss == 1.0]
    assert silent == [500_000, 1_500_000, 2_500_000, 3_500_000]
    forward = dict(delays(plan, "right-eth1"))
    assert {forward[at_us] for at_us in silent} != {20_000}
    assert all(20_000 <= delay_us <= 30_000 for delay_us in forward.values())
    assert silent == [at_us for at_us, loss in losses(plan, "left-eth1") if loss == 1.0]


def test_steps_add_up() -> None:
    assert add_steps([[(0, 5), (10, 7)], [(5, 1), (10, -1)]]) == [(0, 5), (5, 6)]
    assert add_steps([[], []]) == []


def test_changes_count_for_each_host_they_are_made_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan holds every change of every delay line: what one pair may have is too much for ten.

    It is refused before any of them is made, which would take seconds.
    """
    variation = (
        "path.delay_variation={distribution: uniform, amplitude: 5 ms, correlation_time: 1 s, interval: 1 ms, "
        "direction: reverse, source: a choice}"
    )
    asked = [variation, "duration=10 s"]
    one = make_one(tmp_path, overrides=asked)
    assert 9_000 < len(one.timeline) < 50_000
    ten = "flows=[{}, {}, {}, {}, {}, {}, {}, {}, {}, {}]"
    with monkeypatch.context() as patch:
        patch.setattr("howdah.plan.delays.Event", lambda *_, **__: pytest.fail("a change was made"))
        found = error(tmp_path, [*asked, ten])
    assert "20 hosts would change more than 50000 times" in str(found)
    assert found.hint is not None
    assert "topology.pairs" in found.hint
    shared = make_one(tmp_path, overrides=[*asked, ten, "topology.pairs=1"])
    assert delays(shared, "left-eth1") == delays(one, "left-eth1")
