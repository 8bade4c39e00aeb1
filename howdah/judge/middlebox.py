# SPDX-License-Identifier: Apache-2.0
"""Check that the hop below the delay lines treated packets as planned, by its counters and those of hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from howdah.frame import STAMPED_TCP_BYTES
from howdah.judge.accounting import Snapshots
from howdah.judge.check import Tolerance
from howdah.judge.loss import places_passed
from howdah.linux.netlink.discipline.howdah_hop import OPTIONS, MiddleHop
from howdah.measure.measured import Measured
from howdah.measure.sampled import qdisc_samples
from howdah.plan.line import HOP_HANDLE
from howdah.plan.path import Middlebox
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import ACCOUNTING, Check

_ECN_COUNTERS = ("IpExtInECT0Pkts", "IpExtInECT1Pkts", "IpExtInCEPkts")
_CHECKSUM_COUNTERS = ("TcpInCsumErrors", "UdpInCsumErrors")
_UNREACHABLES = "IcmpInDestUnreachs"
_SACK_RECOVERIES = "TcpExtTCPSackRecovery"
_MOST_UNSCALED = 65_535  # bytes: the largest window without scaling
_SHOWN = 3


@dataclass(frozen=True)
class _Hop:
    """The hop of one delay line: its counters, and ``unseen``, the packets that it let pass while it was off."""

    at: tuple[str, str]
    ahead: bool
    counted: dict[str, int]
    drops: int
    unseen: int

    @property
    def place(self) -> str:
        return ":".join(self.at)


def middlebox_checks(
    directory: RunDirectory, data: Measured, state: Snapshots | None, tolerance: Tolerance
) -> list[Check]:
    """Return the checks; ``state`` is accounting.json. Return none without a middlebox, or if the file or a counter in
    it is missing, which other checks report."""
    plan = data.plan
    planned = plan.path.middlebox
    if planned is None or state is None:
        return []
    try:
        hops = list(_hops(plan, state))
        return list(_checks(directory, data, planned, state, hops, tolerance))
    except KeyError:
        return []


def _hops(plan: Plan, state: Snapshots) -> Iterator[_Hop]:
    forward = places_passed(plan)
    for node, interface in (queue.at for queue in plan.queues if queue.kind == MiddleHop.kind):
        for item in state.qdiscs(node, interface):
            if item["kind"] != MiddleHop.kind:
                continue
            passed = item["seen"] - item["drops"] + item["duplicated"]
            ahead = (node, interface) in forward
            yield _Hop((node, interface), ahead, item, item["drops"], item["packets"] - passed)


def _checks(
    directory: RunDirectory,
    data: Measured,
    planned: Middlebox,
    state: Snapshots,
    hops: list[_Hop],
    tolerance: Tolerance,
) -> Iterator[Check]:
    plan = data.plan
    readings = store.read(directory, "qdisc")
    for hop in hops:
        yield _active(hop, readings, plan)
        yield _dropped(hop, planned)
        if hop.ahead:
            for name, ratio in (("duplicated", planned.duplicate_ratio), ("corrupted", planned.corrupt_ratio)):
                if ratio or hop.counted[name]:
                    yield _drawn(hop, name, ratio, tolerance)
    if planned.corrupt_ratio:
        yield _checksums(state, hops)
    if planned.mtu_bytes:
        yield _sizes(plan, planned, state, hops)
        yield _icmp(plan, planned, state, hops)
    if planned.clears_ecn:
        yield _ecn(plan, state, hops)
    if planned.strips:
        yield _options(plan, data, planned, state)


def _active(hop: _Hop, readings: pa.Table, plan: Plan) -> Check:
    """Check that the hop treated at least the packets that its queue sent between readings while flows ran."""
    name = f"middlebox active {hop.place}"
    samples = qdisc_samples(readings, *hop.at, HOP_HANDLE)
    inside = samples.time_ns[(samples.time_ns >= 0) & (samples.time_ns < plan.duration_us * 1000)]
    if len(inside) < 2 or not samples.has("sent_packets"):
        return Check(name, ACCOUNTING, None, f"the middlebox at {hop.place} was not read", unit="packets")
    passed = samples.growth("sent_packets", int(inside[0]), int(inside[-1])) or 0
    treated = hop.counted["packets"] - hop.unseen
    message = f"the middlebox at {hop.place} let {passed} packets pass between readings, and treated {treated}"
    return Check(name, ACCOUNTING, treated >= passed, message, passed, treated, 0, "packets")


def _dropped(hop: _Hop, planned: Middlebox) -> Check:
    """Check that it dropped exactly the arriving packets that the list names, and those that were too large."""
    counted = hop.counted
    listed = int(np.searchsorted(planned.lost, counted["seen"], side="right")) if hop.ahead else 0
    expected = listed + counted["too_large"]
    message = f"the middlebox at {hop.place} dropped {hop.drops} of {counted['seen']} packets: "
    message += f"{counted['lost']} by their number and {counted['too_large']} too large"
    ok = counted["lost"] == listed and hop.drops == expected
    if not ok:
        message += f"; of the numbers in the plan {listed} came"
    return Check(f"middlebox drops {hop.place}", ACCOUNTING, ok, message, expected, hop.drops, 0, "packets")


def _drawn(hop: _Hop, name: str, ratio: float, tolerance: Tolerance) -> Check:
    """Check a binomial number of the packets that were not dropped. Packets without a checksum are not corrupted."""
    count = hop.counted["seen"] - hop.drops
    mean = ratio * count
    allowed = tolerance.deviations * math.sqrt(mean * (1 - ratio)) + 1
    measured = hop.counted[name]
    ok = abs(measured - mean) <= allowed
    message = f"the middlebox at {hop.place} {name} {measured} of {count} packets"
    if not ok:
        message += f", expected {mean:.4g} ± {allowed:.3g}"
    return Check(f"middlebox {name} {hop.place}", ACCOUNTING, ok, message, mean, measured, allowed, "packets")


def _checksums(state: Snapshots, hops: list[_Hop]) -> Check:
    """Check that hosts found as many damaged packets as were corrupted; for TCP each is a loss."""
    damaged = sum(hop.counted["corrupted"] for hop in hops)
    unseen = sum(sum(state.counter(name).values()) for name in _CHECKSUM_COUNTERS)
    message = f"{damaged} packets were damaged, and hosts dropped {unseen} for a wrong checksum"
    return Check("middlebox checksums", ACCOUNTING, damaged == unseen, message, damaged, unseen, 0, "packets")


def _sizes(plan: Plan, planned: Middlebox, state: Snapshots, hops: list[_Hop]) -> Check:
    """Check the MTU by the hosts' own counters of bytes and packets, which bound the average size."""
    link = plan.path.frame_bytes - plan.path.mtu_bytes
    worst, name = 0, ""
    for flow in plan.flows:
        last = way(plan, *flow.ends)[-1]
        place = f"{last.node}:{last.interface}"
        hop = next((each for each in hops if each.place == place), None)
        if hop is None:
            raise KeyError(place)
        received = state.interface(last.to_node, last.to_interface, "rx_packets")
        size = state.interface(last.to_node, last.to_interface, "rx_bytes")
        most = received * (planned.mtu_bytes + link) + hop.unseen * (plan.path.mtu_bytes - planned.mtu_bytes)
        over = max(size - most, hop.counted["largest_bytes"] - planned.mtu_bytes)
        if not name or over > worst:
            worst, name = over, last.to_node
    message = f"{name} received packets of at most {planned.mtu_bytes} bytes on average, and of at most as many"
    if worst > 0:
        message = f"{name} received {worst} bytes more than packets of {planned.mtu_bytes} bytes have"
    return Check("middlebox MTU", ACCOUNTING, worst <= 0, message, 0, max(worst, 0), 0, "bytes")


def _icmp(plan: Plan, planned: Middlebox, state: Snapshots, hops: list[_Hop]) -> Check:
    """Check the ICMP messages that hosts received: one for each too large packet if the hop answers, else none."""
    large = sum(hop.counted["too_large"] for hop in hops)
    expected = large if planned.answers else 0
    got = sum(state.counter(_UNREACHABLES).values())
    back = places_passed(plan, ahead=False)
    lost = sum(state.queue_drops(*place) for place in back)
    others = any(flow.datagram_bytes is not None or flow.program is not None for flow in plan.flows)
    ok = expected - lost <= got and (others or got <= expected)
    message = f"{large} packets were too large, and hosts heard of {got} by ICMP"
    if not ok:
        message += "; the plan says that every one is answered" if planned.answers else "; the plan says a black hole"
    return Check("middlebox ICMP", ACCOUNTING, ok, message, expected, got, lost, "packets")


def _ecn(plan: Plan, state: Snapshots, hops: list[_Hop]) -> Check:
    """Check that hosts received no packets with ECT or CE, except after the flows' time, when the hop is off."""
    hosts = {host.name for host in plan.hosts if host.role != "router"}
    got = sum(count for name in _ECN_COUNTERS for host, count in state.counter(name).items() if host in hosts)
    allowed = sum(hop.unseen for hop in hops)
    cleared = sum(hop.counted["cleared"] for hop in hops)
    message = f"the middlebox cleared the ECN field of {cleared} packets; hosts received {got} with ECT or CE"
    return Check("middlebox ECN", ACCOUNTING, got <= allowed, message, 0, got, allowed, "packets")


def _options(plan: Plan, data: Measured, planned: Middlebox, state: Snapshots) -> Check:
    """Check that options are stripped by their effects: timestamps make segments shorter, window scale allows windows
    above 64 KiB, and the kernel counts recoveries by SACK."""
    found = []
    senders = {flow.id: data.info[flow.id] for flow in plan.flows if flow.is_tcp}
    if OPTIONS["timestamps"] in planned.strips:
        whole = min(plan.path.mtu_bytes, planned.mtu_bytes or plan.path.mtu_bytes) - STAMPED_TCP_BYTES
        short = [flow for flow, read in senders.items() if len(read) and int(read["mss_bytes"].max()) <= whole]
        found += [f"flow {flow} leaves room for time stamps" for flow in short]
    if OPTIONS["window-scale"] in planned.strips:
        large = [
            flow for flow, read in senders.items() if len(read) and int(read["snd_wnd_bytes"].max()) > _MOST_UNSCALED
        ]
        found += [f"flow {flow} has a window above {_MOST_UNSCALED} bytes" for flow in large]
    if OPTIONS["sack"] in planned.strips:
        count = sum(state.counter(_SACK_RECOVERIES).values())
        found += [f"{count} recoveries were by SACK"] if count else []
    message = "no flow used an option that the middlebox strips"
    if found:
        message = f"{'; '.join(found[:_SHOWN])}: the middlebox does not strip it"
    return Check("middlebox options", ACCOUNTING, not found, message, 0, len(found), 0, "flows")
