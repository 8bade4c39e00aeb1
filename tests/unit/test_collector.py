# SPDX-License-Identifier: Apache-2.0
"""Collectors' decisions that need no kernel: what they ask for, how often, and what they make of text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from collectors.collector import CollectorError, Surroundings, Watched
from collectors.interval.qdisc import watched_qdiscs
from collectors.pcap import PcapCollector
from collectors.ss import SsCollector
from collectors.tracepoint import drain_interval_ns, event_filter, parse_statistics
from howdah.linux.netlink.diag import Endpoint
from howdah.linux.netlink.discipline.netem import Netem
from howdah.linux.output import Output
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan
from howdah.plan.step import Operation
from tests.unit.plan_factory import make_plan

STATISTICS = """entries: 12
overrun: 3
commit overrun: 1
bytes: 4096
oldest event ts:     7.000256
now ts:    11.290006
dropped events: 5
read events: 2479
"""


@pytest.fixture
def plan() -> Plan:
    return make_plan()


def surroundings(plan: Plan, path: Path) -> Surroundings:
    flow = plan.flows[0]
    endpoint = Endpoint(*flow.at("source"), *flow.at("destination"))
    return Surroundings(plan, {}, {}, [Watched(flow, endpoint)], Output(path))


def test_only_senders_records_are_kept() -> None:
    endpoints = [Endpoint("10.1.1.1", 40001, "10.2.1.1", 5001), Endpoint("10.1.2.1", 40002, "10.2.2.1", 5002)]
    text = event_filter([Watched(make_plan().flows[0], endpoint) for endpoint in endpoints])
    assert text == "(sport==40001&&dport==5001)||(sport==40002&&dport==5002)"


def test_many_connections_are_told_by_ranges_that_leave_out_what_lies_between() -> None:
    remote = [443, *range(5001, 5150), 50_000]
    ends = [Endpoint("10.1.1.1", 40001 + number, "10.2.1.1", port) for number, port in enumerate(remote)]
    text = event_filter([Watched(make_plan().flows[0], endpoint) for endpoint in ends])
    assert text == (
        "sport>=40001&&sport<=40151&&((dport>=443&&dport<=443)||(dport>=5001&&dport<=5149)||"
        "(dport>=50000&&dport<=50000))"
    )
    scattered = [Endpoint("10.1.1.1", 40001 + number, "10.2.1.1", 1000 + 3 * number) for number in range(300)]
    text = event_filter([Watched(make_plan().flows[0], endpoint) for endpoint in scattered])
    assert text == "sport>=40001&&sport<=40300&&((dport>=1000&&dport<=1897))"


def test_lost_records_are_told_apart() -> None:
    assert parse_statistics(STATISTICS) == {
        "entries": 2479,
        "unread": 12,
        "overrun": 3,
        "commit_overrun": 1,
        "dropped_events": 5,
    }


def test_the_trace_is_drained_before_half_of_it_is_full(plan: Plan) -> None:
    buffer_bytes = 1 << 20
    interval_s = drain_interval_ns(plan, buffer_bytes, 192) / 1e9
    records = plan.path.rate_bits_per_second / 8 / plan.path.frame_bytes * interval_s
    assert records * 148 < buffer_bytes / 2
    faster = dataclasses.replace(plan.path, rate_bits_per_second=plan.path.rate_bits_per_second * 1000)
    assert drain_interval_ns(dataclasses.replace(plan, path=faster), buffer_bytes, 192) < interval_s * 1e9


def test_the_bottleneck_and_every_netem_are_watched_once(plan: Plan) -> None:
    def netem(interface: str) -> Operation:
        return Qdisc("right", interface, "root", "1:", Netem(delay_us=1, limit_packets=1))

    operations = [netem("right-eth1"), netem("right-eth2"), netem("right-eth1")]
    assert watched_qdiscs(dataclasses.replace(plan, operations=operations)) == {
        "left": [("left-eth1", "10:")],
        "right": [("right-eth1", "1:"), ("right-eth2", "1:")],
    }


def test_ss_looks_while_every_flow_is_open(plan: Plan, tmp_path: Path) -> None:
    second = dataclasses.replace(plan.flows[0], id=2, start_us=500_000, stop_us=1_500_000)
    plan.flows.append(second)
    times = SsCollector(surroundings(plan, tmp_path)).times_us()
    assert times["begin"] == 80_000
    assert second.start_us < times["end"] < second.stop_us


def test_a_capture_on_a_node_that_does_not_exist_is_refused(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(CollectorError, match="there is no node s9"):
        PcapCollector(surroundings(plan, tmp_path), ["s9:s9-eth0"]).check()


def test_the_receivers_end_is_the_senders_seen_from_the_other_side(plan: Plan, tmp_path: Path) -> None:
    (watched,) = surroundings(plan, tmp_path).connections
    (sender, near), (receiver, far) = watched.ends
    assert (sender, receiver) == ("s1", "r1")
    assert far == dataclasses.replace(
        near,
        local_address=near.remote_address,
        local_port=near.remote_port,
        remote_address=near.local_address,
        remote_port=near.local_port,
    )
