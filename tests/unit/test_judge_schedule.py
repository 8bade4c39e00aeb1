# SPDX-License-Identifier: Apache-2.0
"""Capacity and checks of paths that change, on hand-made readings."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.judge.check import VIRTUAL
from howdah.judge.during import backlogged, minimum_rtt, scheduled_rate, with_frames_in_service
from howdah.judge.loss import loss_schedule_checks, scheduled_loss
from howdah.measure.capacity import FairCapacity, Steps
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.record import table
from howdah.record.directory import RunDirectory
from howdah.record.schema import QDISC
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.trace_factory import make_flow, make_measured, make_queue, make_trace

S = 1_000_000_000
FRAME = 1514


def varying_plan(**path: object) -> Plan:
    plan = path_factory.path_plan()
    return dataclasses.replace(plan, path=dataclasses.replace(plan.path, **path))  # type: ignore[arg-type]


def test_the_integral_of_steps() -> None:
    steps = Steps(10.0, [(100, 20.0), (200, 0.0), (300, 5.0)])
    assert float(steps.integral(100)) == 0
    assert float(steps.integral(250) - steps.integral(50)) == 10 * 50 + 20 * 100 + 0 * 50
    assert float(steps.integral(400) - steps.integral(250)) == 5 * 100
    assert [steps.at(time) for time in (99, 100, 250, 1000)] == [10, 20, 0, 5]
    assert float(Steps(3.0, []).integral(7)) == 21
    weights = steps.weights(np.array([0, 150]), np.array([150, 1000]), [1.0, 2.0, 4.0])
    assert weights.tolist() == [1, 6]


def test_capacity_follows_the_schedule_and_is_shared() -> None:
    """8 Mbit/s are a byte a microsecond; from 1 s on twice that, and from 2 s on two flows share it."""
    capacity = FairCapacity(8e6, [(0, 4 * S), (2 * S, 4 * S)], [(S, 16e6)])
    assert capacity.whole_bytes(0, 2 * S) == pytest.approx(3e6)
    assert float(capacity.fair_bytes(0, S)) == pytest.approx(1e6)
    assert float(capacity.fair_bytes(S, 2 * S)) == pytest.approx(2e6)
    assert float(capacity.fair_bytes(2 * S, 3 * S)) == pytest.approx(1e6)
    assert float(capacity.fair_bytes(4 * S, 5 * S)) == pytest.approx(2e6), "after all flows the whole of it"
    constant = FairCapacity(8e6, [(0, 4 * S)], [])
    assert float(constant.fair_bytes(S, 3 * S)) == pytest.approx(2e6)


@pytest.mark.parametrize(
    ("then", "after", "ok"),
    [
        (23_750, 23_750, True),
        (0, 23_750, True),
        # 824.224 ms: from there to 844 ms pass 23 484 bytes, to two frames and the tolerance of 24 bytes: 20 432.
        (0, 20_433, True),
        (0, 20_431, False),
        (0, 0, False),
        (27_000, 23_750, False),
    ],
)
def test_a_frame_may_keep_the_link_beyond_the_interval_of_the_rise(then: int, after: int, ok: bool) -> None:
    """1514 bytes take 24.224 ms at 500 kbit/s. One that begins as the rate rises at 800 ms ends after the next reading
    and the one behind it."""
    plan = varying_plan(rate_steps=[[0, 500_000], [800_000, 9_500_000]])
    sent = np.cumsum([0, 0, then, after]).tolist()
    queue = make_queue([783, 804, 824, 844], [10**6, 10**6, 10**6, 10**6], sent)
    found = scheduled_rate(make_measured([make_trace([0], [0], [1])], plan=plan, queue=queue), VIRTUAL)
    assert found.ok is ok


@pytest.mark.parametrize(
    ("steps", "free"),
    [
        # kbit/s and ms: 1500 bytes take 12 ms at 1 Mbit/s.
        ([(100, 2000)], [(100, 0), (112, 2000)]),
        ([(100, 500)], [(100, 500)]),
        ([(100, 2000), (106, 3000), (130, 1000)], [(100, 0), (106, 0), (112, 3000), (130, 1000)]),
        ([(100, 2000), (106, 1000)], [(100, 0), (106, 0), (112, 1000)]),
    ],
)
def test_nothing_passes_until_the_frame_before_a_rise_has_ended(
    steps: list[tuple[int, int]], free: list[tuple[int, int]]
) -> None:
    capacity = Steps(1_000_000, [(at * 10**6, rate * 1000) for at, rate in steps])
    found = with_frames_in_service(capacity, [1_000_000, *(rate * 1000 for _, rate in steps)], 1500)
    wanted = Steps(1_000_000, [(at * 10**6, rate * 1000) for at, rate in free])
    assert found.times == wanted.times
    assert [found.at(at) for at in wanted.times] == [wanted.at(at) for at in wanted.times]


def test_what_a_queue_drops_it_did_not_send() -> None:
    """20 frames held, 15 sent: it ran empty if ten more of them were dropped."""
    queue = make_queue([0, 100], [20 * FRAME, 0], [0, 15 * FRAME], [0, 10])
    assert backlogged(queue).tolist() == [True]
    assert backlogged(queue, FRAME).tolist() == [False]


def line(entered: list[int], dropped: list[int]) -> Samples:
    """A delay line read each 100 ms that holds nothing; growth between readings."""
    drops = np.concatenate([[0], np.cumsum(dropped)])
    sent = np.concatenate([[0], np.cumsum(np.array(entered) - np.array(dropped))])
    time_ns = np.arange(len(drops), dtype=np.int64) * 100_000_000
    zero = np.zeros(len(drops), dtype=np.int64)
    return Samples(time_ns, {"sent_packets": sent, "drops_packets": drops, "backlog_packets": zero})


@pytest.mark.parametrize(("dropped", "ok"), [(0, True), (1, True), (2, False)])
def test_a_very_rare_loss_may_happen_once(dropped: int, ok: bool) -> None:
    """One in 10^12 of a thousand packets: a deviation is 0.00003 packets."""
    assert scheduled_loss("x", line([1000], [dropped]), 1e-12, [(1, 1e-12)], VIRTUAL).ok is ok


def test_each_delay_line_is_judged_by_the_losses_of_its_direction(tmp_path: Path) -> None:
    """Forward 10 % before 0.1 s and none after; on the way back none and then 5 %. Another queue is no delay line."""
    rows = []
    for node, interface, handle, samples in (
        ("right", "right-eth1", "1:", line([1000, 1000], [100, 0])),
        ("left", "left-eth0", "1:", line([1000, 1000], [0, 50])),
        ("left", "left-eth0", "10:", line([1000, 1000], [1000, 1000])),
    ):
        for at, time_ns in enumerate(samples.time_ns.tolist()):
            read = {name: int(samples[name][at]) for name in ("sent_packets", "drops_packets", "backlog_packets")}
            zero = dict.fromkeys(("backlog_bytes", "sent_bytes", "overlimits", "marks_packets"), 0)
            place = {"node": node, "interface": interface, "handle": handle, "parent": "root", "kind": "netem"}
            rows.append({**place, "time_ns": time_ns, **zero, **read})
    directory = RunDirectory(tmp_path)
    directory.tables.mkdir()
    table.write(directory, "qdisc", pa.Table.from_pylist(rows, schema=QDISC))
    forward, reverse = [[100_000, 0.0]], [[100_000, 0.05]]
    found = {}
    paths: dict[str, dict[str, Any]] = {
        "both": {"forward_loss_steps": forward, "reverse_loss_steps": reverse, "loss_ratio": 0.1},
        "forward": {"forward_loss_steps": forward, "loss_ratio": 0.1},
        "wrong base": {"forward_loss_steps": forward, "loss_ratio": 0.0},
        "wrong step": {"reverse_loss_steps": [[100_000, 0.5]]},
        "none": {},
    }
    for name, path in paths.items():
        plan = varying_plan(**{"forward_loss_steps": [], "reverse_loss_steps": [], **path})
        found[name] = {each.name: each.ok for each in loss_schedule_checks(directory, plan, VIRTUAL)}
    there, back = "loss schedule right:right-eth1", "loss schedule left:left-eth0"
    assert found == {
        "both": {there: True, back: True},
        "forward": {there: True},
        "wrong base": {there: False},
        "wrong step": {back: False},
        "none": {},
    }


def test_an_outage_between_two_readings_may_lose_anything_of_them() -> None:
    changes = [(120_000_000, 1.0), (150_000_000, 0.0)]
    for dropped in (0, 300, 1000):
        assert scheduled_loss("x", line([1000, 1000, 1000], [0, dropped, 0]), 0.0, changes, VIRTUAL).ok is True
    assert scheduled_loss("x", line([1000, 1000, 1000], [0, 300, 50]), 0.0, changes, VIRTUAL).ok is False


@pytest.mark.parametrize(("rtt_ms", "ok"), [(30, True), (29.9, False), (20, False)])
def test_a_schedule_may_make_the_round_trip_shorter(rtt_ms: float, ok: bool) -> None:
    plan = varying_plan(least_added_us=-10_000)
    trace = make_trace([rtt_ms + k for k in range(5)], [k + 1 for k in range(5)], [10] * 5, flow=make_flow())
    measured = make_measured([trace], plan=plan)
    base = dataclasses.replace(measured, plan=varying_plan())
    found = minimum_rtt(measured, trace, VIRTUAL)
    assert found.measured is not None
    assert (found.ok is not False) is (float(found.measured) >= 29_976)
    if ok:
        assert minimum_rtt(base, trace, VIRTUAL).ok is False, "without the schedule it would be too short"


@pytest.mark.parametrize(
    ("first", "change", "ok"),
    [
        # 250 000 bytes in 100 ms at 20 Mbit/s: a frame at either end and a thousandth are 3278 bytes.
        (253_278, None, True),
        (253_279, None, False),
        (246_722, None, True),
        (246_721, None, False),
        # 20 Mbit/s for 50 ms and half of it for 50: 187 500 bytes, and a frame more at the change: 4542 + 187.5.
        (192_229, 10_000_000, True),
        (192_230, 10_000_000, False),
        # Three times that: 500 000 bytes; a frame that ends at the old rate leaves room for three: 7570 + 500.
        (508_070, 60_000_000, True),
        (508_071, 60_000_000, False),
        (491_930, 60_000_000, True),
        (491_929, 60_000_000, False),
    ],
)
def test_a_schedule_is_kept_to_a_frame_at_either_end_and_at_each_change(
    first: int, change: int | None, ok: bool
) -> None:
    plan = varying_plan(rate_steps=[[50_000 if change else 900_000, change or 1]])
    queue = make_queue([0, 100, 200], [10**6, 0, 0], [0, first, first])
    check = scheduled_rate(make_measured([make_trace([0], [0], [1])], plan=plan, queue=queue), VIRTUAL)
    planned = {None: 250_000, 10_000_000: 187_500, 60_000_000: 500_000}[change]
    message = f"in 1 intervals with a queue the bottleneck sent {first} bytes, the schedule lets {planned} pass"
    if not ok:
        message += f"; the rate does not follow it: {first} instead of {planned} bytes after 0.000 s"
    assert check == Check("rate schedule", "during", ok, message, 1.0, first / planned, 0.001, "ratio")


def test_the_worst_interval_of_a_schedule_is_named() -> None:
    """Off by 10 and by 20 Mbit/s of 20; those between them are not of the queue."""
    plan = varying_plan(rate_steps=[[10_000_000, 1]])
    queue = make_queue([0, 100, 200, 300], [10**6, 0, 10**6, 0], [0, 375_000, 375_000, 875_000])
    check = scheduled_rate(make_measured([make_trace([0], [0], [1])], plan=plan, queue=queue), VIRTUAL)
    message = "in 2 intervals with a queue the bottleneck sent 875000 bytes, the schedule lets 500000 pass"
    message += "; the rate does not follow it: 500000 instead of 250000 bytes after 0.200 s"
    assert check == Check("rate schedule", "during", False, message, 1.0, 1.75, 0.001, "ratio")


def test_a_schedule_that_was_not_measured_says_why() -> None:
    plan = varying_plan(rate_steps=[[1_000_000, 5_000_000]])
    short = "the bottleneck's rate was not measured: the queue was never long enough to be sure that it did not run "
    short += "empty between two readings"
    for queue, why in ((make_queue([], []), "the queue was not read"), (make_queue([0, 9], [0, 0], [0, 1]), short)):
        check = scheduled_rate(make_measured([make_trace([0], [0], [1])], plan=plan, queue=queue), VIRTUAL)
        assert check == Check("rate schedule", "during", None, why, unit="ratio")


@pytest.mark.parametrize(
    ("dropped", "ok", "words"),
    [
        # 5 % of 1000: 50, and 4 * sqrt(47.5) + 1 = 28.57 on either side; of 0 % none.
        ([0, 78, 0], True, "0 of 2000 packets at 0, 78 of 1000 packets at 0.05"),
        ([0, 79, 0], False, "0 of 2000 packets at 0, 79 of 1000 packets at 0.05"),
        ([0, 22, 0], True, "0 of 2000 packets at 0, 22 of 1000 packets at 0.05"),
        ([0, 21, 0], False, "0 of 2000 packets at 0, 21 of 1000 packets at 0.05"),
        ([1, 50, 0], False, "1 of 2000 packets at 0, 50 of 1000 packets at 0.05"),
    ],
)
def test_losses_of_one_ratio_are_judged_together(dropped: list[int], ok: bool, words: str) -> None:
    changes = [(100_000_000, 0.05), (200_000_000, 0.0)]
    check = scheduled_loss("r:r1", line([1000, 1000, 1000], dropped), 0.0, changes, VIRTUAL)
    message = f"the delay line at r:r1 dropped {words}"
    if not ok:
        wrong = words.split(", ")[0 if dropped[0] else 1]
        message += f": it does not follow its schedule ({wrong})"
    assert check == Check("loss schedule r:r1", "during", ok, message, None, sum(dropped), None, "packets")


@pytest.mark.parametrize(("lost", "ok"), [(48, False), (49, True), (251, True), (252, False)])
@pytest.mark.parametrize(("before", "after"), [(0.1, 0.2), (0.2, 0.1)])
def test_a_time_in_which_a_ratio_changes_may_have_any_between(before: float, after: float, lost: int, ok: bool) -> None:
    """10 to 20 % of 1000: 100 to 200, and on either side what the larger ratio allows, 4 * sqrt(160) + 1 = 51.6."""
    check = scheduled_loss("x", line([1000], [lost]), before, [(50_000_000, after)], VIRTUAL)
    assert check.ok is ok
    assert check.message.startswith(f"the delay line at x dropped {lost} of 1000 packets at 0.1 to 0.2")


def test_a_delay_line_that_was_not_read_says_so() -> None:
    check = scheduled_loss("r:r1", line([], []), 0.0, [(1, 0.5)], VIRTUAL)
    message = "the delay line at r:r1 was not read"
    assert check == Check("loss schedule r:r1", "during", None, message, unit="packets")


def test_a_schedule_of_bursts_may_be_off_by_more() -> None:
    """As in howdah/judge/loss.py: the variance of bursts of 5 packets at 5 % is that of single losses times 8.5."""
    changes = [(1, 0.05)]
    begins, ends = 0.2 * 0.05 / 0.95, 0.2
    spread = 4 * (47.5 * (2 - begins - ends) / (begins + ends)) ** 0.5
    for lost, ok in ((50 + int(spread + 40), True), (51 + int(spread + 40), False)):
        found = scheduled_loss("x", line([1000], [lost]), 0.05, changes, VIRTUAL, 5.0)
        assert found.ok is ok
    assert scheduled_loss("x", line([1000], [79]), 0.05, changes, VIRTUAL).ok is False
