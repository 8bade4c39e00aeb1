# SPDX-License-Identifier: Apache-2.0
"""The qdisc layer: where each qdisc is, with which numbers, and which are delay lines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.linux.netlink.discipline.htb import Htb, HtbClass
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.event import Event
from howdah.plan.line import Line, delay_lines
from howdah.plan.placed import Class, Qdisc
from howdah.plan.plan import Plan
from tests.steps import with_options
from tests.unit import path_factory
from tests.unit.profile_factory import make_one, operations

TWO_FLOWS = "flows: [{}, {}]\n"


def _kinds(plan: Plan) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for item in operations(plan, "qdisc"):
        kinds.setdefault(item.arguments()["interface"], []).append(item.arguments()["kind"])
    return kinds


def test_bottleneck_delay_and_sender_interface_are_hops_apart(tmp_path: Path) -> None:
    assert _kinds(make_one(tmp_path, TWO_FLOWS)) == {
        "left-eth0": ["htb", "bfifo"],
        "right-eth1": ["netem"],
        "right-eth2": ["netem"],
        "left-eth1": ["netem"],
        "left-eth2": ["netem"],
        "s1-eth0": ["htb", "pfifo"],
        "s2-eth0": ["htb", "pfifo"],
    }


def test_no_host_has_a_netem(tmp_path: Path) -> None:
    plan = make_one(tmp_path, TWO_FLOWS, overrides=["path.loss=1 %", "path.reverse_rate=1 Mbit/s"])
    routers = {host.name for host in plan.hosts if host.role == "router"}
    assert {item.arguments()["node"] for item in operations(plan, "qdisc", kind="netem")} <= routers


def test_the_bottleneck_is_exact_to_one_frame_in_virtual_time(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    (rate,) = operations(plan, "class", interface="left-eth0")
    assert rate.arguments()["options"] == {
        "rate_bits_per_second": 20_000_000,
        "burst_bytes": 1514,
        "cburst_bytes": 1514,
        "quantum_bytes": 1514,
    }
    (buffer,) = operations(plan, "qdisc", kind="bfifo")
    assert buffer.arguments()["options"] == {"limit_bytes": 100_000}
    assert (buffer.arguments()["parent"], buffer.arguments()["handle"]) == ("1:1", "10:")


def test_without_a_burst_every_rate_limit_spaces_its_frames(tmp_path: Path) -> None:
    hops = ["path.hops=[{rate: 30 Mbit/s, place: before}]", "path.reverse_rate=5 Mbit/s", "path.burst=none"]
    rates = {
        found["rate_bits_per_second"]: found["burst_bytes"]
        for found in (item.arguments()["options"] for item in operations(make_one(tmp_path, overrides=hops), "class"))
    }
    # What a microsecond fills, and no less than a byte: tc takes 0 for none given.
    assert rates == {20_000_000: 2, 30_000_000: 3, 5_000_000: 1, 1_000_000_000: 125}


def test_in_real_time_a_late_timer_does_not_slow_the_path(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=1 Gbit/s", "path.sender_interface=10 Gbit/s"], engine="host")
    (rate,) = operations(plan, "class", interface="left-eth0")
    assert rate.arguments()["options"]["burst_bytes"] == 1_000_000_000 // 8 * 250 // 1_000_000
    assert make_one(tmp_path, engine="host").operations != make_one(tmp_path).operations


def test_an_unlimited_sender_interface_is_a_bare_veth(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.sender_interface=unlimited"])
    assert "s1-eth0" not in _kinds(plan)
    assert plan.path.sender_interface_bits_per_second is None


def test_gso_max_segs_of_hosts(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    assert {item.arguments()["interface"] for item in operations(plan, "gso", gso_max_segs=1)} == {"s1-eth0", "r1-eth0"}
    assert not operations(make_one(tmp_path, overrides=["path.gso_max_segs=kernel"]), "gso")


def test_offloads_are_off_on_every_interface(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    interfaces = {item.arguments()["interface"] for item in operations(plan, "mtu")}
    assert len(interfaces) == 6
    for feature in ("tso", "gso", "gro", "lro"):
        off = operations(plan, "offload", feature=feature, enabled=False)
        assert {item.arguments()["interface"] for item in off} == interfaces


def test_the_way_back_can_be_a_bottleneck(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.reverse_rate=1 Mbit/s", "path.reverse_buffer=2 bdp"])
    assert _kinds(plan)["right-eth0"] == ["htb", "bfifo"]
    (buffer,) = operations(plan, "qdisc", kind="bfifo", interface="right-eth0")
    assert buffer.arguments()["options"]["limit_bytes"] == 2 * 1_000_000 * 40_000 // 8_000_000
    assert plan.path.reverse_rate_bits_per_second == 1_000_000


def test_random_loss_is_forward_and_seeded(tmp_path: Path) -> None:
    plan = make_one(tmp_path, TWO_FLOWS, overrides=["path.loss=0.5 %"])
    lines = {
        item.arguments()["interface"]: item.arguments()["options"] for item in operations(plan, "qdisc", kind="netem")
    }
    assert lines["right-eth1"]["loss_ratio"] == lines["right-eth2"]["loss_ratio"] == 0.005
    assert lines["left-eth1"]["loss_ratio"] == 0
    seeds = {lines["right-eth1"]["seed"], lines["right-eth2"]["seed"]}
    assert None not in seeds
    assert len(seeds) == 2, "two delay lines do not lose the same packets"
    assert lines["left-eth1"]["seed"] is None
    again = make_one(tmp_path, TWO_FLOWS, overrides=["path.loss=0.5 %"])
    other = make_one(tmp_path, TWO_FLOWS, overrides=["path.loss=0.5 %", "seed=2"])
    assert operations(again, "qdisc") == operations(plan, "qdisc")
    assert operations(other, "qdisc") != operations(plan, "qdisc")


def test_a_constant_delay_has_no_random_part_and_no_rate(tmp_path: Path) -> None:
    for item in operations(make_one(tmp_path), "qdisc", kind="netem"):
        options = item.arguments()["options"]
        assert (options["jitter_us"], options["distribution"], options["seed"]) == (0, None, None)
        assert options["rate_bits_per_second"] is None
        assert (options["reorder_ratio"], options["reorder_gap"]) == (0.0, 0)


def test_a_large_mtu_changes_the_frame(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.mtu=9000"])
    assert plan.path.frame_bytes == 9014
    (rate,) = operations(plan, "class", interface="left-eth0")
    assert rate.arguments()["options"]["burst_bytes"] == 9014
    assert all(item.arguments()["mtu_bytes"] == 9000 for item in operations(plan, "mtu"))


def plan(*changes: Event, **first: Any) -> Plan:
    """The line towards r1 begins with ``first``; ``changes`` come later."""
    base = path_factory.path_plan()
    first = {"delay_us": 20_000, "limit_packets": 1000, **first}
    operations = [
        with_options(each, **first) if isinstance(each, Qdisc) and each.node == "right" else each
        for each in base.operations
    ]
    # Of the bottleneck between two routers, and a queue of another kind towards a host.
    operations += [
        Qdisc("left", "left-eth1", "root", "1:", Netem(20_000, 1000)),
        Qdisc("right", "right-eth1", "root", "9:", Htb(1)),
    ]
    return dataclasses.replace(base, operations=operations, timeline=list(changes))


def later(handle: str, delay_us: int) -> Event:
    return Event(5, Qdisc("right", "right-eth1", "root", handle, Netem(delay_us, 1000)))


RATE = Event(5, Class("right", "right-eth1", "1:", "1:1", HtbClass(1, 1, 1, 1)))
BACK = Line("s1", "left", "left-eth0", "1:", 20_000, True)


@pytest.mark.parametrize(
    ("found", "least_us", "plain"),
    [
        (plan(), 20_000, True),
        (plan(delay_us=0), 0, True),
        (plan(jitter_us=3_000), 17_000, False),
        (plan(jitter_us=30_000), 0, False),  # no less than nothing
        (plan(reorder_ratio=0.1), 0, False),
        (plan(loss_ratio=0.1), 20_000, False),
        (plan(distribution=[0, 8192]), 20_000, False),
        (plan(jitter_us=3_000, distribution=[-8192, 16_384]), 17_000, False),
        (plan(rate_bits_per_second=1), 20_000, False),
        # A change is one, be it plain itself; the least of all counts.
        (plan(later("1:", 20_000)), 20_000, False),
        (plan(later("1:", 30_000)), 20_000, False),
        (plan(later("1:", 9_000), later("1:", 10_000)), 9_000, False),
        (plan(later("1:", 30_000), loss_ratio=0.5), 20_000, False),
        (plan(later("10:", 1)), 20_000, True),  # of another queue
        (plan(RATE), 20_000, True),
    ],
)
def test_a_delay_line_has_its_shortest_delay(found: Plan, least_us: int, plain: bool) -> None:
    assert delay_lines(found) == [Line("r1", "right", "right-eth1", "1:", least_us, plain), BACK]
    assert BACK.place == ("left", "left-eth0", "1:")
