# SPDX-License-Identifier: Apache-2.0
"""Repetitions: declared, recorded, seeded, and the same for everything that is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.kept import PerturbationRecord
from howdah.plan.perturbation import derived_seed
from howdah.plan.text import render
from tests.unit.profile_factory import make_one, make_plans, operations

THREE = "repetitions: 3\nflows: [{}, {start: 1 s}]\n"


def test_one_repetition_is_the_nominal_path(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "perturbation: {rtt: 5 %, start: 3 rtt}\n")
    assert plan.path.rtt_us == 40_000
    assert plan.flows[0].start_us == 0
    assert plan.perturbation == PerturbationRecord(start_offset_us=[0])


def test_repetitions_differ_within_what_was_declared(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, THREE.replace("3", "40"))
    assert len({plan.path.rtt_us for plan in plans}) > 30
    for plan in plans:
        assert 39_800 <= plan.path.rtt_us <= 40_200
        assert 0 <= plan.flows[0].start_us < 40_000
        assert 1_000_000 <= plan.flows[1].start_us < 1_040_000
        assert plan.perturbation.applied
        assert plan.perturbation.start_offset_us == [plan.flows[0].start_us, plan.flows[1].start_us - 1_000_000]
        assert plan.path.forward_delay_us == round(20_000 * plan.perturbation.rtt_factor)
    assert min(plan.path.rtt_us for plan in plans) < 39_950 < 40_050 < max(plan.path.rtt_us for plan in plans)


def test_a_repetition_is_the_same_for_every_algorithm_and_point(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, THREE, ["algorithm=[cubic, reno]", "path.rate=[20 Mbit/s, 40 Mbit/s]"])
    for repetition in range(3):
        same = [plan for plan in plans if plan.repetition == repetition]
        assert len(same) == 4
        assert len({str(plan.perturbation) for plan in same}) == 1
    assert len({str(plan.perturbation) for plan in plans}) == 3


def test_the_seed_decides(tmp_path: Path) -> None:
    first = make_plans(tmp_path, THREE)
    assert [plan.perturbation for plan in make_plans(tmp_path, THREE)] == [plan.perturbation for plan in first]
    other = make_plans(tmp_path, THREE, ["seed=2"])
    assert all(a.perturbation != b.perturbation for a, b in zip(first, other, strict=True))


def test_more_repetitions_do_not_change_the_first_ones(tmp_path: Path) -> None:
    three = make_plans(tmp_path, THREE)
    five = make_plans(tmp_path, THREE, ["repetitions=5"])
    assert [plan.perturbation for plan in five[:3]] == [plan.perturbation for plan in three]


def test_every_delay_line_is_scaled(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, THREE + "topology: {pairs: 3}\n")[1]
    delays = {item.arguments()["options"]["delay_us"] for item in operations(plan, "qdisc", kind="netem")}
    assert delays == {plan.path.forward_delay_us}


def test_jitter_is_a_schedule_of_the_forward_delay(tmp_path: Path) -> None:
    plan = make_plans(tmp_path, "repetitions: 2\nperturbation: {jitter: 2 ms}\n")[1]
    changes = [item for item in plan.timeline if item.op == "qdisc"]
    assert {item.change.arguments()["interface"] for item in changes} == {"right-eth1"}
    added = [item.change.arguments()["options"]["delay_us"] - plan.path.forward_delay_us for item in changes]
    assert added[-1] == 0, "the path is as configured again when it is calibrated"
    assert 0 <= min(added) < 500 < 1500 < max(added) <= 2000
    assert plan.perturbation.jitter_us == 2000
    assert plan.calibration.targets[0].variation_us == max(added)


def test_seeds_of_different_purposes_are_independent() -> None:
    seeds = {derived_seed(seed, purpose, number) for seed in range(5) for purpose in "abc" for number in range(5)}
    assert len(seeds) == 75
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert derived_seed(1, "x") == derived_seed(1, "x")


def test_a_jitter_of_more_than_a_day_is_refused_at_its_line(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="jitter of at most one day") as refused:
        make_plans(tmp_path, "repetitions: 2\nperturbation: {jitter: 9000000000000 rtt}\n")
    assert str(refused.value.where).rpartition(":")[2].isdigit()


def test_each_repetition_loses_other_packets_the_same_for_every_algorithm(tmp_path: Path) -> None:
    overrides = ["path.loss=1 %", "algorithm=[cubic, reno]", "path.schedule=[{at: 1 s, loss: 2 %}]"]
    seeds: dict[int, set[tuple[int, ...]]] = {}
    for plan in make_plans(tmp_path, THREE, overrides):
        first = [item.arguments()["options"]["seed"] for item in operations(plan, "qdisc", kind="netem")]
        later = [each.change.arguments()["options"]["seed"] for each in plan.timeline if each.op == "qdisc"]
        seeds.setdefault(plan.repetition, set()).add(tuple(filter(None, [*first, *later])))
    assert {len(of_algorithms) for of_algorithms in seeds.values()} == {1}
    drawn = [seed for of_algorithms in seeds.values() for seed in next(iter(of_algorithms))]
    assert len(drawn) == len(set(drawn)) >= 2 * 3, "before and after the change, in three repetitions"


def test_the_plan_names_the_starts_of_few_flows_and_the_range_of_many(tmp_path: Path) -> None:
    few, many = (
        next(line for line in render(make_plans(tmp_path, text)[0]).splitlines() if "starts later by" in line)
        for text in (THREE, "repetitions: 3\ngroups:\n- {name: web, connections: 50, size: 10 kB}\n")
    )
    assert few.count("ms") == 2
    assert len(many) < 120
    assert many.endswith("each of 50 flows by its own")
