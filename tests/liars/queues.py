# SPDX-License-Identifier: Apache-2.0
"""Lies of active queues: another kind, other thresholds, another mark, drops without a cause."""

from __future__ import annotations

from typing import Any

from howdah.plan.plan import Plan
from tests.liars.breaking import altered, bottleneck, named, options, values
from tests.liars.doctor import add, doctored, edit_account
from tests.liars.liar import check
from tests.liars.paths import path_liar


def _red_instead_of_choke(plan: Plan) -> Plan:
    def change(item: dict[str, Any]) -> None:
        given = item["options"]
        for name in ("limit", "least", "most"):
            given[f"{name}_bytes"] = given.pop(f"{name}_packets") * given["packet_bytes"]
        item.update(kind="red", options=given | {"adaptive": False})

    return altered(plan, bottleneck(plan, "qdisc", kind="choke"), change)


def _no_ack_filter(plan: Plan) -> Plan:
    return altered(plan, named("qdisc", kind="cake"), lambda item: item["options"].pop("ack_filter"))


def _one_match_less(after: dict[str, Any]) -> None:
    (found,) = [item for item in after["nodes"]["left"]["qdiscs"] if item["kind"] == "choke"]
    add(found, "matched", -1)


def _two_more_of_low_latency(after: dict[str, Any]) -> None:
    (found,) = [item for item in after["nodes"]["left"]["qdiscs"] if item["kind"] == "dualpi2"]
    add(found, "low_latency", 2)


def _unseen_marks(after: dict[str, Any]) -> None:
    add(after["netstat"]["r1"], "IpExtInCEPkts", -5)


def _mark_of_the_way_back(after: dict[str, Any]) -> None:
    add(after["netstat"]["s1"], "IpExtInCEPkts", 1)


QUEUES = [
    path_liar(
        "choke-that-compares-nothing",
        "The bottleneck's queue is RED with CHOKe's thresholds: it compares no packet with one that waits.",
        check("engine", "queues", "is red, the plan says choke"),
        _red_instead_of_choke,
        honest="choke",
    ),
    path_liar(
        "choke-that-begins-later",
        "CHOKe compares packets only above ten times the mean queue of the plan.",
        check("engine", "queues", "has min 50 packets, the plan says 5"),
        options("qdisc", {"least_packets": 50, "most_packets": 60}, kind="choke"),
        honest="choke",
    ),
    path_liar(
        "mark-that-nobody-reads",
        "The queue takes another DSCP than the plan's for a mark, so that marked packets are as any.",
        check("engine", "queues", "looks at DSCP 15, the plan says DSCP 14"),
        values("filter", {"dscp": 15}),
        honest="gred",
    ),
    path_liar(
        "marked-packets-as-any",
        "Marked packets are dropped from the same queue on as all others.",
        check("engine", "queues", "has 1 min 8333 bytes, the plan says 2777"),
        options("qdisc", {"marked_least_bytes": 8_333, "marked_most_bytes": 25_000}, kind="gred"),
        honest="gred",
    ),
    path_liar(
        "codel-of-another-target",
        "CoDel accepts twice the waiting time of the plan.",
        check("engine", "queues", "the plan says 5000"),
        options("qdisc", {"target_us": 10_000}, kind="codel"),
        honest="codel",
    ),
    path_liar(
        "ack-filter-that-is-off",
        "CAKE on the way back drops no ACK that a later one makes needless.",
        check("engine", "queues", "has ack-filter disabled, the plan says aggressive"),
        _no_ack_filter,
        honest="ack-filter",
    ),
    path_liar(
        "packets-instead-of-bytes",
        "The way back's queue holds another number of packets than the plan says.",
        check("engine", "queues", "has limit 25 packets, the plan says 50"),
        options("qdisc", {"limit_packets": 25}, node="right", kind="pfifo"),
        honest="way-back",
    ),
    doctored(
        "drop-without-a-cause",
        "CHOKe dropped a pair of packets, and says of it that it compared nothing.",
        check("accounting", "drop causes left:left-eth0", "2 packets have no cause"),
        edit_account(_one_match_less),
        about="path",
        honest="choke",
    ),
    path_liar(
        "dualpi2-of-another-coupling",
        "DualPI2 marks packets of low latency with the controller's probability, and not with twice that.",
        check("engine", "queues", "has coupling 1, the plan says 2"),
        options("qdisc", {"coupling": 1}, kind="dualpi2"),
        honest="dualpi2",
    ),
    path_liar(
        "dualpi2-of-another-gain",
        "DualPI2's controller weighs the wait's change by 1/256 Hz less than the plan says.",
        check("engine", "queues", "has beta 818, the plan says 819"),
        options("qdisc", {"beta": 818}, kind="dualpi2"),
        honest="dualpi2",
    ),
    doctored(
        "packets-between-two-queues",
        "Two packets more came to the queue of low latency than left it or were dropped.",
        check("accounting", "two queues left:left-eth0", "2 packets are missing"),
        edit_account(_two_more_of_low_latency),
        about="path",
        honest="dualpi2",
    ),
    doctored(
        "marks-that-nobody-got",
        "The queue says that it marked five packets more than came to the receiver with a mark.",
        check("accounting", "marks forward", "5 marks are missing"),
        edit_account(_unseen_marks),
        about="path",
        honest="marking",
    ),
    doctored(
        "mark-of-the-way-back",
        "An acknowledgement came with a mark, and no queue of the way back says that it marked one.",
        check("accounting", "marks reverse", "more than were marked"),
        edit_account(_mark_of_the_way_back),
        about="path",
        honest="marking",
    ),
]
