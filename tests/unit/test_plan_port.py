# SPDX-License-Identifier: Apache-2.0
"""Times and ports of a plan's flows: no pair twice, no two listeners at one port at a time, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Flow
from howdah.plan.port import FIRST_DESTINATION_PORT, FIRST_SOURCE_PORT, MOST_KEPT, MOST_PORTS, PortNeed, port_pairs
from howdah.profile import load
from tests.unit.profile_factory import make_one

HOSTS = ("s1", "r1")
MANY = """\
flows: [{}]
groups:
- {name: short, connections: 26000, interval: 1 ms, size: 10 kB}
- {name: asked, connections: 2000, interval: 10 ms, size: 10 kB, request: 100 B}
- {name: udp, role: background, connections: 2, udp: {rate: 1 Mbit/s}}
"""
WIDE = ["path.rate=1 Gbit/s", "path.rtt=20 ms", "duration=40 s"]


def test_as_far_as_ports_go_the_ith_flow_has_the_ith_ones() -> None:
    pairs = port_pairs([PortNeed(False, 0, 1000, HOSTS)] * MOST_PORTS)
    assert pairs[0] == (FIRST_SOURCE_PORT, FIRST_DESTINATION_PORT)
    assert pairs[-1] == (65_000, 30_000)
    assert len(set(pairs)) == MOST_PORTS


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> list[Flow]:
    return make_one(tmp_path_factory.mktemp("many"), MANY, WIDE).flows


def test_no_pair_comes_twice_and_both_sides_stay_apart(flows: list[Flow]) -> None:
    assert len({(flow.source_port, flow.destination_port) for flow in flows}) == len(flows) == 28_003
    senders = {flow.source_port for flow in flows}
    receivers = {flow.destination_port for flow in flows}
    assert not senders & receivers
    assert max(senders) < 65_536


def test_flows_that_keep_their_ports_share_them_with_nobody(flows: list[Flow]) -> None:
    kept = [flow for flow in flows if flow.group in (None, "udp")]
    assert [flow.destination_port for flow in kept] == [5001, 5002, 5003]
    others = [flow for flow in flows if flow not in kept]
    assert not {flow.source_port for flow in kept} & {flow.source_port for flow in others}
    assert not {flow.destination_port for flow in kept} & {flow.destination_port for flow in others}


def test_a_port_is_taken_again_long_after(flows: list[Flow]) -> None:
    """Connections of one port start at least as far apart as four round trips."""
    for side in ("source", "destination"):
        last: dict[tuple[str, int], int] = {}
        for flow in sorted(flows, key=lambda each: each.start_us):
            place = flow.at(side)
            if place in last:
                assert flow.start_us - last[place] >= 4 * flow.rtt_us
            last[place] = flow.start_us


def test_more_at_once_than_there_are_ports_is_refused() -> None:
    at_once = [PortNeed(False, 0, 1000, HOSTS)] * (MOST_PORTS + 1)
    with pytest.raises(ProfileError, match="more than 25000 connections are opened within 4 round trips"):
        port_pairs(at_once)
    two_pairs = [PortNeed(False, 0, 1000, HOSTS if number % 2 else ("s2", "r2")) for number in range(MOST_PORTS + 1)]
    with pytest.raises(ProfileError):
        port_pairs(two_pairs)  # those that meet are of one host
    apart = [PortNeed(False, number, 1000, HOSTS) for number in range(MOST_PORTS + 5)]
    assert len(set(port_pairs(apart))) == len(apart)


def test_more_flows_with_ports_of_their_own_than_there_are_is_refused() -> None:
    with pytest.raises(ProfileError, match="each need a port of their own"):
        port_pairs([PortNeed(True, 0, 1000, HOSTS)] * (MOST_PORTS + 1))
    assert MOST_KEPT < MOST_PORTS


def test_the_complaint_names_the_groups(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, MANY.replace("interval: 1 ms", "interval: 1 us").replace("26000", "60000"), WIDE)
    assert "more than" in str(caught.value)
    assert caught.value.where is not None and ":" in caught.value.where


QUICK = Path(__file__).parents[2] / "profiles" / "quick.yaml"


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("duration=80 ms", "duration"),
        ("flows=[{stop: 80 ms}]", "flows[0].stop"),
        ("flows=[{start: 1 s, stop: 1080 ms}]", "flows[0].stop"),
        ("flows=[{start: 3920 ms}]", "duration"),
        ("flows=[{rtt: 2 s}]", "duration"),
        ("background=[{stop: 20 ms}]", "background[0].stop"),
    ],
)
def test_a_flow_that_ends_before_an_ack_of_its_data_is_refused(override: str, where: str) -> None:
    cell = load(QUICK, [override]).cells()[0]
    with pytest.raises(ProfileError) as raised:
        compile_plan(cell, None)
    assert "two round trips" in raised.value.what
    assert raised.value.where == cell.place(*(int(part) if part.isdigit() else part for part in _parts(where)))


def _parts(where: str) -> list[str]:
    return where.replace("[", ".").replace("]", "").split(".")


def test_one_that_lasts_a_little_longer_is_planned() -> None:
    assert compile_plan(load(QUICK, ["duration=81 ms"]).cells()[0], None).flows[0].stop_us == 81_000
