# SPDX-License-Identifier: Apache-2.0
"""Whether each collector saw the run to its end: data that stop early look like data of a run that had stopped."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from howdah.ingest.capture import CAPTURES
from howdah.ingest.source import IngestReport
from howdah.judge.accounting import Snapshots
from howdah.judge.collection import readers
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING
from howdah.plan.plan import Plan
from howdah.record.raw import read_raw_text
from howdah.record.verdict import COLLECTION, Check

_LATE = 2.5  # intervals by which the first reading may come after the start, and the last before the end, of a flow
_IPV6_OFF = "ipv6.disable"
_MOST_NAMED = 3


def coverage_checks(
    plan: Plan, report: IngestReport, data: Measured, raw: Path, state: Snapshots | None
) -> list[Check]:
    """``state`` is accounting.json, None if it is missing."""
    checks = [*readings(plan, report)]
    if plan.collect.tcp_info_us is not None and plan.flows:
        checks.append(_tcp_info(data, plan.collect.tcp_info_us))
    if plan.collect.tcp_probe and plan.collect.tcp_info_us is not None and plan.flows:
        checks.append(trace_to_the_end(data))
    if plan.collect.ss and plan.flows:
        checks.append(_ss(plan, raw))
    checks += _captures(plan, report, state)
    return checks


def readings(plan: Plan, report: IngestReport) -> Iterable[Check]:
    """Collectors that read at an interval begin with the run and read once more when the network is silent."""
    end_ns = plan.duration_us * 1000
    for name, reader in readers(plan).items():
        if not reader.whole_run or name not in report.sources:
            continue
        interval_us = plan.collect.intervals_us.get("counters" if name == "counter" else name)
        counts = report.sources[name].counts
        first_ns, last_ns = counts.get("first_ns"), counts.get("last_ns")
        label = f"{name} from begin to end"
        if first_ns is None or last_ns is None:
            yield Check(label, COLLECTION, False, f"{name} has no reading", end_ns, None, 0, "ns")
            continue
        late_ns = _LATE * (interval_us or 0) * 1000
        ok = first_ns <= late_ns and last_ns >= end_ns
        message = f"{name} was read from {first_ns / 1e9:.6f} to {last_ns / 1e9:.6f} s"
        if not ok:
            message += f": not all of the run, which took until {end_ns / 1e9:.6f} s"
        yield Check(label, COLLECTION, ok, message, end_ns, last_ns, 0, "ns")


def _tcp_info(data: Measured, interval_us: int) -> Check:
    """Each flow that was there for some intervals was read from its beginning to its end."""
    late_ns = _LATE * interval_us * 1000
    short = []
    for trace in data.traces:
        times = data.info[trace.flow.id].time_ns
        begin_ns = trace.start_ns if trace.connected_ns is None else trace.connected_ns
        end_ns = min(trace.stop_ns, data.plan.duration_us * 1000)
        if trace.flow.program is not None and len(trace):  # it closes its sockets when it likes
            end_ns = min(end_ns, int(trace.time_ns[-1]))
        if end_ns - begin_ns <= 2 * late_ns or not (len(times) or len(trace)):
            continue
        if not len(times) or times.min() > begin_ns + late_ns or times.max() < end_ns - late_ns:
            short.append(trace.flow.id)
    return _all_of(
        "tcp_info from begin to end", short, "tcp_info was read until each flow ended", "tcp_info stops early"
    )


def trace_to_the_end(data: Measured) -> Check:
    """The last ACK that tcp_info knows of is in the trace: the trace has records up to the reading before it, or later.

    Readings in other states than ESTABLISHED do not count, for which the tracepoint is not called.
    """
    short = []
    for trace in data.traces:
        info = data.info[trace.flow.id]
        if not info.has("bytes_acked_bytes") or not info.has("state"):
            continue
        here = info["state"] == TCP_ESTABLISHED
        acknowledged, times = info["bytes_acked_bytes"][here], info.time_ns[here]
        grown = np.flatnonzero((np.diff(acknowledged) > 0) & (acknowledged[:-1] != MISSING))
        if grown.size and (not len(trace) or trace.time_ns.max() < times[grown[-1]]):
            short.append(trace.flow.id)
    good = "the trace has the last ACKs that tcp_info knows of"
    return _all_of("trace to the end", short, good, "the trace ends before the ACKs do")


def _all_of(name: str, short: list[int], good: str, bad: str) -> Check:
    named = ", ".join(map(str, short[:_MOST_NAMED])) + (" …" if len(short) > _MOST_NAMED else "")
    message = f"{bad}: of {len(short)} flows (flow {named})" if short else good
    return Check(name, COLLECTION, not short, message, 0, len(short), 0, "flows")


def _ss(plan: Plan, raw: Path) -> Check:
    """Both files are there, with a part for each host that has a flow."""
    hosts = {host for flow in plan.flows if flow.group is None for host in flow.ends}
    missing = []
    for name in ("ss-begin.txt", "ss-end.txt"):
        try:
            lines = read_raw_text(raw / name, errors="replace").splitlines()
        except OSError:
            lines = []
        told = {line.split()[1] for line in lines if line.startswith("# ") and len(line.split()) == 3}
        missing += [f"{name} of {host}" for host in sorted(hosts - told)]
    message = "ss was asked at the beginning and at the end, on every host"
    if missing:
        message = f"there is no {', no '.join(missing[:_MOST_NAMED])}"
    return Check("ss at begin and end", COLLECTION, not missing, message, 0, len(missing), 0, "readings")


def _captures(plan: Plan, report: IngestReport, state: Snapshots | None) -> Iterable[Check]:
    """Every packet that the kernel handed to a capture is in its file, and so is every one the interface counted."""
    if not plan.collect.pcap:
        return
    source = report.sources.get(CAPTURES)
    captures = {item["place"]: item for item in source.counts["captures"]} if source is not None else {}
    for place in plan.collect.pcap:
        label = f"capture {place}"
        if place not in captures:
            yield Check(label, COLLECTION, False, f"the packets of the capture at {place} were not counted")
            continue
        yield _whole(label, captures[place])
        passed = _passed(plan, place, state)
        if passed is not None:
            in_file = captures[place]["in_file"]
            message = f"the capture has {in_file} packets, {passed} passed {place}"
            message += "" if in_file == passed else ": it does not cover the run"
            yield Check(f"{label} and interface", COLLECTION, in_file == passed, message, passed, in_file, 0, "packets")


def _whole(label: str, capture: dict[str, Any]) -> Check:
    captured, received, in_file = capture.get("captured"), capture.get("received"), capture["in_file"]
    dropped = (capture.get("dropped_by_kernel") or 0) + (capture.get("dropped_by_interface") or 0)
    if captured is None or received is None:
        message = "tcpdump did not say how many packets it captured: it was killed, or its words were lost"
        return Check(label, COLLECTION, False, message, None, in_file, 0, "packets")
    ok = captured == received == in_file and dropped == 0 and capture.get("status") == 0
    message = f"{in_file} packets are in the file; tcpdump captured {captured} of {received}, {dropped} were dropped"
    if not ok:
        message += f" (status {capture.get('status')}): the capture is not whole"
    return Check(label, COLLECTION, ok, message, received, in_file, 0, "packets")


def _passed(plan: Plan, place: str, state: Snapshots | None) -> int | None:
    """Packets that passed the interface, both ways; None where it is not ours alone, or has others than IPv4."""
    is_ours = plan.traits.virtual_clock
    if state is None or not is_ours or _IPV6_OFF not in plan.kernel_parameters:
        return None
    node, _, interface = place.partition(":")
    return state.interface(node, interface, "rx_packets") + state.interface(node, interface, "tx_packets")
