# SPDX-License-Identifier: Apache-2.0
"""Lies of the processors that a profile gives its hosts."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.liars.breaking import Break, options
from tests.liars.doctor import Doctor, add, change_column, doctored, edit_account, rows
from tests.liars.liar import Catch, RunLiar, check
from tests.liars.paths import path_liar

HONEST = "processor"


def _carried_out(name: str, lie: str, caught: Catch, broken: Break) -> RunLiar:
    return path_liar(name, lie, caught, broken, about="run", honest=HONEST)


def _without(plan: Plan) -> Plan:
    left = [item for item in plan.operations if item.arguments().get("kind") != HostProcessor.kind]
    assert len(left) < len(plan.operations)
    return dataclasses.replace(plan, operations=left, processors=[])


def _more_from(first: int, more: dict[str, int]) -> Doctor:
    """Columns of the table ``processor`` with more in all readings from the first that is wrong."""

    def doctor(directory: RunDirectory) -> None:
        for column, number in more.items():
            change = np.zeros(store.read(directory, "processor").num_rows, dtype=np.int64)
            change[first:] = number
            change_column("processor", column, functools.partial(np.add, change))(directory)

    return doctor


PROCESSORS = [
    _carried_out(
        "processor-too-fast",
        "Packets that the sender's processor searches cost half of what the plan says.",
        check("during", "processor s1 costs", "the plan says"),
        options("qdisc", {"searched_ns": 100_000}, kind=HostProcessor.kind),
    ),
    _carried_out(
        "no-processor",
        "The sender has no processor, and what arrives waits for nothing.",
        check("engine", "queues", "is missing, the plan says howdah_cpu"),
        _without,
    ),
    doctored(
        "processor-says-idle",
        "The module says that the processor was idle all the time.",
        check("during", "processor s1 time", "that were due"),
        change_column("processor", "busy_ns", lambda values: values * 0),
        honest=HONEST,
        table=True,
    ),
    doctored(
        "processor-hides-drops",
        "The module does not count what it drops.",
        check("accounting", "processor s1 segments", "some are nowhere"),
        change_column("processor", "dropped_packets", lambda values: values * 0),
        honest=HONEST,
        table=True,
    ),
    doctored(
        "segments-past-the-processor",
        "TCP gets segments that did not wait for the processor.",
        check("accounting", "processor s1 segments", "not all that TCP took came from the processor"),
        edit_account(lambda after: add(after["netstat"]["s1"], "TcpInSegs", 5)),
        honest=HONEST,
    ),
    doctored(
        "processor-nobody-read",
        "Nobody read what the processor did.",
        check("accounting", "processor s1 segments", "no processor can be read"),
        rows("processor", 0.0),
        honest=HONEST,
        table=True,
    ),
    doctored(
        "segment-left-waiting",
        "A segment still waits when the run ends.",
        check("accounting", "processor s1 segments", "still wait for the processor"),
        _more_from(-1, {"arrived_packets": 1, "waiting_packets": 1}),
        honest=HONEST,
        table=True,
    ),
    doctored(
        "processor-busier-than-time",
        "The processor did a second of work within a few milliseconds.",
        check("during", "processor s1 time", "busy for longer than time passed"),
        _more_from(20, {"cost_ns": 10**9, "busy_ns": 10**9}),
        honest=HONEST,
        table=True,
    ),
]
