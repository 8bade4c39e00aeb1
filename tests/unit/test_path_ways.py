# SPDX-License-Identifier: Apache-2.0
"""What each way of a path does to packets: losses of a time, drawn delays, too little room, a tunnel's bytes."""

from __future__ import annotations

import math
import random
import struct
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.judge.check import VIRTUAL
from howdah.judge.jitter import _distribution, _order
from howdah.judge.room import room_check
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.discipline import made
from howdah.linux.netlink.message import parse_attributes
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.plan.variation import delay_table
from howdah.profile.path import DelayVariation
from tests.unit.profile_factory import make_one, make_plans

MS = 1_000_000


def events(plan: Plan, node: str) -> list[tuple[int, dict[str, Any]]]:
    return [
        (item.at_us, item.change.arguments()["options"])
        for item in plan.timeline
        if item.op == "qdisc" and item.change.arguments()["node"] == node
    ]


def losses(plan: Plan, node: str = "right") -> list[tuple[int, float]]:
    return [(at_us, options["loss_ratio"]) for at_us, options in events(plan, node)]


def test_a_loss_of_a_time_lies_over_others_and_an_outage_over_it(tmp_path: Path) -> None:
    steps = (
        "{at: 500 ms, loss: 2 %}, {at: 1 s, loss: 20 %, loss_for: 500 ms}, {at: 1100 ms, outage: 100 ms}, "
        "{at: 1300 ms, loss: 5 %}"
    )
    plan = make_one(tmp_path, overrides=["path.loss=1 %", f"path.schedule=[{steps}]", "duration=2 s"])
    assert losses(plan) == [
        (500_000, 0.02),
        (1_000_000, 0.2),
        (1_100_000, 1.0),
        (1_200_000, 0.2),
        (1_500_000, 0.05),
        (2_000_000, 0.01),
    ]
    assert losses(plan, "left") == [(1_100_000, 1.0), (1_200_000, 0.0), (2_000_000, 0.0)]


def test_of_two_losses_that_overlap_the_later_one_holds_and_the_first_goes_on(tmp_path: Path) -> None:
    steps = "{at: 1 s, loss: 20 %, loss_for: 1 s}, {at: 1200 ms, loss: 40 %, loss_for: 100 ms}"
    plan = make_one(tmp_path, overrides=[f"path.schedule=[{steps}]", "duration=3 s"])
    assert losses(plan) == [(1_000_000, 0.2), (1_200_000, 0.4), (1_300_000, 0.2), (2_000_000, 0.0), (3_000_000, 0.0)]


def test_the_way_back_loses_and_changes_its_rate(tmp_path: Path) -> None:
    overrides = ["path.reverse_rate=2 Mbit/s", "path.reverse_loss=1 %", "path.reverse_loss_burst=4"]
    overrides += ["path.schedule=[{at: 1 s, reverse_rate: 1 Mbit/s}, {at: 2 s, reverse_loss: 3 %}]", "duration=3 s"]
    plan = make_one(tmp_path, overrides=overrides)
    assert losses(plan, "left") == [(2_000_000, 0.03), (3_000_000, 0.01)]
    assert losses(plan) == []
    assert plan.path.losses(ahead=False).burst_packets == 4
    assert plan.path.reverse_rate_steps == [[1_000_000, 1_000_000], [3_000_000, 2_000_000]]
    assert plan.path.rate_steps == []
    classes = [event.change.arguments()["node"] for event in plan.timeline if event.op == "class"]
    assert classes == ["right", "right"]
    assert "1 %, in bursts of 4 packets on average" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_schedule_says_what_a_trace_does_not(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("time, loss\n0 s, 1 %\n1 s, 3 %\n", encoding="utf-8")
    trace, outage = "path.trace={file: loss.csv}", "path.schedule=[{at: 1500 ms, outage: 100 ms, rate: 5 Mbit/s}]"
    plan = make_one(tmp_path, overrides=[trace, outage, "duration=2 s"])
    assert losses(plan) == [(0, 0.01), (1_000_000, 0.03), (1_500_000, 1.0), (1_600_000, 0.03), (2_000_000, 0.0)]
    assert plan.path.rate_steps[0] == [1_500_000, 5_000_000]


@pytest.mark.parametrize(
    ("columns", "step", "what"),
    [
        ("time, loss\n0 s, 1 %\n", "{at: 1 s, loss: 3 %}", "both say loss"),
        ("time, rtt\n0 s, 30 ms\n", "{at: 1 s, reverse_delay: 3 ms}", "both say reverse_delay"),
        (
            "time, reverse_rate\n0 s, 1 Mbit/s\n",
            "{at: 1 s, outage: 1 s}",
            "the reverse direction has no rate to change",
        ),
    ],
)
def test_what_a_trace_cannot_say_beside_a_schedule(tmp_path: Path, columns: str, step: str, what: str) -> None:
    (tmp_path / "x.csv").write_text(columns, encoding="utf-8")
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, overrides=["path.trace={file: x.csv}", f"path.schedule=[{step}]"])


def test_each_repetition_draws_the_losses_of_a_way_anew(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, "algorithm: [cubic, bbr]\n", ["path.reverse_loss=2 %", "repetitions=2"])
    seeds = {}
    for plan in plans:
        (line,) = [
            item.arguments()["options"]["seed"]
            for item in plan.operations
            if item.op == "qdisc" and item.arguments()["kind"] == "netem" and item.arguments()["node"] == "left"
        ]
        seeds[plan.flows[0].algorithm, plan.repetition] = line
    assert seeds["cubic", 0] == seeds["bbr", 0] != seeds["cubic", 1] == seeds["bbr", 1]


def asked(**fields: Any) -> DelayVariation:
    return DelayVariation.model_validate({"order": "broken", "source": "test", **fields})


@pytest.mark.parametrize(
    ("fields", "quantile"),
    [
        ({"distribution": "normal", "standard_deviation": "2 ms"}, lambda u: 2000 * (3 + NormalDist().inv_cdf(u))),
        ({"distribution": "exponential", "standard_deviation": "2 ms"}, lambda u: -2000 * math.log(1 - u)),
        ({"distribution": "uniform", "amplitude": "5 ms"}, lambda u: 5000 * u),
        (
            {"distribution": "pareto", "standard_deviation": "2 ms"},
            lambda u: 2000 / math.sqrt(0.75) * ((1 - u) ** (-1 / 3) - 1),
        ),
    ],
)
def test_a_table_has_the_quantiles_of_its_distribution(fields: dict[str, Any], quantile: Any) -> None:
    table = delay_table(asked(**fields), None)
    assert max(table.table) <= 32767
    delays = table.delays_us
    assert delays == sorted(delays)
    assert min(delays) >= 0
    for share in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99):
        assert delays[int(share * len(delays))] == pytest.approx(quantile(share), rel=0.03, abs=3)


def test_a_table_of_a_file_has_its_delays(tmp_path: Path) -> None:
    (tmp_path / "delays.txt").write_text("1 ms\n# none\n3 ms  # often\n3 ms\n10 ms\n", encoding="utf-8")
    variation = "path.delay_variation={distribution: table, table: delays.txt, order: broken, source: x}"
    plan = make_one(tmp_path, overrides=[variation])
    (_, begun), (_, ended) = events(plan, "right")
    drawn = sorted({round(begun["jitter_us"] * each / 8192 / 100) * 100 for each in begun["distribution"]})
    assert drawn == [1000, 3000, 10_000]
    assert begun["distribution"].count(max(begun["distribution"])) == 256
    assert (ended["jitter_us"], ended["distribution"]) == (0, None)
    assert plan.path.jitter is not None
    assert (plan.path.jitter.mean_us, plan.path.jitter.largest_us) == (4250, 10_001)
    assert "each packet for itself" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("3 ms\nsoon\n", "delays.txt:2"),
        ("0 ms\n", "no delay above 0"),
        ("# none\n", "no delays"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str | None, what: str) -> None:
    if content is not None:
        (tmp_path / "delays.txt").write_text(content, encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        make_one(
            tmp_path,
            overrides=["path.delay_variation={distribution: table, table: delays.txt, order: broken, source: x}"],
        )
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (["path.delay_variation={distribution: uniform, amplitude: 6 s, order: broken, source: x}"], "5 s at most"),
        (
            [
                "path.delay_variation={distribution: uniform, amplitude: 6 ms, order: broken, source: x}",
                "path.tick=1 ms",
            ],
            "cannot be combined with tick",
        ),
        (
            ["path.delay_variation={distribution: uniform, amplitude: 6 ms, order: broken, source: x}", "split=true"],
            "by one kernel alone",
        ),
        (["path.delay_variation={distribution: uniform, amplitude: 6 ms, source: x}"], "needs a correlation_time"),
    ],
)
def test_delays_that_cannot_be_drawn_are_refused(tmp_path: Path, overrides: list[str], what: str) -> None:
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, overrides=overrides)


TABLE = np.array(delay_table(asked(distribution="exponential", standard_deviation="2 ms"), None).delays_us)


def draws(generator: random.Random, count: int) -> np.ndarray:
    return np.array([generator.choice(TABLE) for _ in range(count)])


def test_drawn_delays_pass_and_others_do_not() -> None:
    """In 200 series of the table none fails; a uniform one of the same mean, one a fifth longer and none at all do."""
    generator = random.Random(5)
    for _ in range(200):
        assert _distribution("x", "before", draws(generator, 1000), TABLE, VIRTUAL).ok
    others: tuple[np.ndarray, ...] = (
        np.array([generator.uniform(0, 4000) for _ in range(1000)]),
        1.2 * draws(generator, 1000),
        np.zeros(1000),
        np.maximum.accumulate(draws(generator, 1000) + 1000 * np.arange(1000)) - 1000 * np.arange(1000),
    )
    for other in others:
        assert _distribution("x", "before", other, TABLE, VIRTUAL).ok is False


def test_the_order_of_drawn_delays() -> None:
    """Of an exponential distribution of mean m, exp(-spacing / m) / 2 of all packets overtake the one before."""
    generator = random.Random(6)
    for _ in range(100):
        came = 1000 * np.arange(1000) + draws(generator, 1000)
        check = _order("x", "before", came, TABLE, 1000, VIRTUAL)
        assert check.ok
    assert check.expected == pytest.approx(999 * math.exp(-0.5) / 2, rel=0.01)
    kept = np.maximum.accumulate(came)
    assert _order("x", "before", kept, TABLE, 1000, VIRTUAL).ok is False
    assert _order("x", "before", 200.0 * np.arange(1000) + draws(generator, 1000), TABLE, 1000, VIRTUAL).ok is False


def line(arrivals: int, leaves: int, limit: int, each: int) -> Samples:
    """A line of so much room into which more comes than leaves, by a reading after ``each`` steps."""
    held = sent = drops = 0
    rows = [(0, 0, 0)]
    for step in range(600):
        for _ in range(arrivals):
            if held < limit:
                held += 1
            else:
                drops += 1
        sent, held = sent + min(leaves, held), held - min(leaves, held)
        if step % each == 0:
            rows.append((held, sent, drops))
    columns = np.array(rows).T
    time_ns = np.arange(len(rows), dtype=np.int64) * MS
    return Samples(time_ns, dict(zip(("backlog_packets", "sent_packets", "drops_packets"), columns, strict=True)))


@pytest.mark.parametrize("each", [1, 7])
@pytest.mark.parametrize(("limit", "ok"), [(20, True), (25, False), (12, False)])
def test_a_line_of_too_little_room_is_the_planned_one(limit: int, each: int, ok: bool) -> None:
    assert room_check("x", "the line", line(2, 1, limit, each), (20, 20), 10**12).ok is ok


def test_a_tunnel_takes_of_every_rate(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.middlebox={overhead: vxlan}", "path.reverse_rate=1 Mbit/s"])
    limits = [item.arguments() for item in plan.operations if item.op == "qdisc" and item.arguments()["kind"] == "htb"]
    assert [each["node"] for each in limits] == ["left", "right", "s1"]
    assert [each["options"]["overhead_bytes"] for each in limits] == [50, 50, 50]
    assert (plan.path.mss_bytes, plan.path.frame_bytes, plan.calibration.overhead_bytes) == (1398, 1514, 50)
    assert plan.path.capacity_goodput_bits_per_second == plan.path.rate_bits_per_second * 1398 / 1514
    assert "htb default 1" in render(plan)
    assert "stab overhead 50" in render(plan)
    request = qdisc.qdisc_request(2, "root", "1:", made("htb", limits[0]["options"]))
    stab = parse_attributes(parse_attributes(request[qdisc.TCMSG.size :])[8])[1]
    assert struct.unpack("=BBhiIIII", stab) == (0, 0, 0, 50, 0, 0, 0, 0)
    plain = make_one(tmp_path, overrides=["path.middlebox={mtu: 1450}"])
    assert "overhead" not in plain.to_json()
    assert plain.path.mss_bytes == 1448


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (["path.middlebox={overhead: stt}"], "expected bytes as an integer, or one of pppoe, ipip, gre"),
        (["path.middlebox={overhead: 0}"], "expected bytes as an integer"),
        (["path.middlebox={overhead: gre}", "path.gso_max_segs=kernel"], "gso_max_segs does not go with it"),
        (["path.middlebox={overhead: gre}", "path.policer={rate: 1 Mbit/s, burst: 50 kB}"], "policer does not go"),
    ],
)
def test_a_tunnel_that_cannot_be_is_refused(tmp_path: Path, overrides: list[str], what: str) -> None:
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, overrides=overrides)
