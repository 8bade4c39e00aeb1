# SPDX-License-Identifier: Apache-2.0
"""A policer from the profile to its filter, and what the judge concludes from what passed it."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from howdah.agent.calibration.policer import policer_train
from howdah.codec import encoded
from howdah.errors import ProfileError
from howdah.judge.check import tolerance_of
from howdah.judge.policer import bucket_check, train_checks
from howdah.judge.settings import settings_checks
from howdah.linux.netlink.message import parse_attributes
from howdah.linux.netlink.police import parse_policer, police_request
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.record.calibration import CalibrationRecord
from howdah.record.verdict import Check
from tests.calibrated import calibrated
from tests.unit.profile_factory import make_one, operations
from tests.unit.told_by_agent import told as told_by

FRAME = 1514
POLICED = "path.policer={rate: 5 Mbit/s, burst: 100 kB}"


def planned(directory: Path, *overrides: str) -> Plan:
    return make_one(directory, "", [POLICED, *overrides])


def test_it_hangs_before_the_queue_of_the_bottleneck(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (policer,) = operations(plan, "police")
    (hook,) = operations(plan, "qdisc", kind="clsact")
    assert hook.lines() == ["tc -n left qdisc add dev left-eth0 clsact"]
    assert policer.lines() == [
        "tc -n left filter add dev left-eth0 egress protocol all prio 1 matchall action police rate 5000000bit "
        "burst 100000b mtu 1048576 conform-exceed drop/continue"
    ]
    assert "drops what exceeds 5 Mbit/s and 100 kB at once (full again after 160 ms)" in render(plan)


def test_a_path_without_one_is_planned_as_before(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    assert plan.path.policer is None
    assert "policer" not in encoded(plan.path)
    assert not operations(plan, "police")


def test_a_queue_that_looks_at_marks_shares_the_hook(tmp_path: Path) -> None:
    plan = planned(tmp_path, "path.queue=gred", "path.buffer=4 bdp")
    assert len(operations(plan, "qdisc", kind="clsact")) == 1
    (marks,) = operations(plan, "filter")
    assert " prio 2 u32 " in marks.lines()[0]


def test_the_kernel_gets_what_act_police_reads() -> None:
    """Offsets of struct tc_police in include/uapi/linux/pkt_cls.h; 100 kB at 625 000 B/s are 160 ms of 64 ns."""
    request = police_request(7, 5_000_000, 100_000)
    assert struct.unpack_from("=BxxxiIII", request) == (0, 7, 0, 0xFFFFFFF3, 1 << 16 | 0x0300)
    outer = parse_attributes(request[20:])
    assert outer[1] == b"matchall\0"
    action = parse_attributes(parse_attributes(parse_attributes(outer[2])[2])[1])
    assert action[1] == b"police\0"
    options = parse_attributes(action[2])
    index, dropped, limit, burst, mtu = struct.unpack_from("=IiIII", options[1])
    assert (index, dropped, limit, burst, mtu) == (0, 2, 0, 160_000_000 // 64, 1 << 20)
    assert struct.unpack_from("=I", options[1], 20 + 8) == (625_000,)
    assert len(options[1]) == 56
    assert len(options[2]) == 1024
    assert options[5] == b"\xff\xff\xff\xff"
    assert parse_policer(request) == (5_000_000, 100_000)


def test_a_rate_beyond_32_bits_has_an_attribute_of_its_own() -> None:
    found = parse_policer(police_request(1, 80_000_000_000, 10_000_000))
    assert found == (80_000_000_000, 10_000_000)


@pytest.mark.parametrize(
    ("asked", "place", "words"),
    [
        ("{rate: 5 Mbit/s, burst: 1 kB}", "path.policer.burst", "drops every full frame, which has 1514 bytes; give"),
        ("{rate: 0 Mbit/s, burst: 100 kB}", "path.policer.rate", "rate"),
        ("{rate: 1 kbit/s, burst: 1 MB}", "path.policer.burst", "make burst smaller or rate higher"),
    ],
)
def test_one_that_cannot_be_is_refused_at_its_place(tmp_path: Path, asked: str, place: str, words: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, "", [f"path.policer={asked}"])
    assert place in str(caught.value)
    assert words in str(caught.value)


def test_one_as_fast_as_the_bottleneck_is_not_measured_by_a_train(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "", ["path.policer={rate: 20 Mbit/s, burst: 100 kB}"])
    assert plan.path.policer is not None
    assert plan.path.policer.packets == 0
    (found,) = train_checks(plan, "before", CalibrationRecord(), tolerance_of(plan))
    assert found.ok is None
    assert "hardly slower" in found.message


def through(plan: Plan, rate: float, burst: float) -> dict[str, Any]:
    """What the train of a plan finds of a bucket with a rate (bits a second) and a burst (bytes), frame by frame."""
    policer = plan.path.policer
    assert policer is not None
    tokens, passed, sent = burst, set(), []
    for number in range(policer.packets):
        at_ns = number * policer.spacing_ns
        tokens = min(burst, tokens + rate / 8 * policer.spacing_ns / 1e9) if number else burst
        if tokens >= FRAME:
            tokens -= FRAME
            passed.add(number)
        sent.append(at_ns)
    return {"policer": encoded(policer_train(sent, passed))}


def judged(plan: Plan, rate: float, burst: float) -> dict[str, Check]:
    found = train_checks(plan, "before", calibrated(through(plan, rate, burst)), tolerance_of(plan))
    return {check.name: check for check in found}


@pytest.mark.parametrize("asked", ["5 Mbit/s, burst: 100 kB", "12 Mbit/s, burst: 30 kB", "1 Mbit/s, burst: 4542 B"])
def test_a_train_finds_rate_and_burst(tmp_path: Path, asked: str) -> None:
    plan = make_one(tmp_path, "", [f"path.policer={{rate: {asked}}}"])
    policer = plan.path.policer
    assert policer is not None
    found = judged(plan, policer.rate_bits_per_second, policer.burst_bytes)
    assert all(check.ok for check in found.values()), found
    lower = judged(plan, policer.rate_bits_per_second, policer.burst_bytes + FRAME)
    assert lower["policer burst"].ok is False
    faster = judged(plan, policer.rate_bits_per_second * 1.05, policer.burst_bytes)
    assert faster["policer rate"].ok is False


def test_a_train_that_loses_nothing_has_met_no_policer(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (found,) = train_checks(plan, "before", calibrated(through(plan, 1e9, 1e9)), tolerance_of(plan))
    assert found.ok is False
    assert "it is missing" in found.message


def readings(plan: Plan, passed: list[int], drops: list[int], step_ns: int = 10_000_000) -> Any:
    time = np.arange(len(passed) + 1, dtype=np.int64) * step_ns
    grown = np.concatenate([[0], np.cumsum(passed)]).astype(np.int64)
    lost = np.concatenate([[0], np.cumsum(drops)]).astype(np.int64)
    nothing = np.zeros_like(time)
    queue = Samples(time, {"sent_bytes": grown, "backlog_bytes": nothing, "drops_packets": nothing})
    return SimpleNamespace(plan=plan, bottleneck=queue, policer=Samples(time, {"drops_packets": lost}))


def test_the_bucket_is_computed_again_while_flows_run(tmp_path: Path) -> None:
    """At 5 Mbit/s a step of 10 ms fills 6250 bytes."""
    plan = planned(tmp_path)
    tolerance = tolerance_of(plan)
    idle = [0] * 20  # the bucket is full then
    (good,) = bucket_check(readings(plan, [*idle, 90_000, 20_000, 6_056], [*idle, 0, 3, 3]), tolerance)
    assert good.ok
    assert "dropped 6 packets" in good.message
    (more,) = bucket_check(readings(plan, [*idle, 90_000, 30_000], [*idle, 0, 0]), tolerance)
    assert more.ok is False
    assert "more passed than its bucket could hold" in more.message
    (less,) = bucket_check(readings(plan, [*idle, 50_000], [*idle, 1]), tolerance)
    assert less.ok is False
    assert "dropped 1 packets with at least 50000 bytes" in less.message


def test_the_kernels_own_word_is_compared(tmp_path: Path) -> None:
    plan = planned(tmp_path)

    def told(**bucket: int) -> str:
        kept = operations(plan, "qdisc", node="left")
        qdiscs = [{"dev": item.arguments()["interface"], **item.arguments(), "options": {}} for item in kept]
        dump = {"qdiscs": qdiscs, "classes": {}, "policers": {"left-eth0": [bucket] if bucket else []}}
        (found,) = [c for c in settings_checks(plan, told_by(qdiscs={"left": dump})) if c.name == "queues"]
        return found.message

    assert "the policer of" not in told(rate_bits_per_second=5_000_000, burst_bytes=100_000)
    assert "holds 50000 bytes at 5000000 bit/s" in told(rate_bits_per_second=5_000_000, burst_bytes=50_000)
    assert "missing" in told()
