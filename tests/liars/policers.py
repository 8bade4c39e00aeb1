# SPDX-License-Identifier: Apache-2.0
"""Lies of the policer: another burst, another rate, none at all, drops that nobody counted."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.plan import Plan
from howdah.plan.policer import INGRESS_HANDLE
from tests.liars.breaking import values
from tests.liars.doctor import add, doctored, edit_account
from tests.liars.liar import check
from tests.liars.paths import path_liar


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
