# SPDX-License-Identifier: Apache-2.0
"""The sum of all packets: where hops, queues and hosts drop, one counter at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from howdah.judge.accounting import Snapshots, accounting_checks
from howdah.judge.check import VIRTUAL
from howdah.linux.netlink.discipline.htb import Htb, HtbClass
from howdah.plan.placed import Class, Qdisc
from howdah.plan.plan import Plan
from howdah.plan.route import links_between
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.path_factory import ACKS, DROPPED, SENT

Doctor = Callable[[dict[str, Any]], Any]
HEALTHY = "forward: 1000 packets sent, 992 received"


def judged(doctor: Doctor | None = None, plan: Plan | None = None) -> dict[str, Check]:
    found = path_factory.accounting()
    if doctor is not None:
        doctor(found)
    checks = accounting_checks(plan or path_factory.path_plan(), Snapshots(**found), VIRTUAL)
    assert len({check.name for check in checks}) == len(checks)
    return {check.name: check for check in checks}


def counter(place: str, name: str, value: int) -> Doctor:
    """``value`` more of one counter of an interface."""
    node, interface = place.split(":")

    def doctor(found: dict[str, Any]) -> None:
        found["after"]["nodes"][node]["interfaces"][interface][name] += value

    return doctor


def queue(node: str, **values: Any) -> Doctor:
    """One more queue at the end of what the node has; zero of everything before."""
    new = {"bytes": 0, "packets": 0, "drops": 0, "backlog_packets": 0, **values}

    def doctor(found: dict[str, Any]) -> None:
        found["after"]["nodes"][node]["qdiscs"].append(new)

    return doctor


@pytest.mark.parametrize(
    ("place", "name", "forward", "reverse"),
    [
        # What is known to be dropped is not missing; as the packets still arrive, they are too many.
        ("left:left-eth0", "rx_dropped", -1, 0),
        ("left:left-eth0", "rx_errors", -1, 0),
        ("left:left-eth1", "tx_dropped", -1, 0),
        ("left:left-eth1", "tx_errors", -1, 0),
        ("r1:r1-eth0", "rx_dropped", -1, 0),
        ("r1:r1-eth0", "rx_errors", -1, 0),
        ("s1:s1-eth0", "tx_dropped", 0, 0),  # a host's own drops come before its count of packets sent
        ("s1:s1-eth0", "tx_errors", 0, 0),
        ("s1:s1-eth0", "tx_packets", 1, 0),
        ("r1:r1-eth0", "rx_packets", -1, 0),
        ("r1:r1-eth0", "tx_packets", 0, 1),
        ("s1:s1-eth0", "rx_packets", 0, -1),
        ("s1:s1-eth0", "rx_dropped", 0, -1),
        ("left:left-eth1", "rx_errors", 0, -1),
        ("right:right-eth0", "tx_errors", 0, -1),
        ("r1:r1-eth0", "tx_errors", 0, 0),
        ("right:right-eth1", "tx_packets", 0, 0),  # hops between are not counted
        ("right:right-eth1", "tx_bytes", 0, 0),
    ],
)
def test_each_counter_has_its_place_in_the_sum(place: str, name: str, forward: int, reverse: int) -> None:
    found = judged(counter(place, name, 1))
    for direction, missing in (("forward", forward), ("reverse", reverse)):
        check = found[f"packets {direction}"]
        assert (check.ok, check.expected, check.measured, check.unit) == (missing == 0, 0, missing, "packets")
        if missing > 0:
            assert check.message.endswith("; the path drops 1 packets that no queue admits to")
        elif missing < 0:
            assert check.message.endswith("; 1 packets more than were sent: something duplicates, splits or answers")
        assert ("; " in check.message) is (missing != 0)


@pytest.mark.parametrize(
    ("node", "values", "told", "missing"),
    [
        # A parent counts its children's drops again: of both the larger one.
        ("left", {"interface": "left-eth1", "handle": "20:", "parent": "1:2", "drops": 3}, "11 at", -3),
        ("left", {"interface": "left-eth1", "handle": "2:", "parent": "root", "drops": 3}, "11 at", -3),
        # What an ingress queue drops arrived; another interface's is its own.
        ("left", {"interface": "left-eth1", "handle": "ffff:", "parent": "ingress", "drops": 30}, "8 at", 0),
        ("left", {"interface": "left-eth0", "handle": "20:", "parent": "1:2", "drops": 3}, "8 at", 0),
    ],
)
def test_a_queue_with_classes_counts_a_drop_once(node: str, values: dict[str, Any], told: str, missing: int) -> None:
    check = judged(queue(node, kind="x", **values))["packets forward"]
    assert check.message.startswith(f"{HEALTHY}, {told} the queue of left:left-eth1")
    assert check.measured == missing


def test_places_are_told_in_the_order_of_the_way() -> None:
    def drop(found: dict[str, Any]) -> None:
        nodes = found["after"]["nodes"]
        nodes["left"]["interfaces"]["left-eth1"].update(tx_dropped=2)
        nodes["right"]["interfaces"]["right-eth0"].update(rx_errors=3, rx_dropped=4)
        nodes["r1"]["interfaces"]["r1-eth0"]["rx_packets"] -= 9

    expected = f"forward: 1000 packets sent, {SENT - DROPPED - 9} received, 7 at right:right-eth0, "
    expected += "8 at the queue of left:left-eth1, 2 at left:left-eth1"
    check = judged(drop)["packets forward"]
    assert check == Check("packets forward", "accounting", True, expected, 0, 0, 0, "packets")
    assert judged()["packets reverse"].message == (
        f"reverse: {ACKS} packets sent, {ACKS} received, none at any known place"
    )


def test_flows_of_one_way_are_counted_once() -> None:
    plan = path_factory.path_plan()
    twice = dataclasses.replace(plan, flows=[*plan.flows, dataclasses.replace(plan.flows[0], id=2)])
    assert judged(plan=twice)["packets forward"].message == judged()["packets forward"].message


def test_a_network_that_connects_nothing_is_not_counted() -> None:
    plan = dataclasses.replace(path_factory.path_plan(), operations=[])
    found = judged(plan=plan)
    for direction in ("forward", "reverse"):
        message = "the plan's network does not connect the hosts of a flow"
        assert found[f"packets {direction}"] == Check(f"packets {direction}", "accounting", False, message)
    assert found["host queue drops"].ok is True
    other = dataclasses.replace(plan.flows[0], id=2, receiver="r9")
    plan = dataclasses.replace(path_factory.path_plan(), flows=[*plan.flows, other])
    assert judged(plan=plan)["packets forward"].ok is False, "one of two"


@pytest.mark.parametrize(
    ("ratio", "drops", "ok", "message"),
    [
        (0.0, 0, True, "dropped 0 of 992 packets"),
        (0.0, 1, False, "dropped 1 of 993 packets, expected 0 ± 0: its limit is too small"),
        # 1 % of 1000: 10, and 4 * sqrt(9.9) + 1 = 13.59 on either side.
        (0.01, 8, True, "dropped 8 of 1000 packets"),
        (0.01, 23, True, "dropped 23 of 1015 packets"),
        # Of 1016 packets 10.16 and 4 * sqrt(10.06) + 1 = 13.7.
        (0.01, 24, False, "dropped 24 of 1016 packets, expected 10.16 ± 13.7: its limit is too small"),
        # Of 992 packets 39.68 and 4 * sqrt(38.09) + 1 = 25.7: none is too few, which no limit explains.
        (0.04, 0, False, "dropped 0 of 992 packets, expected 39.68 ± 25.7"),
    ],
)
def test_a_delay_line_drops_what_was_asked_for(ratio: float, drops: int, ok: bool, message: str) -> None:
    def drop(found: dict[str, Any]) -> None:
        found["after"]["nodes"]["right"]["qdiscs"][0]["drops"] += drops

    plan = path_factory.path_plan()
    plan = dataclasses.replace(plan, path=dataclasses.replace(plan.path, loss_ratio=ratio))
    found = judged(drop, plan)
    check = found["netem drops right:right-eth1"]
    offered = SENT - DROPPED + drops
    assert (check.ok, check.message) == (ok, f"the delay line at right:right-eth1 {message}")
    assert (check.stage, check.measured, check.unit) == ("accounting", drops, "packets")
    assert check.expected == pytest.approx(ratio * offered)
    assert check.tolerance == pytest.approx(4 * (offered * ratio * (1 - ratio)) ** 0.5 + (1 if ratio else 0))
    back = found["netem drops left:left-eth0"]
    assert (back.expected, back.tolerance) == (0.0, 0.0), "no loss is asked for on the way back"


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ({"forward_loss_steps": [[0, 0.1]]}, {"left:left-eth0"}),
        ({"reverse_loss_steps": [[0, 0.1]]}, {"right:right-eth1"}),
        ({}, {"left:left-eth0", "right:right-eth1"}),
    ],
)
def test_a_loss_that_changes_is_judged_by_its_schedule(steps: dict[str, Any], left: set[str]) -> None:
    plan = path_factory.path_plan()
    plan = dataclasses.replace(plan, path=dataclasses.replace(plan.path, **steps))
    assert {name[12:] for name in judged(plan=plan) if name.startswith("netem drops ")} == left


def test_only_delay_lines_of_the_plan_are_judged_as_such() -> None:
    plan = path_factory.path_plan()
    late = Class("left", "left-eth1", "1:", "1:1", HtbClass(20_000_000, 1514, 1514, 1514))
    bottleneck = Qdisc("left", "left-eth1", "root", "1:", Htb(1))
    plan = dataclasses.replace(plan, operations=[late, bottleneck, *plan.operations])
    extra = queue("right", interface="right-eth1", handle="7:", parent="1:", kind="netem", drops=9)
    found = judged(extra, plan)
    assert [name for name in found if name.startswith("netem")] == [
        "netem drops right:right-eth1",
        "netem drops left:left-eth0",
    ]
    assert found["netem drops right:right-eth1"].ok is True, "of another handle"


def test_drops_of_hosts_are_told_by_host() -> None:
    def drop(found: dict[str, Any]) -> None:
        found["after"]["nodes"]["s1"]["qdiscs"][0]["drops"] += 4
        queue("r1", interface="r1-eth0", handle="1:", parent="root", kind="fq", drops=3)(found)

    found = judged(drop)
    message = "7 packets were dropped in the hosts' own queues (s1:s1-eth0, r1:r1-eth0)"
    assert found["host queue drops"] == Check("host queue drops", "accounting", False, message, 0, 7, 0, "packets")
    assert found["packets forward"].ok is True, "they were never sent"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("TcpExtTCPMemoryPressures", "memory pressure"),
        ("TcpExtPruneCalled", "receive queue pruned"),
        ("TcpExtTCPRcvQDrop", "receive queue drops"),
        ("TcpExtTCPBacklogDrop", "socket backlog drops"),
    ],
)
def test_a_counter_that_moved_is_told_with_its_hosts(name: str, label: str) -> None:
    def moved(found: dict[str, Any]) -> None:
        found["before"]["netstat"]["s1"][name] = 10
        for node, value in (("s1", 12), ("r1", 3)):
            found["after"]["netstat"][node][name] = value
        del found["before"]["netstat"]["r1"]

    check = judged(moved)[label]
    assert (check.ok, check.measured, check.unit) == (False, 5, "events")
    assert check.message.endswith("(at s1, r1)")
    assert "5 " in check.message

    def none(found: dict[str, Any]) -> None:
        for values in found["after"]["netstat"].values():
            del values[name]

    assert judged(none)[label] == Check(label, "accounting", None, "events were not counted", 0, None, 0, "events")
    assert judged()[label].message == f"{name} did not move"


def test_what_is_still_queued_is_told_by_place() -> None:
    def held(found: dict[str, Any]) -> None:
        found["before"]["nodes"]["left"]["qdiscs"][0]["backlog_packets"] = 9
        found["after"]["nodes"]["left"]["qdiscs"][1]["backlog_packets"] = 2
        found["after"]["nodes"]["right"]["qdiscs"][0]["backlog_packets"] = 1

    message = "3 packets were still queued when packets were counted (left:left-eth1, right:right-eth1)"
    assert judged(held)["silence"] == Check("silence", "accounting", False, message, 0, 3, 0, "packets")


def test_counters_are_what_grew() -> None:
    state = Snapshots(**path_factory.accounting())
    assert state.interface("s1", "s1-eth0", "tx_packets") == SENT
    (netem,) = state.qdiscs("right", "right-eth1")
    assert (netem["packets"], netem["bytes"], netem["drops"]) == (SENT - DROPPED, (SENT - DROPPED) * 1514, 0)
    assert (netem["handle"], netem["kind"]) == ("1:", "netem")
    assert [each["handle"] for each in state.qdiscs("left", "left-eth1")] == ["1:", "10:"]
    assert state.queue_drops("left", "left-eth1") == DROPPED
    assert state.softnet_dropped == 0
    told = path_factory.accounting()
    told["before"]["softnet"]["dropped"], told["after"]["softnet"]["dropped"] = 3, 5
    assert Snapshots(**told).softnet_dropped == 2
    del told["before"]["nodes"]["right"]["qdiscs"][0]
    (netem,) = Snapshots(**told).qdiscs("right", "right-eth1")
    assert netem["packets"] == 100 + SENT - DROPPED, "a queue that is new begins with nothing"
    del told["before"]["netstat"]
    assert Snapshots(**told).counter("TcpExtPruneCalled") == dict.fromkeys(("s1", "left", "right", "r1"), 0)
    assert Snapshots(**told).counter("absent") == {}


def test_the_way_follows_links_through_routers_only() -> None:
    plan = path_factory.path_plan()
    assert [(hop.node, hop.interface) for hop in links_between(plan, "s1", "r1")] == list(path_factory.FORWARD)
    assert [(hop.node, hop.interface) for hop in links_between(plan, "r1", "s1")] == list(path_factory.REVERSE)
    assert links_between(plan, "s1", "nowhere") == []
