# SPDX-License-Identifier: Apache-2.0
"""Lies of what a way does to packets: loss and rate of the way back, drawn delays, too little room, a tunnel."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.delays import ORDER_RATE_BITS_PER_SECOND
from howdah.plan.jitter import DISTRIBUTION_SCALE
from howdah.plan.plan import Plan
from tests.liars.breaking import Break, altered, named, options
from tests.liars.doctor import doctored, edit
from tests.liars.liar import check
from tests.liars.path_breaks import late_changes, without_changes
from tests.liars.paths import REVERSE, path_liar
from tests.steps import with_changed_options


def _lines(changes: dict[str, Any], *, whole: bool = False) -> Break:
    """Other options of the delay lines when flows begin; ``whole``: from the beginning on."""

    def broken(plan: Plan) -> Plan:
        timeline = [
            with_changed_options(event, **changes) if event.op == "qdisc" and (whole or event.at_us == 0) else event
            for event in plan.timeline
        ]
        plan = dataclasses.replace(plan, timeline=timeline)
        return (
            altered(plan, named("qdisc", kind="netem"), lambda item: item["options"].update(changes)) if whole else plan
        )

    return broken


def _evenly(plan: Plan) -> Plan:
    """Anything up to twice the mean, of which each is as likely."""
    assert plan.path.jitter is not None
    mean_us = plan.path.jitter.mean_us
    table = [round(DISTRIBUTION_SCALE * (number + 0.5) / 500) for number in range(1000)]
    return _lines({"jitter_us": mean_us, "distribution": table})(plan)


def _none_came(found: dict[str, Any]) -> None:
    for entry in found["jitter"]:
        entry["came_ns"] = [None] * len(entry["came_ns"])


WAYS = [
    path_liar(
        "acks-that-are-not-lost",
        "The plan asks for 5 % of loss of the way back, and it loses nothing.",
        check("accounting", "netem drops left:left-eth1", "dropped 0 of"),
        options("qdisc", {"loss_ratio": 0.0}, kind="netem", **REVERSE),
        honest="both-ways",
    ),
    path_liar(
        "reverse-rate-change-too-late",
        "The rate of the way back falls 50 ms later than its schedule says.",
        check("during", "reverse rate schedule", "does not follow"),
        late_changes,
        honest="both-ways",
    ),
    path_liar(
        "delays-of-another-distribution",
        "Packets draw their delays evenly, with the mean of the plan's exponential distribution.",
        check("before", "jitter forward s1-r1", "it is another distribution"),
        _evenly,
        honest="drawn-delays",
    ),
    path_liar(
        "delays-of-another-distribution-back",
        "Packets of the way back draw their delays evenly, with the mean of the plan's exponential distribution.",
        check("after", "jitter reverse s1-r1", "it is another distribution"),
        _evenly,
        honest="drawn-delays",
    ),
    *(
        path_liar(
            f"drawn-delays-that-keep-order-{way}",
            f"Packets of the way {way} draw their delays, and none overtakes another.",
            check(stage, f"jitter order {direction} s1-r1", "packets keep their order"),
            _lines({"rate_bits_per_second": ORDER_RATE_BITS_PER_SECOND}),
            honest="drawn-delays",
        )
        for stage, way, direction in (("before", "ahead", "forward"), ("after", "back", "reverse"))
    ),
    doctored(
        "delays-that-nobody-measured",
        "The record has no measurement of the delays that packets draw.",
        check("before", "jitter forward s1-r1", "were not measured"),
        edit("calibration-before.json", lambda found: found.update(jitter=[])),
        honest="drawn-delays",
    ),
    doctored(
        "drawn-delays-without-packets",
        "None of the packets came that measure the delays.",
        check("after", "jitter reverse s1-r1", "none came"),
        edit("calibration-after.json", _none_came),
        honest="drawn-delays",
    ),
    path_liar(
        "delays-that-nobody-draws",
        "While flows run, every packet has the path's delay.",
        check("accounting", "order", "packets keep their order"),
        without_changes,
        honest="drawn-delays",
    ),
    path_liar(
        "varied-delay-that-breaks-order",
        "Beside the delay that varies with time each packet draws one of its own.",
        check("accounting", "order", "the plan's delay keeps their order"),
        _lines({"jitter_us": 4000, "rate_bits_per_second": None, "seed": 7}, whole=True),
        honest="varied-delay",
    ),
    path_liar(
        "room-for-all",
        "The delay line has room for all packets, and the plan says for five.",
        check("during", "delay limit right:right-eth1", "its limit is not in force"),
        without_changes,
        honest="little-room",
    ),
    path_liar(
        "less-room-than-planned",
        "The delay line has room for three packets, and the plan says for five.",
        check("during", "delay limit right:right-eth1", "it dropped while it held at most 3"),
        _lines({"limit_packets": 3}),
        honest="little-room",
    ),
    path_liar(
        "tunnel-that-costs-nothing",
        "The bytes of a tunnel's headers take no time on the wire.",
        check("before", "rate", "too high"),
        options("qdisc", {"overhead_bytes": 0}, kind="htb"),
        honest="tunnel",
    ),
    path_liar(
        "smaller-tunnel",
        "A tunnel's headers have half of the plan's bytes.",
        check("after", "rate", "too high"),
        options("qdisc", {"overhead_bytes": 30}, kind="htb"),
        honest="tunnel",
    ),
]
