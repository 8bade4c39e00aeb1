# SPDX-License-Identifier: Apache-2.0
"""Lies of a middlebox: it is off, or does something else to packets than the plan says."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.event import Event
from howdah.plan.plan import Plan
from tests.liars.breaking import Break
from tests.liars.doctor import add, doctored, edit_account
from tests.liars.liar import check
from tests.liars.path_breaks import without_changes
from tests.liars.paths import path_liar
from tests.steps import with_changed_options

_LINE = "right:right-eth1"


def _other(**options: Any) -> Break:
    """Other options of the hop while it is active."""

    def changed(event: Event) -> Event:
        given = event.change.arguments().get("options", {})
        if event.change.arguments().get("kind") != "howdah_hop" or not given["active"]:
            return event
        kept = {name: value for name, value in options.items() if name in given}
        return with_changed_options(event, **kept)

    return lambda plan: dataclasses.replace(plan, timeline=[changed(event) for event in plan.timeline])


def _longer_numbers(plan: Plan) -> Plan:
    """One packet more than the list has."""
    assert plan.path.middlebox is not None
    return _other(lost=[*plan.path.middlebox.lost, 40])(plan)


def _one_error_less(after: dict[str, Any]) -> None:
    add(after["netstat"]["r1"], "TcpInCsumErrors", -1)


HOPS = [
    path_liar(
        "middlebox-that-sleeps",
        "The hop with an MTU of 1400 bytes is never switched on.",
        check("accounting", f"middlebox active {_LINE}", "and treated 0"),
        without_changes,
        honest="small-hop",
    ),
    path_liar(
        "larger-mtu",
        "The hop lets packets of 1450 bytes pass, and the plan says 1400.",
        check("accounting", "middlebox MTU", "more than packets of 1400 bytes have"),
        _other(mtu_bytes=1450),
        honest="small-hop",
    ),
    path_liar(
        "mtu-without-a-word",
        "The hop answers no packet that is too large, and the plan says that it does.",
        check("accounting", "middlebox ICMP", "the plan says that every one is answered"),
        _other(answers=False),
        honest="small-hop",
    ),
    path_liar(
        "black-hole-that-answers",
        "The hop answers what is too large, and the plan says a black hole.",
        check("accounting", "middlebox ICMP", "the plan says a black hole"),
        _other(answers=True),
        honest="black-hole",
    ),
    path_liar(
        "options-that-survive",
        "SYN and SYN-ACK keep their options, and the plan says that the hop strips them.",
        check("accounting", "middlebox options", "the middlebox does not strip it"),
        _other(strips=[]),
        honest="few-options",
    ),
    path_liar(
        "ecn-that-survives",
        "The hop leaves the ECN field as it is, and the plan says that it clears it.",
        check("accounting", "middlebox ECN", "with ECT or CE"),
        _other(clears_ecn=False),
        honest="no-ecn",
    ),
    path_liar(
        "another-packet-is-lost",
        "The hop loses one packet more than the plan's list has.",
        check("accounting", f"middlebox drops {_LINE}", "of the numbers in the plan"),
        _longer_numbers,
        honest="rough-hop",
    ),
    path_liar(
        "no-duplicates",
        "No packet arrives twice, and the plan says 3 %.",
        check("accounting", f"middlebox duplicated {_LINE}", "expected"),
        _other(duplicate_ratio=0.0),
        honest="rough-hop",
    ),
    path_liar(
        "nothing-is-damaged",
        "No packet is damaged, and the plan says 2 %.",
        check("accounting", f"middlebox corrupted {_LINE}", "expected"),
        _other(corrupt_ratio=0.0),
        honest="rough-hop",
    ),
    doctored(
        "damage-that-nobody-found",
        "One damaged packet was taken for a whole one.",
        check("accounting", "middlebox checksums", "for a wrong checksum"),
        edit_account(_one_error_less),
        about="path",
        honest="rough-hop",
    ),
]
