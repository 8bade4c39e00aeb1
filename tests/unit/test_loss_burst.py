# SPDX-License-Identifier: Apache-2.0
"""Loss in bursts: from a profile to netem's model, and how the judge knows bursts from packets lost one by one."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.judge.burst import allowed_losses, bursts
from howdah.judge.tolerance import VIRTUAL
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.message import parse_attributes
from howdah.measure.sampled import MISSING, Samples
from howdah.plan.burst import transitions
from howdah.plan.plan import Plan
from howdah.plan.text import render
from tests.unit.profile_factory import make_one, make_plans

GAP_NS = 5_000_000
LOSSES = ["path.loss=2 %", "path.loss_burst=5"]


def lines(plan: Plan) -> dict[str, dict[str, Any]]:
    """Options of the delay lines, by node."""
    return {
        item.arguments["node"]: item.arguments["options"]
        for item in plan.operations
        if item.op == "qdisc" and item.arguments["kind"] == "netem"
    }


def lost(count: int, begins: float, ends: float, seed: int) -> list[bool]:
    """loss_gilb_ell() of net/sched/sch_netem.c with h = 0 and 1-k = 0, line by line: the state of before decides."""
    generator = random.Random(seed)
    bad, found = False, []
    for _ in range(count):
        found.append(bad)
        bad = not (generator.random() < ends) if bad else generator.random() < begins
    return found


def readings(losses: list[bool], each: list[int]) -> Samples:
    """A delay line that holds nothing, read after so many packets each."""
    edges = np.concatenate([[0], np.cumsum(each)])
    total = np.concatenate([[0], np.cumsum(losses)])[edges]
    time_ns = np.arange(edges.size, dtype=np.int64) * GAP_NS
    zero = np.zeros(edges.size, dtype=np.int64)
    return Samples(time_ns, {"sent_packets": edges - total, "drops_packets": total, "backlog_packets": zero})


def judged(losses: list[bool], each: list[int], ratio: float = 0.02, mean: float = 5.0) -> bool | None:
    return bursts("x", readings(losses, each), ratio, [], mean, VIRTUAL).ok


@pytest.mark.parametrize(("ratio", "mean"), [(0.02, 5.0), (0.3, 1.0), (0.02, 20.0), (0.5, 2.0)])
def test_a_share_and_a_length_are_two_probabilities(ratio: float, mean: float) -> None:
    begins, ends = transitions(ratio, mean)
    assert begins / (begins + ends) == pytest.approx(ratio)
    assert 1 / ends == mean
    losses = lost(400_000, begins, ends, 1)
    number = sum(later and not earlier for earlier, later in zip([False, *losses], losses, strict=False))
    assert sum(losses) / len(losses) == pytest.approx(ratio, rel=0.15)
    assert sum(losses) / number == pytest.approx(mean, rel=0.15)


def test_the_delay_line_ahead_loses_in_bursts(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=LOSSES)
    ahead, back = lines(plan)["right"], lines(plan)["left"]
    assert (ahead["loss_ratio"], ahead["burst_ends_ratio"]) == (0.02, 0.2)
    assert ahead["burst_begins_ratio"] == pytest.approx(0.2 * 0.02 / 0.98)
    assert "burst_ends_ratio" not in back
    assert plan.path.loss_burst_packets == 5
    assert "2 %, in bursts of 5 packets on average" in render(plan)
    assert "loss gemodel 0.4081632653% 20%" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


def test_without_bursts_a_plan_says_nothing_of_them(tmp_path: Path) -> None:
    assert "burst_begins" not in make_one(tmp_path, overrides=LOSSES[:1]).to_json()
    assert "loss_burst" not in make_one(tmp_path, overrides=LOSSES[:1]).to_json()


def test_bursts_stay_through_an_outage_and_follow_the_loss(tmp_path: Path) -> None:
    """Everything is lost during the outage, without a model; what comes after it is lost in bursts again."""
    schedule = "path.schedule=[{at: 1 s, outage: 100 ms}, {at: 2 s, loss: 1 %}]"
    plan = make_one(tmp_path, overrides=[*LOSSES, schedule])
    changes = [
        (item.at_us, item.arguments["options"])
        for item in plan.timeline
        if item.op == "qdisc" and item.arguments["node"] == "right"
    ]
    told = [(at_us, options["loss_ratio"], "burst_ends_ratio" in options) for at_us, options in changes]
    assert told[:3] == [(1_000_000, 1.0, False), (1_100_000, 0.02, True), (2_000_000, 0.01, True)]


def test_a_repetition_draws_anew_and_algorithms_draw_the_same(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, "algorithm: [cubic, bbr]\n", [*LOSSES, "repetitions=2"])
    seeds = {(plan.flows[0].algorithm, plan.repetition): lines(plan)["right"]["seed"] for plan in plans}
    assert seeds["cubic", 0] == seeds["bbr", 0] != seeds["cubic", 1] == seeds["bbr", 1]


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (["path.loss_burst=5"], "no random loss"),
        (["path.loss=1 %", "path.loss_burst=0.5"], "greater than or equal to 1"),
        (["path.loss=1 %", "path.loss_burst=2", "path.schedule=[{at: 1 s, loss: 80 %}]"], "cannot lose so much"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, overrides: list[str], what: str) -> None:
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, overrides=overrides)


def test_netem_is_given_the_model_and_no_other_loss(tmp_path: Path) -> None:
    options = lines(make_one(tmp_path, overrides=LOSSES))["right"]
    request = qdisc.qdisc_request(2, "root", "1:", "netem", options)
    found = parse_attributes(parse_attributes(request[qdisc.TCMSG.size :])[2][24:])
    assert struct.unpack_from("=IIIIII", parse_attributes(request[qdisc.TCMSG.size :])[2])[2] == 0
    model = struct.unpack("=IIII", parse_attributes(found[5])[2])  # TCA_NETEM_LOSS, NETEM_LOSS_GE
    assert [value / (2**32 - 1) for value in model] == pytest.approx([0.2 * 0.02 / 0.98, 0.2, 0, 0])


@pytest.mark.parametrize("each", [1, 3, 20, 200])
@pytest.mark.parametrize("mean", [1.0, 5.0, 30.0])
def test_the_model_itself_passes_whatever_is_sent_between_readings(each: int, mean: float) -> None:
    begins, ends = transitions(0.02, mean)
    found = [judged(lost(40_000, begins, ends, seed), [each] * (40_000 // each), mean=mean) for seed in range(8)]
    assert all(found)


def test_a_sender_that_falls_silent_after_a_loss_is_no_fault() -> None:
    """After each time with a loss one packet alone is sent, which the burst that goes on may take as well."""
    for seed in range(8):
        losses = lost(60_000, *transitions(0.02, 5), seed)
        each: list[int] = []
        at = 0
        while at + 30 < len(losses):
            each.append(1 if each and any(losses[at - each[-1] : at]) else 25)
            at += each[-1]
        assert judged(losses[:at], each)


@pytest.mark.parametrize("each", [10, 20, 50])
@pytest.mark.parametrize("other", [1 / 0.98, 50.0])
def test_other_bursts_of_the_same_loss_are_seen(each: int, other: float) -> None:
    for seed in range(4):
        losses = lost(40_000, *transitions(0.02, other), seed)
        assert judged(losses, [each] * (40_000 // each)) is False


def test_a_line_that_loses_nothing_is_seen() -> None:
    assert judged([False] * 40_000, [20] * 2000) is False


def test_a_change_of_the_loss_ends_a_burst() -> None:
    """All packets are lost in the third reading, by an outage, and none of them counts."""
    samples = readings([False] * 20 + [True] * 10 + [False] * 10, [10] * 4)
    changes = [(2 * GAP_NS, 1.0), (3 * GAP_NS, 0.02)]
    check = bursts("x", samples, 0.02, changes, 5, VIRTUAL)
    assert (check.ok, check.measured) == (True, 0)


def test_a_line_that_was_not_read_is_not_judged() -> None:
    samples = readings([False], [1])
    samples.columns["drops_packets"][:] = MISSING
    assert bursts("x", samples, 0.02, [], 5, VIRTUAL).ok is None


def test_the_count_of_losses_keeps_within_what_is_allowed() -> None:
    """Also where there is one burst in two runs; and without bursts it is four deviations and a packet, as ever."""
    assert allowed_losses(0, 10_000, 0.01, None, 4) == pytest.approx(4 * 99**0.5 + 1)
    assert allowed_losses(0, 10_000, 0.0, None, 4) == 0
    for seed in range(300):
        count = sum(lost(174, *transitions(0.02, 5), seed))
        assert abs(count - 3.48) <= allowed_losses(count, 174, 0.02, 5, 4) < 174
    assert allowed_losses(0, 10_000, 0.02, 5, 4) < 200, "none at all is too few"
