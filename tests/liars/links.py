# SPDX-License-Identifier: Apache-2.0
"""Lies of links that follow a trace: another trace, another time, and counters that say what is not so."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from howdah.linux.netlink.discipline.gaps import pack_gaps, unpack_gaps
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.plan.event import Event
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.liars.breaking import Break, altered, named, options
from tests.liars.doctor import change_column, doctored, rows
from tests.liars.liar import Catch, RunLiar, check
from tests.liars.paths import path_liar

HONEST = "link"
_LINK = named("qdisc", kind=TraceLink.kind)
_ANOTHER = check("during", "link left opportunities", "it follows another one")


def _carried_out(name: str, lie: str, caught: Catch, broken: Break) -> RunLiar:
    return path_liar(name, lie, caught, broken, about="run", honest=HONEST)


def _other_gaps(change: Callable[[array[int]], array[int]]) -> Break:
    def broken(plan: Plan) -> Plan:
        def alter(item: dict[str, dict[str, object]]) -> None:
            gaps = change(unpack_gaps(str(item["options"]["gaps"])))
            item["options"].update(gaps=pack_gaps(gaps), opportunities=len(gaps))

        return altered(plan, _LINK, alter)

    return broken


def _shifted(gaps: array[int]) -> array[int]:
    """Every opportunity of a round 2 ms later, without the last ones: the round is as long as it was."""
    return array("I", [gaps[0] + 2000, *gaps[1:-3]])


def _without_one(gaps: array[int]) -> array[int]:
    middle = len(gaps) // 2
    return array("I", [*gaps[:middle], gaps[middle] + gaps[middle + 1], *gaps[middle + 2 :]])


def _later(plan: Plan) -> Plan:
    def later(event: Event) -> Event:
        begins = event.op == "link" and event.change.arguments()["follows"]
        return dataclasses.replace(event, at_us=30_000) if begins else event

    moved = sorted(map(later, plan.timeline), key=lambda event: event.at_us)
    return dataclasses.replace(plan, timeline=moved)


def _still(directory: RunDirectory) -> None:
    """From 1 s on all readings are that of 1 s, but for when they were made."""
    found = store.read(directory, "opportunities")
    late = int(np.searchsorted(found["time_ns"].to_numpy(), 1_000_000_000))
    for column in ("until_ns", "passed", "used", "carried_bytes", "unused_bytes"):

        def stop(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return np.concatenate([values[:late], np.full(values.size - late, values[late])])

        change_column("opportunities", column, stop)(directory)


LINKS = [
    _carried_out("link-shifted", "The link's opportunities come 2 ms late.", _ANOTHER, _other_gaps(_shifted)),
    _carried_out("link-lacks-one", "The link lacks one opportunity.", _ANOTHER, _other_gaps(_without_one)),
    _carried_out(
        "link-round-too-long",
        "The link begins again 100 ms after the end of its trace.",
        _ANOTHER,
        options("qdisc", {"round_us": 2_100_000}, kind=TraceLink.kind),
    ),
    _carried_out(
        "link-begins-late",
        "The link follows its trace from 30 ms after the epoch on.",
        check("during", "link left opportunities", "not from 0"),
        _later,
    ),
    _carried_out(
        "link-carries-more",
        "Each opportunity of the link carries twice what it should.",
        check("during", "link left opportunities", "bytes more or less than its opportunities"),
        options("qdisc", {"opportunity_bytes": 3008}, kind=TraceLink.kind),
    ),
    doctored(
        "link-carries-nothing",
        "The link says that it used its opportunities, and half of the packets stay in the queue.",
        check("during", "link left bytes", "although its queue held more, less than"),
        change_column("qdisc", "sent_bytes", lambda values: values // 2),
        honest=HONEST,
        table=True,
    ),
    doctored(
        "link-stands-still",
        "The link's trace ended long before the flows did.",
        check("during", "link left opportunities", "stood still"),
        _still,
        honest=HONEST,
        table=True,
    ),
    doctored(
        "link-nobody-read",
        "Nobody read what the link did.",
        check("during", "link left opportunities", "no link can be read"),
        rows("opportunities", 0.0),
        honest=HONEST,
        table=True,
    ),
]
