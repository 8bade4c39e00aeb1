# SPDX-License-Identifier: Apache-2.0
"""Delay that varies: distribution, correlation in time, bounds, and order."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from howdah.plan.delays import ORDER_RATE_BITS_PER_SECOND
from howdah.plan.variation import draw_series
from howdah.profile.path import DelayVariation
from tests.unit.profile_factory import make_one, make_plans, operations

HOUR_US = 3_600_000_000


def _asked(**fields: object) -> DelayVariation:
    return DelayVariation.model_validate(
        {"correlation_time": "100 ms", "interval": "20 ms", "source": "test", **fields}
    )


def _moments(values: list[int]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


@pytest.mark.parametrize(
    ("fields", "mean_us", "deviation_us", "largest_us"),
    [
        ({"distribution": "exponential", "standard_deviation": "15 ms", "limit": "1 s"}, 15_000, 15_000, 1_000_000),
        ({"distribution": "normal", "standard_deviation": "5 ms"}, 15_000, 5_000, 30_000),
        ({"distribution": "uniform", "amplitude": "12 ms"}, 6_000, 12_000 / math.sqrt(12), 12_000),
    ],
)
def test_the_series_has_the_distribution_asked_for(
    fields: dict[str, object], mean_us: float, deviation_us: float, largest_us: int
) -> None:
    values = draw_series(_asked(**fields), HOUR_US, seed=1).added_us
    mean, deviation = _moments(values)
    assert len(values) == 180_000
    assert mean == pytest.approx(mean_us, rel=0.03)
    assert deviation == pytest.approx(deviation_us, rel=0.03)
    assert 0 <= min(values) <= max(values) <= largest_us


def test_the_quantiles_of_the_exponential() -> None:
    asked = _asked(distribution="exponential", standard_deviation="15 ms", limit="1 s")
    values = sorted(draw_series(asked, HOUR_US, seed=2).added_us)
    for share in (0.1, 0.5, 0.9, 0.99):
        expected = -15_000 * math.log(1 - share)
        assert values[int(share * len(values))] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("correlation", "expected"), [("100 ms", math.exp(-0.2)), ("0", 0.0), ("1 s", math.exp(-0.02))]
)
def test_neighbours_are_correlated_as_asked(correlation: str, expected: float) -> None:
    asked = _asked(distribution="normal", standard_deviation="5 ms", correlation_time=correlation)
    values = draw_series(asked, HOUR_US, seed=3).added_us
    mean, deviation = _moments(values)
    pairs = itertools.pairwise(values)
    covariance = sum((a - mean) * (b - mean) for a, b in pairs) / (len(values) - 1)
    assert covariance / deviation**2 == pytest.approx(expected, abs=0.02)


def test_a_limit_cuts_the_tail() -> None:
    asked = _asked(distribution="exponential", standard_deviation="15 ms", limit="20 ms")
    series = draw_series(asked, HOUR_US, seed=1)
    assert series.largest_us == 20_000
    assert series.summary()["largest_us"] == 20_000
    assert _asked(distribution="exponential", standard_deviation="15 ms").limit_us == 90_000


VARIATION = (
    "path.delay_variation={distribution: exponential, standard_deviation: 5 ms, correlation_time: 100 ms, source: test}"
)


def test_changes_keep_order_and_end_where_they_began(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[VARIATION])
    changes = [item for item in plan.timeline if item.op == "qdisc"]
    for interface, base in (("right-eth1", plan.path.forward_delay_us), ("left-eth1", plan.path.reverse_delay_us)):
        steps = [item for item in changes if item.change.arguments()["interface"] == interface]
        assert [item.at_us for item in steps[:3]] == [0, 20_000, 40_000]
        assert (steps[-1].at_us, steps[-1].change.arguments()["options"]["delay_us"]) == (4_000_000, base)
        assert len(steps) == 201
        assert all(item.change.arguments()["options"]["delay_us"] >= base for item in steps)
        assert all(
            item.change.arguments()["options"]["rate_bits_per_second"] == ORDER_RATE_BITS_PER_SECOND for item in steps
        )
    for item in operations(plan, "qdisc", kind="netem"):
        assert item.arguments()["options"]["rate_bits_per_second"] == ORDER_RATE_BITS_PER_SECOND
    assert plan.timeline == sorted(plan.timeline, key=lambda item: item.at_us)
    forward, reverse = (
        [
            item.change.arguments()["options"]["delay_us"]
            for item in changes
            if item.change.arguments()["interface"] == interface
        ]
        for interface in ("right-eth1", "left-eth1")
    )
    assert forward != reverse, "the directions vary independently"


def test_all_hosts_share_one_series_per_direction(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "flows: [{}, {}]\n", overrides=[VARIATION])
    series = {
        interface: [
            (item.at_us, item.change.arguments()["options"]["delay_us"])
            for item in plan.timeline
            if item.op == "qdisc" and item.change.arguments()["interface"] == interface
        ]
        for interface in ("right-eth1", "right-eth2")
    }
    assert series["right-eth1"] == series["right-eth2"]


def test_direction_and_record(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[VARIATION, "path.delay_variation.direction=reverse"])
    interfaces = {item.change.arguments()["interface"] for item in plan.timeline if item.op == "qdisc"}
    assert interfaces == {"left-eth1"}
    record = plan.path.delay_variation
    assert record is not None
    assert record.asked["distribution"] == "exponential"
    assert record.asked["source"] == "test"
    assert set(record.drawn) == {"reverse"}
    (target,) = plan.calibration.targets
    assert target.variation_us == 0
    assert target.variation_reverse_us == record.drawn["reverse"]["largest_us"]


def test_every_change_of_a_lossy_line_has_a_seed_of_its_own(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[VARIATION, "path.loss=1 %"])
    forward = [
        item.change.arguments()["options"]
        for item in plan.timeline
        if item.op == "qdisc" and item.change.arguments()["interface"] == "right-eth1"
    ]
    assert all(options["loss_ratio"] == 0.01 for options in forward)
    assert len({options["seed"] for options in forward}) == len(forward)


def test_a_schedule_is_the_same_for_every_algorithm_of_a_repetition(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, "algorithm: [cubic, reno]\nrepetitions: 2\n", [VARIATION])
    schedules = [
        [(item.at_us, item.change.arguments()["options"]["delay_us"]) for item in plan.timeline if item.op == "qdisc"]
        for plan in plans
    ]
    assert schedules[0] == schedules[2] != schedules[1] == schedules[3]
