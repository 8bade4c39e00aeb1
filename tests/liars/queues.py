# SPDX-License-Identifier: Apache-2.0
"""Lies of queues and policers: another kind, rate or room, other thresholds, another mark, drops without a cause."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.plan import Plan
from howdah.plan.policer import INGRESS_HANDLE
from tests.liars.breaking import altered, bottleneck, named, options, values
from tests.liars.doctor import add, doctored, edit_account
from tests.liars.liar import check
from tests.liars.path_breaks import buffer
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

BUFFERS = [
    path_liar(
        "buffer-two-frames-short",
        "The bottleneck's buffer is two frames smaller than the plan says.",
        check("before", "buffer", "too low"),
        buffer(-2),
    ),
    path_liar(
        "buffer-of-half-the-size",
        "The bottleneck's buffer is half as large as the plan says: none of the packets that are timed fits in.",
        check("before", "buffer", "too low"),
        buffer(-16),
    ),
    path_liar(
        "buffer-one-frame-long",
        "The bottleneck's buffer is one frame larger than the plan says.",
        check("after", "buffer", "too high"),
        buffer(1),
    ),
    path_liar(
        "deep-buffer-short-of-its-part",
        "Of a buffer that takes half a minute to fill, less is there than the part that is filled.",
        check("before", "buffer", "it is too low"),
        buffer(-1000),
        honest="deep",
    ),
    path_liar(
        "deep-buffer-beyond-its-part",
        "A buffer that is filled only in part is one frame larger than the plan says.",
        check("engine", "queues", "the plan says"),
        buffer(1),
        honest="deep",
    ),
    path_liar(
        "queue-of-the-way-back",
        "The queue of the way back holds a hundred packets, and the plan says fifty.",
        check("engine", "queues", "has limit 100 packets, the plan says 50"),
        options("qdisc", {"limit_packets": 100}, node="right", interface="right-eth0", kind="pfifo"),
        honest="way-back",
    ),
    path_liar(
        "buffer-fills-beyond-its-limit",
        "The bottleneck holds more than the plan's limit while the flows run.",
        check("during", "peak backlog", "larger than configured"),
        buffer(30),
    ),
]


def _none(plan: Plan) -> Plan:
    return dataclasses.replace(plan, operations=[item for item in plan.operations if item.op != "police"])


def _count(name: str) -> Any:
    def change(after: dict[str, Any]) -> None:
        (found,) = [item for item in after["nodes"]["left"]["qdiscs"] if item["handle"] == INGRESS_HANDLE]
        add(found, name, -2)

    return edit_account(change)


POLICERS = [
    path_liar(
        "policer-of-a-smaller-burst",
        "The policer's bucket holds one frame less than the plan says.",
        check("before", "policer burst", "too low"),
        values("police", {"burst_bytes": 28_486}),
        honest="policed",
    ),
    path_liar(
        "policer-of-another-rate",
        "The policer's bucket fills 2 % faster than the plan says.",
        check("after", "policer rate", "too high"),
        values("police", {"rate_bits_per_second": 5_100_000}),
        honest="policed",
    ),
    path_liar(
        "policer-that-is-not-there",
        "Nothing polices the path.",
        check("before", "policer burst", "it is missing"),
        _none,
        honest="policed",
    ),
    path_liar(
        "policer-that-lets-more-pass",
        "While flows run, the policer lets twice its rate pass.",
        check("during", "policer", "bytes more passed than its bucket could hold"),
        values("police", {"rate_bits_per_second": 10_000_000}),
        honest="policed",
    ),
    path_liar(
        "policer-that-drops-with-tokens",
        "While flows run, the policer drops what its bucket has tokens for.",
        check("during", "policer", "in its bucket"),
        values("police", {"burst_bytes": 6_056}),
        honest="policed",
    ),
    path_liar(
        "policer-by-another-name",
        "The kernel says of its policer that it holds half of what the plan says.",
        check("engine", "queues", "the plan says 30000 bytes at 5000000 bit/s"),
        values("police", {"burst_bytes": 15_000}),
        honest="policed",
    ),
    doctored(
        "policed-packets-that-nobody-counted",
        "The policer dropped two packets more than it says.",
        check("accounting", "packets forward", "drops 2 packets that no queue admits to"),
        _count("drops"),
        about="path",
        honest="policed",
    ),
    doctored(
        "packets-past-the-policer",
        "Two packets came to the queue without passing the policer.",
        check("accounting", "policer", "2 packets passed it by"),
        _count("packets"),
        about="path",
        honest="policed",
    ),
]
