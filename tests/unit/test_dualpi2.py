# SPDX-License-Identifier: Apache-2.0
"""DualPI2: what the kernel is told, what it tells, and what is said where it has no such queue."""

from __future__ import annotations

import dataclasses
import errno
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.error import AgentError
from howdah.agent.provenance import without_unknown
from howdah.agent.wiring.netlink import NetlinkWiring
from howdah.judge.accounting import Snapshots
from howdah.judge.active_queue import active_queue_checks
from howdah.linux.netlink.discipline.discipline import Discipline
from howdah.linux.netlink.discipline.dualpi2 import Dualpi2
from howdah.linux.netlink.discipline.pie import Pie
from howdah.linux.netlink.message import attribute, parse_attributes, u32
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from tests.unit.profile_factory import make_one, operations

NEWEST = "kernel=debian-newest"


def made(tmp_path: Path, more: str = "") -> tuple[Plan, Dualpi2]:
    plan = make_one(tmp_path, overrides=[f"path.queue={{kind: dualpi2{more}}}", NEWEST])
    (leaf,) = operations(plan, "qdisc", interface="left-eth0", handle="10:")
    return plan, Dualpi2(**leaf.arguments()["options"])


def test_the_kernel_is_told_one_step_and_tells_gains_that_are_one_less(tmp_path: Path) -> None:
    """scale(41) = 41 (2^32 - 1) / 4 / 10^9 = 44.02, rounded down 44, of which unscale() makes 40.98, rounded down."""
    for more, step in (("", "step_us"), (", step_packets: 5", "step_packets")):
        queue = made(tmp_path, more)[1]
        told = parse_attributes(queue.encode())
        assert (7 in told, 8 in told) == (step == "step_packets", step == "step_us")
        as_kept = queue.encode() + u32(5, queue.alpha - 1) + u32(6, queue.beta - 1)
        found = Dualpi2.settings(as_kept)
        assert {name: getattr(queue, name) for name in found} == found
        assert set(Dualpi2.reported.values()) == set(found) | {"step_us", "step_packets"}


def test_statistics_are_those_of_the_header() -> None:
    statistics = struct.pack("=8IiIII", 1, 2, 3, 40, 50, 6, 70, 8, -9, 10, 11, 12)
    assert Dualpi2.causes(statistics) == {"classic": 40, "low_latency": 50, "step_marks": 8}
    assert Dualpi2.marks(statistics) == 70
    assert Dualpi2.causes(b"") == {}
    assert Dualpi2.settings(attribute(14, b"\3"))["low_latency"] == "any"


def test_a_tc_that_does_not_know_a_kind_is_read_all_the_same() -> None:
    text = '[{"kind":"dualpi2","handle":"10:","options":{[Unknown qdisc, optlen=124] },"dev":"left-eth0"}]'
    assert json.loads(without_unknown(text)) == [
        {"kind": "dualpi2", "handle": "10:", "options": {}, "dev": "left-eth0"}
    ]


def _unmade(kind: type[Discipline]) -> Any:
    return kind(**{each.name: 0 for each in dataclasses.fields(kind)})


def test_a_kernel_without_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_self: Any, **_arguments: Any) -> None:
        raise OSError(errno.ENOENT, "No such file or directory (Specified qdisc kind is unknown)")

    monkeypatch.setattr(Qdisc, "apply", refuse)
    place = ("left", "left-eth0", "1:1", "10:")
    with pytest.raises(AgentError, match=r"unknown\): Linux has it since 6\.17; a profile has it with kernel: debian"):
        NetlinkWiring().apply([Qdisc(*place, _unmade(Dualpi2))])
    with pytest.raises(AgentError, match=r"unknown\)$"):
        NetlinkWiring().apply([Qdisc(*place, _unmade(Pie))])


def _state(plan: Plan, **changes: int) -> Snapshots:
    """Accounts of a run in which 900 packets came to the queue, of which 50 were marked and six dropped."""
    counters = {
        "packets": 894,
        "bytes": 0,
        "drops": 6,
        "overlimits": 2,
        "backlog_packets": 0,
        "backlog_bytes": 0,
        "marked": 50,
        "step_marks": 30,
        "classic": 598,
        "low_latency": 300,
        "came": 50,
    } | changes
    came = counters.pop("came")
    queue = {"interface": "left-eth0", "handle": "10:", "parent": "1:1", "kind": "dualpi2", **counters}
    hosts = {host.name: {"IpExtInCEPkts": came * (host.name == "r1")} for host in plan.hosts}
    nodes = {host.name: {"interfaces": {}, "qdiscs": [queue] if host.name == "left" else []} for host in plan.hosts}
    none = {name: 0 if isinstance(value, int) else value for name, value in queue.items()}
    empty = {name: {**node, "qdiscs": [none] if name == "left" else []} for name, node in nodes.items()}
    before: Any = {"nodes": empty, "netstat": {name: {"IpExtInCEPkts": 0} for name in hosts}}
    after: Any = {"nodes": nodes, "netstat": hosts}
    return Snapshots(before, after)


def _checks(plan: Plan, **changes: int) -> dict[str, Check]:
    return {check.name: check for check in active_queue_checks(plan, _state(plan, **changes))}


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({}, "", ""),
        # Six may have been dropped behind it, and 20 marks may have met a mark of the step.
        ({"came": 24}, "", ""),
        ({"came": 23}, "marks forward", "27 marks are missing"),
        ({"came": 51}, "marks forward", "more than were marked"),
        ({"classic": 600}, "two queues left:left-eth0", "2 packets are missing"),
        ({"packets": 895}, "two queues left:left-eth0", "1 packets more than came"),
        ({"step_marks": 51}, "two queues left:left-eth0", "51 of 50 marks"),
    ],
)
def test_what_the_queue_says_is_compared(tmp_path: Path, changes: dict[str, int], name: str, said: str) -> None:
    checks = _checks(made(tmp_path)[0], **changes)
    assert {"marks forward", "two queues left:left-eth0"} <= set(checks)
    assert [each.name for each in checks.values() if each.ok is False] == ([name] if name else [])
    assert not name or said in checks[name].message


def test_a_packet_that_is_refused_when_it_comes_was_never_held(tmp_path: Path) -> None:
    plan = made(tmp_path, ", decide: enqueue")[0]
    assert _checks(plan, classic=594)["two queues left:left-eth0"].ok is True
    assert _checks(plan)["two queues left:left-eth0"].ok is False
