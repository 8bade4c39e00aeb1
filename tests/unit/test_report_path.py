# SPDX-License-Identifier: Apache-2.0
"""The path in words, and the dumbbell with its numbers."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from howdah.number import delay
from howdah.plan.path import DrawnVariation
from howdah.plan.plan import Plan
from howdah.plan.policer import Policer
from howdah.record.metrics import MetricRow
from howdah.record.result import Run, load_experiment
from howdah.report.drawing import dumbbell, spread
from howdah.report.pathfacts import path_facts, path_notes
from tests.experiment_factory import Scenario, make_experiment, make_plan


def perturbed(rtt_us: int) -> Plan:
    return make_plan(Scenario(rtt_us=rtt_us), "cubic", 0, {})


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("text")]


def with_plan(run: Run, plan: Plan) -> Run:
    return dataclasses.replace(run, plan=plan)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0)
    return load_experiment(make_experiment(tmp_path, scenario)).runs[0]


def test_both_drawings_hold_the_numbers_of_the_plan() -> None:
    for svg, round_trip in zip(dumbbell([perturbed(100_000)]), ("100 ms round trip", "RTT 100 ms"), strict=True):
        found = texts(svg)
        for text in ("20 Mbit/s", round_trip, "buffer 250 kB", "BDP 250 kB", "= 165 packets"):
            assert text in found
        assert {"s1", "s2", "r1", "r2", "from the start", "from 3 s"} <= set(found)


def test_perturbed_repetitions_are_drawn_as_ranges() -> None:
    wide, _ = dumbbell([perturbed(99_500), perturbed(100_500)])
    assert "99.5 … 100.5 ms round trip" in texts(wide)
    assert "= 164 … 165 packets" in texts(wide)


def test_a_start_moved_within_the_first_round_trip_is_still_the_start() -> None:
    plan = perturbed(100_000)
    flows = [
        dataclasses.replace(plan.flows[0], start_us=97_000),
        dataclasses.replace(plan.flows[1], start_us=3_033_344),
    ]
    wide, _ = dumbbell([dataclasses.replace(plan, flows=flows)])
    assert {"from the start", "from 3 s"} <= set(texts(wide))


def test_receivers_carry_a_round_trip_time_only_where_flows_differ() -> None:
    plan = perturbed(100_000)
    wide, _ = dumbbell([plan])
    assert not any(text.endswith(" RTT") for text in texts(wide))
    flows = [plan.flows[0], dataclasses.replace(plan.flows[1], rtt_us=40_000)]
    wide, _ = dumbbell([dataclasses.replace(plan, flows=flows)])
    assert {"100 ms RTT", "40 ms RTT"} <= set(texts(wide))


def test_spread_drops_the_unit_only_where_it_is_the_same() -> None:
    assert spread([5, 5], lambda value: f"{value} ms") == "5 ms"
    assert spread([5, 7], lambda value: f"{value} ms") == "5 … 7 ms"
    assert spread([900, 1100], lambda v: delay(v * 1000) if v < 1000 else "1.1 s") == "900 ms … 1.1 s"


def test_notes_say_when_the_path_drawn_is_not_every_runs(run: Run) -> None:
    assert run.plan is not None
    assert path_notes([run]) == []
    other = with_plan(run, perturbed(101_000))
    assert "Repetitions perturb the path" in path_notes([run, other])[0]
    elsewhere = dataclasses.replace(other, axes={"path.rtt": "101 ms"})
    assert path_notes([run, elsewhere]) == ["The sweep points have different paths; this is the first."]
    same_path = dataclasses.replace(run, axes={"traffic": "iperf3"})
    assert path_notes([run, same_path]) == []


def test_delay_variation_is_told_with_its_source(run: Run) -> None:
    assert run.plan is not None
    variation = DrawnVariation(
        {"distribution": "exponential", "source": "Measured <somewhere>."},
        {"reverse": {"mean_us": 10_573, "largest_us": 60_000, "standard_deviation_us": 10_555}},
    )
    path = dataclasses.replace(run.plan.path, delay_variation=variation)
    varied = with_plan(run, dataclasses.replace(run.plan, path=path))
    fact = next(fact for fact in path_facts([varied]) if fact.name == "Delay variation")
    assert fact.value == "exponential; reverse: mean 10.57 ms, deviation 10.55 ms, at most 60 ms"
    assert path_notes([varied]) == ["Delay variation: Measured <somewhere>."]


@pytest.mark.parametrize(("counts", "words"), [([12], "dropped 12 packets"), ([3, 9], "dropped 3 … 9 packets a run")])
def test_the_page_says_what_the_policer_dropped(run: Run, counts: list[int], words: str) -> None:
    assert run.plan is not None
    path = dataclasses.replace(run.plan.path, policer=Policer(5_000_000, 100_000))
    plan = dataclasses.replace(run.plan, path=path)
    runs = [
        dataclasses.replace(run, plan=plan, metrics=[MetricRow(None, "policer_drops_packets", count, "packets")])
        for count in counts
    ]
    (fact,) = [fact for fact in path_facts(runs) if fact.name == "Policer"]
    assert fact.value == f"5 Mbit/s, 100 kB burst; {words}"
    (silent,) = [fact for fact in path_facts([with_plan(run, plan)]) if fact.name == "Policer"]
    assert silent.value == "5 Mbit/s, 100 kB burst"
