# SPDX-License-Identifier: Apache-2.0
"""Check that everything was recorded until the end of the run and can be read: data that stop early look like data of a
run that stopped."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from howdah.hooks import Reader
from howdah.ingest.capture import CAPTURES
from howdah.ingest.source import IngestReport
from howdah.judge.accounting import Snapshots
from howdah.judge.check import none_of
from howdah.judge.engine import WHY, Idle, is_excused
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING
from howdah.plan.plan import Flow, Plan
from howdah.record.account import TraceAccount
from howdah.record.raw import read_raw_text
from howdah.record.verdict import COLLECTION, Check
from howdah.registered import registered

_GAP = 2.5  # intervals between two readings above which one is missing


def collection_checks(
    plan: Plan, report: IngestReport, trace: TraceAccount | None, events: TraceAccount | None = None
) -> list[Check]:
    """Return the checks of raw files and records. ``trace`` is trace.json and ``events`` slow_start.json, None if
    missing.

    A slow-start module reports events only where it was loaded; without one there is no account of them and no check.
    """
    checks = [raw_files(report)]
    if plan.collect.tcp_probe:
        checks += _trace_checks(_TCP_PROBE, report, trace)
    if plan.collect.slow_start and (events is not None or report.sources["slow_start"].problems):
        checks += [*_trace_checks(_SLOW_START, report, events), _event_names(report)]
    checks += [_rows(plan, report)]
    checks += qlog_checks(plan, report)
    return checks


@dataclass(frozen=True)
class _TracepointSource:
    """A tracepoint: its table and account, and the names of its checks and of its records."""

    table: str
    account: str
    check: str
    record: str


_TCP_PROBE = _TracepointSource("tcp_probe", "trace.json", "trace", "per-ACK record")
_SLOW_START = _TracepointSource("slow_start", "slow_start.json", "event", "slow-start event")


def _trace_checks(source: _TracepointSource, report: IngestReport, account: TraceAccount | None) -> list[Check]:
    return [
        _lost_records(source, report, account),
        _whole_trace(source, report, account),
        _unknown_sockets(source, report),
    ]


def raw_files(report: IngestReport) -> Check:
    problems = report.all_problems
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    good = "every raw file was read to its end"
    bad = "raw data are damaged or missing: " + "; ".join(problems[:3]) + more
    # Not with none_of(): braces in a file's message would be placeholders.
    return Check("raw files", COLLECTION, not problems, bad if problems else good, 0, len(problems), 0, "problems")


def _lost_records(source: _TracepointSource, report: IngestReport, account: TraceAccount | None) -> Check:
    name = f"lost {source.check} records"
    if account is None:
        return Check(name, COLLECTION, False, f"{source.account} is missing: lost records were not counted")
    counts = report.sources[source.table].counts
    by_kernel = account.overrun + account.dropped_events + account.commit_overrun
    lost = max(by_kernel, int(counts.get("lost_events", 0))) + int(counts.get("gaps_of_unknown_size", 0))
    lost += int(bool(account.bytes_lost)) + account.unread
    return none_of(
        name,
        COLLECTION,
        lost,
        "records",
        f"no {source.record} was lost",
        f"{{count}} {source.record}s were lost: the trace buffer was too small or was read too late",
    )


def _whole_trace(source: _TracepointSource, report: IngestReport, account: TraceAccount | None) -> Check:
    """Check that all records that the kernel handed over were decoded."""
    name = f"{source.check} records"
    if account is None or account.entries is None:
        return Check(name, COLLECTION, None, "the kernel's count of records is not known")
    found = report.sources[source.table]
    others = ("receiver_rows", "control_rows", "other_rows", "unknown_rows", "foreign_events")
    decoded = found.rows + sum(int(found.counts.get(key, 0)) for key in others)
    expected = account.entries
    ok = decoded == expected
    message = f"{decoded} records were decoded, the kernel handed over {expected}"
    return Check(name, COLLECTION, ok, message, expected, decoded, 0, "records")


def _unknown_sockets(source: _TracepointSource, report: IngestReport) -> Check:
    counts = report.sources[source.table].counts
    sockets = counts.get("unknown_sockets", [])
    named = ", ".join(f"{item['source_port']} to {item['destination_port']}" for item in sockets[:3])
    return none_of(
        "unknown sockets" if source is _TCP_PROBE else f"unknown sockets of {source.check}s",
        COLLECTION,
        int(counts.get("unknown_rows", 0)),
        "records",
        "every record belongs to a flow of the plan",
        "{count} records belong to sockets of no flow (ports " + named + "): there is traffic nobody planned",
    )


def _event_names(report: IngestReport) -> Check:
    """Check that every event has a name. An unknown event is still in the table; only its meaning is missing."""
    unknown = report.sources["slow_start"].counts.get("unknown_names", [])
    if not unknown:
        return Check("event names", COLLECTION, True, "every event and reason has a name", 0, 0, 0, "names")
    message = f"the module reports {', '.join(unknown)}, which this howdah has no name for: it is older than the module"
    return Check("event names", COLLECTION, None, message, 0, len(unknown), 0, "names")


def _rows(plan: Plan, report: IngestReport) -> Check:
    """Check that every enabled collector recorded something. Through a black hole there may be no ACK to trace."""
    tcp = any(flow.is_tcp and flow.sender_stack is None for flow in plan.flows)
    hop = plan.path.middlebox
    hole = hop is not None and hop.mtu_bytes > 0 and not hop.answers
    wanted = ["tcp_probe"] if plan.collect.tcp_probe and tcp and not hole else []
    wanted += [name for name, reader in readers(plan).items() if reader.must_have_rows(plan)]
    empty = [name for name in wanted if plan.flows and not report.sources[name].rows]
    message = f"nothing was collected for {', '.join(empty)}" if empty else "every collector has readings"
    return Check("collectors", COLLECTION, not empty, message, 0, len(empty), 0, "tables")


def readers(plan: Plan) -> dict[str, Reader]:
    """Return the readers of the plan's periodic collectors by name. Counters are always read, at least before and after
    the flows."""
    found: dict[str, Reader] = {}
    for name, each in registered().items():
        if name in plan.collect.intervals_us or name == "counters":
            found[each.reader.table or name] = each.reader
    return found


def reading_gaps(name: str, interval_us: int | None, times_ns: list[int], idle: Idle | None = None) -> Check:
    """Check that no reading of a collector is missing: consecutive times differ by the interval.

    Readings that a busy processor of finite speed delayed pass with a message (``idle``: howdah/judge/engine.py).
    """
    label = f"{name} readings"
    if interval_us is None or len(times_ns) < 2:
        return Check(label, COLLECTION, None, f"{name} was not read twice", interval_us, None, None, "us")
    longest = max(after - before for before, after in itertools.pairwise(times_ns)) / 1000
    long = [pair for pair in itertools.pairwise(times_ns) if pair[1] - pair[0] > _GAP * interval_us * 1000]
    ok = all(is_excused(idle, before + interval_us * 1000, after) for before, after in long)
    message = f"the longest time between two readings of {name} is {longest:.0f} us, the interval {interval_us} us"
    if long and ok:
        message += WHY
    elif long:
        message += ": the guest's clock jumped, or a reading is missing"
    return Check(label, COLLECTION, ok, message, interval_us, longest, (_GAP - 1) * interval_us, "us")


SOURCE = "qlog"


def qlog_checks(plan: Plan, report: IngestReport) -> list[Check]:
    """Return a check for each flow of a QUIC stack."""
    flows = [flow for flow in plan.flows if flow.quic is not None]
    if not flows:
        return []
    source = report.sources.get(SOURCE)
    accounts = {int(item["flow"]): item for item in (source.counts.get("flows", []) if source else [])}
    return [_bytes(flow, accounts.get(flow.id)) for flow in flows]


def _bytes(flow: Flow, account: dict[str, Any] | None) -> Check:
    """Compare UDP payload in the qlog and in the capture, in bytes: coalesced packets share a datagram, so counts of
    packets differ."""
    name = f"qlog flow {flow.id}"
    if account is None:
        return Check(name, COLLECTION, False, f"{flow.title} has no qlog that could be read", unit="bytes")
    captured, logged = account["captured_bytes"], account["bytes"]
    if captured is None:
        return Check(name, COLLECTION, False, f"{flow.title} was not captured at its sender's interface", unit="bytes")
    message = (
        f"the qlog of {flow.title} has {account['packets']} packets of {logged} bytes, the capture at its sender "
        f"{account['captured_datagrams']} datagrams of {captured} bytes"
    )
    padding = account["padding_bytes"]
    ok = 0 <= captured - logged <= padding
    if not ok:
        missing = "lacks" if captured > logged else "has more by"
        message += f": the log {missing} {abs(captured - logged)} bytes"
    elif padding:
        message += f"; up to {padding} bytes of padding are not in it"
    return Check(name, COLLECTION, ok, message, captured, logged, padding, "bytes")


_LATE = 2.5  # intervals that the first reading may be after a flow's start, and the last before its end
_IPV6_OFF = "ipv6.disable"
_MOST_NAMED = 3


def coverage_checks(
    plan: Plan, report: IngestReport, data: Measured, raw: Path, state: Snapshots | None
) -> list[Check]:
    """Return the checks that data cover the whole run. ``state`` is accounting.json, None if it is missing."""
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
    """Check that periodic collectors start with the run and read once more when the network is silent."""
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
    """Check that each flow longer than a few intervals was read from its beginning to its end."""
    late_ns = _LATE * interval_us * 1000
    short = []
    for trace in data.traces:
        times = data.info[trace.flow.id].time_ns
        begin_ns = trace.start_ns if trace.connected_ns is None else trace.connected_ns
        end_ns = min(trace.stop_ns, data.plan.duration_us * 1000)
        if trace.flow.program is not None and len(trace):  # a program may close its sockets at any time
            end_ns = min(end_ns, int(trace.time_ns[-1]))
        if end_ns - begin_ns <= 2 * late_ns or not (len(times) or len(trace)):
            continue
        if not len(times) or times.min() > begin_ns + late_ns or times.max() < end_ns - late_ns:
            short.append(trace.flow.id)
    return _all_of(
        "tcp_info from begin to end", short, "tcp_info was read until each flow ended", "tcp_info stops early"
    )


def trace_to_the_end(data: Measured) -> Check:
    """Check that the trace has the last ACK that tcp_info reports: a record at or after the reading before that ACK.

    Only readings in ESTABLISHED count: in other states the tracepoint is not called.
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
    """Check that both outputs of ss exist and cover each host that has a flow."""
    hosts = {host for flow in plan.flows if flow.group is None for host in flow.ends}
    missing = []
    for name in ("ss-begin.txt", "ss-end.txt"):
        try:
            lines = read_raw_text(raw / name, errors="replace").splitlines()
        except OSError:
            lines = []
        covered = {line.split()[1] for line in lines if line.startswith("# ") and len(line.split()) == 3}
        missing += [f"{name} of {host}" for host in sorted(hosts - covered)]
    message = "ss was asked at the beginning and at the end, on every host"
    if missing:
        message = f"there is no {', no '.join(missing[:_MOST_NAMED])}"
    return Check("ss at begin and end", COLLECTION, not missing, message, 0, len(missing), 0, "readings")


def _captures(plan: Plan, report: IngestReport, state: Snapshots | None) -> Iterable[Check]:
    """Check that a capture's file has every packet that the kernel handed to tcpdump and that the interface counted."""
    if not plan.collect.pcap:
        return
    source = report.sources.get(CAPTURES)
    captures = {item["place"]: item for item in source.counts["captures"]} if source is not None else {}
    for place in plan.collect.pcap:
        label = f"capture {place}"
        if place not in captures:
            yield Check(label, COLLECTION, False, f"the packets of the capture at {place} were not counted")
            continue
        yield _capture_complete(label, captures[place])
        passed = _packets_at_interface(plan, place, state)
        if passed is not None:
            in_file = captures[place]["in_file"]
            message = f"the capture has {in_file} packets, {passed} passed {place}"
            message += "" if in_file == passed else ": it does not cover the run"
            yield Check(f"{label} and interface", COLLECTION, in_file == passed, message, passed, in_file, 0, "packets")


def _capture_complete(label: str, capture: dict[str, Any]) -> Check:
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


def _packets_at_interface(plan: Plan, place: str, state: Snapshots | None) -> int | None:
    """Return the packets that passed the interface in both directions; None if it also carries traffic of others, or
    IPv6."""
    is_ours = plan.traits.virtual_clock
    if state is None or not is_ours or _IPV6_OFF not in plan.kernel_parameters:
        return None
    node, _, interface = place.partition(":")
    return state.interface(node, interface, "rx_packets") + state.interface(node, interface, "tx_packets")
