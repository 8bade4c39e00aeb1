# SPDX-License-Identifier: Apache-2.0
"""How long a plan takes on its own clock, by hand."""

from __future__ import annotations

import json
from pathlib import Path

from howdah.plan.path import MOST_FILLED_US
from howdah.plan.plan import Plan
from tests.unit.profile_factory import make_one

SLOW_BACK = ("path.rate=10 Mbit/s", "path.rtt=20 ms", "path.buffer=100 packets", "path.reverse_rate=100 kbit/s")
FRAME_BITS = 1514 * 8


def test_queues_of_both_ways_are_drained_at_their_own_rates(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[*SLOW_BACK, "path.reverse_buffer=75700 B"])
    forward_us, reverse_us = 100 * FRAME_BITS // 10, 75_700 * 8 * 10  # at 10 bits, and 0.1 bits, a microsecond
    assert plan.path.forward_queue_us == forward_us == 121_120
    assert plan.path.reverse_queue_us == reverse_us == 6_056_000
    assert plan.path.holding_us == forward_us + reverse_us
    assert plan.path.leaving_us(20_000) == 5 * (20_000 + forward_us + reverse_us)
    # What the flows left must have left before the path is measured again.
    assert plan.calibration.after_us - plan.duration_us >= plan.path.leaving_us(20_000)


def test_without_a_rate_the_way_back_holds_nothing(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=10 Mbit/s", "path.rtt=20 ms", "path.buffer=100 packets"])
    assert plan.path.reverse_queue_us == 0
    assert not {"reverse_buffer_bytes", "reverse_buffer_packets"} & json.loads(plan.to_json())["path"].keys()
    # As it was before ways back had a say: 1 s, five round trips and five drains of the buffer.
    assert plan.calibration.after_us == plan.duration_us + 1_000_000 + 5 * (20_000 + 121_120)


def test_the_end_is_that_of_the_second_measurement(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=500 kbit/s", "path.rtt=50 ms", "path.buffer=600 packets"])
    calibration = plan.calibration
    assert plan.end_us == calibration.after_us + calibration.phase_us + calibration.settle_us
    assert Plan.from_json(plan.to_json()).end_us == plan.end_us  # what the agent computes
    assert plan.end_us - plan.duration_us > 120_000_000  # more than a limit from the flows' duration allowed


def test_an_unmeasured_run_ends_when_its_queues_are_empty(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[*SLOW_BACK, "path.reverse_buffer=75700 B", "calibrate=false"])
    assert plan.end_us == plan.duration_us + 30_000_000 + plan.path.leaving_us(20_000)


def test_real_time_has_as_long_as_virtual_time(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=500 kbit/s", "path.rtt=50 ms", "path.buffer=600 packets"])
    lasts_us = plan.end_us - plan.calibration.before_us
    assert plan.real_time_limit_s > lasts_us / 1e6
    assert plan.wall_clock_limit_s < lasts_us / 1e6  # which is for a second that does not pass


def test_a_deep_buffer_is_filled_in_part(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=500 kbit/s", "path.rtt=50 ms", "path.buffer=9500 packets"])
    frames = int(MOST_FILLED_US / 1e6 * 500_000 // FRAME_BITS)
    assert plan.calibration.part_bytes == frames * 1514
    assert plan.calibration.train_packets == frames * 4 // 5
    assert plan.calibration.phase_us < 3 * MOST_FILLED_US + 3_000_000
    # All of it must have drained before the path is measured again: 9500 frames at 500 kbit/s.
    assert plan.calibration.after_us - plan.duration_us > 9500 * FRAME_BITS * 2


def test_a_buffer_of_less_than_half_a_minute_is_filled(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=500 kbit/s", "path.rtt=50 ms", "path.buffer=1200 packets"])
    assert plan.calibration.part_bytes is None
    assert "part_bytes" not in json.loads(plan.to_json())["calibration"]


def test_packets_of_the_way_back_are_counted(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[*SLOW_BACK, "path.reverse_buffer=50 packets"])
    assert (plan.path.reverse_buffer_packets, plan.path.reverse_buffer_bytes) == (50, 50 * 1514)
    queues = [
        item.arguments() for item in plan.operations if item.op == "qdisc" and item.arguments()["node"] == "right"
    ]
    assert [item["options"] for item in queues if item["kind"] == "pfifo"] == [{"limit_packets": 50}]
