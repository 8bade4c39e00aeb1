# SPDX-License-Identifier: Apache-2.0
"""Loss in bursts: from a profile to netem's model, and how the judge knows bursts from packets lost one by one."""

from __future__ import annotations

import dataclasses
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.errors import ProfileError
from howdah.judge.check import VIRTUAL
from howdah.judge.loss import allowed_losses, burst_checks, bursts
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.discipline import made
from howdah.linux.netlink.message import parse_attributes
from howdah.measure.sampled import MISSING, Samples
from howdah.plan.burst import transitions
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.record import table
from howdah.record.directory import RunDirectory
from howdah.record.schema import QDISC
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.profile_factory import make_one, make_plans

GAP_NS = 5_000_000
LOSSES = ["path.loss=2 %", "path.loss_burst=5"]


def lines(plan: Plan) -> dict[str, dict[str, Any]]:
    """Options of the delay lines, by node."""
    return {
        item.arguments()["node"]: item.arguments()["options"]
        for item in plan.operations
        if item.op == "qdisc" and item.arguments()["kind"] == "netem"
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
        (item.at_us, item.change.arguments()["options"])
        for item in plan.timeline
        if item.op == "qdisc" and item.change.arguments()["node"] == "right"
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
        (["path.loss=1 %", "path.loss_burst=2", "path.schedule=[{at: 1 s, loss: 80 %}]"], "cannot reach this loss"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, overrides: list[str], what: str) -> None:
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, overrides=overrides)


def test_netem_is_given_the_model_and_no_other_loss(tmp_path: Path) -> None:
    options = lines(make_one(tmp_path, overrides=LOSSES))["right"]
    request = qdisc.qdisc_request(2, "root", "1:", made("netem", options))
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


B, E = 0.2 * 0.02 / 0.98, 0.2  # at 2 % in bursts of 5 packets a burst begins, or goes on no more, with these chances


def _words(lost: int, found: int, expected: float, allowed: float, why: str = "") -> str:
    text = f"the delay line at x lost {lost} packets between {found} pairs of readings, expected {expected:.4g} ± "
    return f"{text}{allowed:.3g} with bursts of 5 packets" + (f": its bursts are {why} than the plan's" if why else "")


@pytest.mark.parametrize(
    ("entered", "dropped", "clean"),
    [
        ([10], [0], [(1 - B) ** 10]),  # no burst before: none begins at any of ten packets
        ([10, 10], [0, 0], [(1 - B) ** 10] * 2),
        # Two of ten were lost: the last one was with a chance of 1 / (1 + 8 * 0.2). Then the burst must end first.
        ([10, 10], [2, 0], [(1 - B) ** 10, (E / 2.6 + (1 - 1 / 2.6) * (1 - B)) * (1 - B) ** 9]),
        ([10, 10], [10, 0], [(1 - B) ** 10, E * (1 - B) ** 9]),  # all were lost: so was the last
        ([10, 0, 10], [10, 0, 0], [(1 - B) ** 10, E * (1 - B) ** 9]),  # nothing entered, nothing is learned
        ([1], [1], [1 - B]),
    ],
)
def test_what_the_model_expects_of_each_reading(entered: list[int], dropped: list[int], clean: list[float]) -> None:
    drops = np.concatenate([[0], np.cumsum(dropped)])
    sent = np.concatenate([[0], np.cumsum(np.array(entered) - np.array(dropped))])
    samples = Samples(
        np.arange(drops.size, dtype=np.int64) * GAP_NS,
        {"sent_packets": sent, "drops_packets": drops, "backlog_packets": sent * 0},
    )
    check = bursts("x", samples, 0.02, [], 5.0, VIRTUAL)
    expected = sum(1 - each for each in clean)
    found = sum(each > 0 for each in dropped)
    variance = sum(each * (1 - each) for each in clean)
    allowed = 4 * variance**0.5 + 8 if found > expected else 4 * expected**0.5
    assert (check.name, check.stage, check.ok, check.unit) == ("loss bursts x", "during", True, "readings")
    assert check.measured == found
    assert check.expected == pytest.approx(expected)
    assert check.tolerance == pytest.approx(allowed)
    assert check.message == _words(sum(dropped), found, expected, allowed)


@pytest.mark.parametrize(
    ("found", "ok", "why"),
    [(0, False, "longer or fewer"), (64, True, ""), (103, True, ""), (400, False, "shorter")],
)
def test_bursts_that_are_too_many_or_too_few_are_told(found: int, ok: bool, why: str) -> None:
    """Of 2000 readings of 10 packets each, as many lost one each."""
    losses = [number % 10 == 0 and number // 10 < found for number in range(20_000)]
    check = bursts("x", readings(losses, [10] * 2000), 0.02, [], 5.0, VIRTUAL)
    assert check.measured == found
    assert check.expected is not None
    assert check.ok is ok
    assert check.message == _words(found, found, float(check.expected), check.tolerance or 0, why)


def test_each_delay_line_ahead_is_judged_by_its_bursts(tmp_path: Path) -> None:
    """Packets are lost one by one: half a burst too many. On the way back nothing is lost in bursts."""
    losses = [number % 10 == 0 for number in range(20_000)]
    samples = readings(losses, [10] * 2000)
    zero = dict.fromkeys(("backlog_bytes", "sent_bytes", "overlimits", "marks_packets"), 0)
    rows: list[dict[str, Any]] = [
        {"node": node, "interface": interface, "handle": "1:", "parent": "root", "kind": "netem", "time_ns": time_ns}
        | zero
        | {name: int(samples[name][at]) for name in ("sent_packets", "drops_packets", "backlog_packets")}
        for node, interface in (("right", "right-eth1"), ("left", "left-eth0"))
        for at, time_ns in enumerate(samples.time_ns.tolist())
    ]
    directory = RunDirectory(tmp_path)
    directory.tables.mkdir()
    table.write(directory, "qdisc", pa.Table.from_pylist(rows, schema=QDISC))
    base = path_factory.path_plan()
    found: dict[str, dict[str, bool | None]] = {}
    paths: dict[str, dict[str, Any]] = {
        "bursts": {"loss_ratio": 0.1, "loss_burst_packets": 5.0},
        "one by one": {"loss_ratio": 0.1},
        "none any more": {"loss_ratio": 0.1, "loss_burst_packets": 5.0, "forward_loss_steps": [[0, 0.0]]},
        "later": {"loss_ratio": 0.0, "loss_burst_packets": 5.0, "forward_loss_steps": [[1, 0.1]]},
    }
    for name, path in paths.items():
        plan = dataclasses.replace(base, path=dataclasses.replace(base.path, **path))
        found[name] = {each.name: each.ok for each in burst_checks(directory, plan, VIRTUAL)}
    name = "loss bursts right:right-eth1"
    assert found == {"bursts": {name: False}, "one by one": {}, "none any more": {name: True}, "later": {name: False}}


def test_a_delay_line_of_bursts_that_was_not_read_says_so() -> None:
    expected = Check("loss bursts x", "during", None, "the delay line at x was not read", unit="readings")
    once = readings([False], [1])
    once = Samples(once.time_ns[:1], {name: each[:1] for name, each in once.columns.items()})
    assert bursts("x", once, 0.02, [], 5.0, VIRTUAL) == expected


@pytest.mark.parametrize(
    ("lost", "ratio", "burst", "allowed"),
    [
        (0, 0.0, None, 0),
        (5, 0.0, 5.0, 0),
        (10, 1.0, 5.0, 1),  # where all are lost there is nothing to draw
        (10, 0.1, None, 4 * 9**0.5 + 1),
        # (2 - b - e) / (b + e) = 8 with b = 0.2 / 9: as many packets above the mean as eight bursts have more.
        (10, 0.1, 5.0, 4 * (9 * 8) ** 0.5),
        (11, 0.1, 5.0, 4 * (9 * 8) ** 0.5 + 40),
    ],
)
def test_how_far_a_count_of_losses_may_be_off(lost: int, ratio: float, burst: float | None, allowed: float) -> None:
    assert allowed_losses(lost, 100, ratio, burst, 4) == pytest.approx(allowed)
