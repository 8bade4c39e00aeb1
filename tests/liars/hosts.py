# SPDX-License-Identifier: Apache-2.0
"""Lies of the queues of senders' interfaces: another kind, another limit, none at all, drops that nobody counted."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.event import Event
from howdah.plan.host_queue import HOST_HANDLE
from howdah.plan.plan import Plan
from tests.liars.breaking import Break, values
from tests.liars.doctor import add, doctored, edit_account
from tests.liars.liar import check
from tests.liars.paths import path_liar
from tests.steps import changed

NAME = "host queue s1:s1-eth0"


def _exchanged(**changes: Any) -> Break:
    """Other arguments of the queue that a sender gets when flows begin."""

    def broken(plan: Plan) -> Plan:
        def exchanged(event: Event) -> Event:
            if event.change.arguments().get("handle") != HOST_HANDLE:
                return event
            return changed(event, **changes)

        return dataclasses.replace(plan, timeline=list(map(exchanged, plan.timeline)))

    return broken


def _never(plan: Plan) -> Plan:
    return dataclasses.replace(plan, timeline=[event for event in plan.timeline if event.op != "replace"])


def _dropped(after: dict[str, Any]) -> None:
    (found,) = [item for item in after["nodes"]["s1"]["qdiscs"] if item["handle"] == HOST_HANDLE]
    add(found, "drops", 2)


HOSTS = [
    path_liar(
        "host-queue-that-is-not-there",
        "The sender's interface has a queue that never drops, and the plan says one packet.",
        check("accounting", NAME, "is missing"),
        _never,
        honest="host-queue",
    ),
    path_liar(
        "host-queue-of-another-kind",
        "The sender's interface has a fifo, and the plan says fq.",
        check("accounting", NAME, "is pfifo, the plan says fq"),
        _exchanged(kind="pfifo", options={"limit_packets": 10_000}),
        honest="host-fq",
    ),
    path_liar(
        "fq-of-a-smaller-flow-limit",
        "A flow of the sender's fq has room for 50 packets, and the plan says 100.",
        check("accounting", NAME, "its flow_limit is 50, the plan says 100"),
        _exchanged(options={"limit_packets": 10_000, "flow_limit_packets": 50}),
        honest="host-fq",
    ),
    path_liar(
        "host-queue-of-more-room",
        "The sender's queue has room for eight packets, and the plan says one.",
        check("during", NAME, "its limit is not in force"),
        values("txqueuelen", {"packets": 8}),
        honest="host-queue",
    ),
    path_liar(
        "fq-that-drops-early",
        "A flow of the sender's fq has room for one packet, and the plan says 100.",
        check("during", NAME, "it dropped while it held at most"),
        _exchanged(options={"limit_packets": 10_000, "flow_limit_packets": 1}),
        honest="host-fq",
    ),
    path_liar(
        "interface-of-another-length",
        "The sender's interface has room for eight packets, and the plan says one.",
        check("engine", "interfaces", "queue_packets of s1:s1-eth0 is 8, the plan says 1"),
        values("txqueuelen", {"packets": 8}),
        honest="host-queue",
    ),
    doctored(
        "host-drops-that-nobody-counted",
        "The sender's queue says that it dropped two packets more than its rate limit counted.",
        check("accounting", NAME, "the rate limit above it counted"),
        edit_account(_dropped),
        about="path",
        honest="host-queue",
    ),
]
