# SPDX-License-Identifier: Apache-2.0
"""A hop that treats packets: what a profile may ask for, what the module is told, and when it is on."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.judge.loss import _without_hop, hidden_by, loss_readings
from howdah.linux.netlink.discipline.howdah_hop import COUNTERS, MiddleHop
from howdah.measure.sampled import Samples
from howdah.plan.event import Event
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile.middlebox import MOST_LOST
from tests.unit.profile_factory import make_one, make_plans


def hops(plan: Plan) -> dict[str, list[Event]]:
    """Changes of each hop, by the router that has it."""
    found: dict[str, list[Event]] = {}
    for event in plan.timeline:
        if event.change.arguments().get("kind") == MiddleHop.kind:
            found.setdefault(event.change.arguments()["node"], []).append(event)
    return found


def test_it_is_on_while_flows_run_alone(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.middlebox={mtu: 1400, lose: [3, 7-9]}"])
    (installed,) = {
        item.arguments()["options"]["active"]
        for item in plan.operations
        if item.op == "qdisc" and item.arguments()["kind"] == MiddleHop.kind
    }
    assert installed is False
    changes = hops(plan)
    assert {
        node: [(each.at_us, each.change.arguments()["options"]["active"]) for each in of]
        for node, of in changes.items()
    } == {
        "left": [(0, True), (plan.duration_us, False)],
        "right": [(0, True), (plan.duration_us, False)],
    }
    ahead, back = (changes[node][0].change.arguments()["options"] for node in ("right", "left"))
    assert (ahead["mtu_bytes"], ahead["lost"]) == (1400, [3, 7, 8, 9])
    assert (back["mtu_bytes"], back["lost"]) == (1400, [])
    assert MiddleHop.kind in (plan.required_modules or [])
    assert "MTU 1400 bytes, answered by ICMP, loses 4 packets by number" in render(plan)


def test_what_is_done_forward_alone_needs_no_hop_back(tmp_path: Path) -> None:
    assert set(hops(make_one(tmp_path, overrides=["path.middlebox={duplicate: 1 %}"]))) == {"right"}


def test_without_it_a_plan_has_nothing_of_it(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    assert "middlebox" not in plan.to_json()
    assert MiddleHop.kind not in plan.to_json()


def test_repetitions_draw_anew_and_algorithms_the_same(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, "algorithm: [cubic, reno]\n", ["path.middlebox={corrupt: 1 %}", "repetitions=2"])
    seeds = {
        (plan.flows[0].algorithm, plan.repetition): hops(plan)["right"][0].change.arguments()["options"]["seed"]
        for plan in plans
    }
    assert len(seeds) == 4
    assert seeds["cubic", 0] == seeds["reno", 0] != seeds["cubic", 1] == seeds["reno", 1]


def test_the_module_is_told_as_its_structure_says() -> None:
    hop = MiddleHop(True, 1280, True, True, [3, 8], 0.5, 0.25, [1, 2], 77)
    half, quarter = round(0.5 * (2**32 - 1)), round(0.25 * (2**32 - 1))
    assert hop.encode() == struct.pack("=QIIIIIIII", 77, 7, 1280, 1 << 3 | 1 << 8, half, quarter, 2, 1, 2)
    assert " ".join(map(str, hop.words())).startswith(
        "mtu 1280 icmp clear-ecn strip window-scale,timestamps lose list[2]"
    )
    off = MiddleHop(False, 0, False, False, [], 0.0, 0.0, [], 0)
    assert off.encode()[8:12] == bytes(4)
    assert MiddleHop.causes(struct.pack("=9I", *range(9))) == dict(zip(COUNTERS, range(9), strict=True))
    assert MiddleHop.causes(b"") == {}


def test_a_tunnel_takes_of_the_paths_mtu(tmp_path: Path) -> None:
    path = make_one(tmp_path, overrides=["path.middlebox={overhead: 60, icmp: false}", "path.mtu=1500"]).path
    assert path.middlebox is not None
    assert (path.middlebox.mtu_bytes, path.middlebox.answers) == (1440, False)


def test_packets_are_named_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lost.txt"
    file.write_text("# two bursts\n5-7\n\n100 # and one\n", encoding="utf-8")
    path = make_one(tmp_path, overrides=[f"path.middlebox={{lose: [2, {file}]}}"]).path
    assert path.middlebox is not None
    assert path.middlebox.lost == [2, 5, 6, 7, 100]
    file.write_text("5\nsix\n", encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, overrides=[f"path.middlebox={{lose: [{file}]}}"])
    assert (caught.value.where, caught.value.what) == (f"{file}:2", "'six' is not the number of a packet")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("{mtu: 67}", "every hop forwards packets of 68"),
        ("{mtu: 551}", "hosts take none below 552"),
        ("{overhead: 1000}", "an MTU of 500 bytes that ICMP reports"),
        ("{mtu: 1500}", "nothing is larger than 1500 bytes where path.mtu is 1500"),
        ("{overhead: 1433}", "leave 67 of path.mtu, 1500; 68 must be left"),
        ("{mtu: 1400, overhead: 20}", "mtu and overhead are both given"),
        ("{icmp: false}", "give mtu or overhead"),
        ("{}", "this middlebox does nothing"),
        ("{duplicate: 60 %}", "at most 50 % of the packets to duplicate"),
        ("{corrupt: 120 %}", "120"),
        ("{strip: [mss]}", "mss"),
        ("{lose: [0]}", "packets count from 1"),
        ("{lose: [9-3]}", "names no packets"),
        ("{lose: [nowhere.txt]}", "it cannot be read as a file"),
        (f"{{lose: [1-{MOST_LOST + 1}]}}", f"{MOST_LOST} can be lost by number"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(asked: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, overrides=[f"path.middlebox={asked}"])
    error = caught.value
    assert words in f"{error.what} {error.hint}"
    assert error.where


def test_a_packet_of_several_frames_is_not_damaged(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="corrupt is of one"):
        make_one(tmp_path, overrides=["path.middlebox={corrupt: 1 %}", "path.gso_max_segs=kernel"])


def test_a_small_black_hole_is_one(tmp_path: Path) -> None:
    path = make_one(tmp_path, overrides=["path.middlebox={mtu: 400, icmp: false}"]).path
    assert path.middlebox is not None
    assert path.middlebox.mtu_bytes == 400


def test_packets_that_overtake_pass_no_middlebox(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="pass a middlebox by"):
        make_one(tmp_path, overrides=["path.middlebox={mtu: 1400}", "path.reorder={share: 1 %}"])


def test_drops_of_a_middlebox_are_not_those_of_its_line(tmp_path: Path) -> None:
    """The line's own drops are lost, and what the middlebox dropped had entered the line, too."""
    time_ns = np.array([0, 1])
    line = Samples(
        time_ns,
        {"sent_packets": np.array([0, 90]), "drops_packets": np.array([0, 10]), "backlog_packets": np.array([0, 0])},
    )
    hop = Samples(time_ns, {"drops_packets": np.array([0, 6])})
    read = loss_readings(_without_hop(line, hop), 0.04, [])
    assert read is not None
    assert (read.entered.tolist(), read.dropped.tolist()) == ([100], [4])
    (plan,) = [make_one(tmp_path, overrides=["path.middlebox={duplicate: 2 %}"])]
    assert "copies" in str(hidden_by(plan))
    assert hidden_by(make_one(tmp_path, overrides=["path.middlebox={mtu: 1400}"])) is None
