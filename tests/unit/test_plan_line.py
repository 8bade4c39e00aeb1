# SPDX-License-Identifier: Apache-2.0
"""Delay lines: which queues they are, their shortest delay, and whether they do nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.plan.line import Line, delay_lines
from howdah.plan.plan import Plan
from howdah.plan.step import Event, Operation
from tests.unit import path_factory

NONE = {
    "limit_packets": 1000,
    "jitter_us": 0,
    "distribution": None,
    "rate_bits_per_second": None,
    "reorder_ratio": 0.0,
    "loss_ratio": 0.0,
}


def options(**changes: Any) -> dict[str, Any]:
    return {"delay_us": 20_000, **NONE, **changes}


def plan(*changes: tuple[str, str, dict[str, Any]], **first: Any) -> Plan:
    """The line towards r1 begins with ``first``; ``changes`` are an operation, a handle and options of later."""
    base = path_factory.path_plan()
    place = {"node": "right", "interface": "right-eth1", "parent": "root"}
    operations = [
        Operation(
            each.op, {**each.arguments, "options": options(**(first if each.arguments["node"] == "right" else {}))}
        )
        if each.op == "qdisc"
        else each
        for each in base.operations
    ]
    # Of the bottleneck between two routers, and a queue of another kind towards a host.
    between = {
        "node": "left",
        "interface": "left-eth1",
        "parent": "root",
        "handle": "1:",
        "kind": "netem",
        "options": options(),
    }
    other = {**place, "handle": "9:", "kind": "htb", "options": options(delay_us=1)}
    operations += [
        Operation("qdisc", between),
        Operation("qdisc", other),
        Operation("class", {**other, "kind": "netem"}),
    ]
    timeline = [
        Event(5, op, {**place, "handle": handle, "kind": "netem", "options": told}) for op, handle, told in changes
    ]
    return dataclasses.replace(base, operations=operations, timeline=timeline)


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
        (plan(("qdisc", "1:", options())), 20_000, False),
        (plan(("qdisc", "1:", options(delay_us=30_000))), 20_000, False),
        (plan(("qdisc", "1:", options(delay_us=9_000)), ("qdisc", "1:", options(delay_us=10_000))), 9_000, False),
        (plan(("qdisc", "1:", options(delay_us=30_000)), loss_ratio=0.5), 20_000, False),
        (plan(("qdisc", "10:", options(delay_us=1))), 20_000, True),  # of another queue
        (plan(("class", "1:", options(delay_us=1))), 20_000, True),
    ],
)
def test_a_delay_line_has_its_shortest_delay(found: Plan, least_us: int, plain: bool) -> None:
    assert delay_lines(found) == [Line("r1", "right", "right-eth1", "1:", least_us, plain), BACK]
    assert BACK.place == ("left", "left-eth0", "1:")
