# SPDX-License-Identifier: Apache-2.0
"""Whether everything that should have been recorded was, and can be read."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from howdah.hooks import Reader
from howdah.ingest.source import IngestReport
from howdah.judge.check import none_of
from howdah.judge.engine import WHY, Idle, excused
from howdah.plan.plan import Flow, Plan
from howdah.record.trace import TraceAccount
from howdah.record.verdict import COLLECTION, Check
from howdah.registered import registered

_GAP = 2.5  # intervals between two readings of a collector at which one is missing


def collection_checks(
    plan: Plan, report: IngestReport, trace: TraceAccount | None, events: TraceAccount | None = None
) -> list[Check]:
    """``trace`` is trace.json and ``events`` slow_start.json, None if missing.

    A slow-start module reports events where it was loaded; without one there is no account of them and no check.
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
    """A tracepoint's table and account, and what its records and checks are called."""

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
    # Braces in a file's message are no place holders.
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
    """As many records were decoded as the kernel handed over."""
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
    """An event without a name is kept in the table; only its meaning is missing."""
    unknown = report.sources["slow_start"].counts.get("unknown_names", [])
    if not unknown:
        return Check("event names", COLLECTION, True, "every event and reason has a name", 0, 0, 0, "names")
    message = f"the module reports {', '.join(unknown)}, which this howdah has no name for: it is older than the module"
    return Check("event names", COLLECTION, None, message, 0, len(unknown), 0, "names")


def _rows(plan: Plan, report: IngestReport) -> Check:
    """Every collector that was switched on left something. In a black hole there may be no ACK to trace."""
    tcp = any(flow.is_tcp and flow.sender_stack is None for flow in plan.flows)
    hop = plan.path.middlebox
    hole = hop is not None and hop.mtu_bytes > 0 and not hop.answers
    wanted = ["tcp_probe"] if plan.collect.tcp_probe and tcp and not hole else []
    wanted += [name for name, reader in readers(plan).items() if reader.must_have_rows(plan)]
    empty = [name for name in wanted if plan.flows and not report.sources[name].rows]
    message = f"nothing was collected for {', '.join(empty)}" if empty else "every collector has readings"
    return Check("collectors", COLLECTION, not empty, message, 0, len(empty), 0, "tables")


def readers(plan: Plan) -> dict[str, Reader]:
    """Of the collectors that read at an interval in a run of the plan, by table. Counters are read even if that is
    off: once before and once after the flows."""
    found: dict[str, Reader] = {}
    for name, each in registered().items():
        if name in plan.collect.intervals_us or name == "counters":
            found[each.reader.table or name] = each.reader
    return found


def reading_gaps(name: str, interval_us: int | None, times_ns: list[int], idle: Idle | None = None) -> Check:
    """No reading of a collector is missing: its times follow one another at the interval.

    Those that came late because a processor of finite speed was busy pass with a message (``idle``:
    howdah/judge/engine.py).
    """
    label = f"{name} readings"
    if interval_us is None or len(times_ns) < 2:
        return Check(label, COLLECTION, None, f"{name} was not read twice", interval_us, None, None, "us")
    longest = max(after - before for before, after in itertools.pairwise(times_ns)) / 1000
    long = [pair for pair in itertools.pairwise(times_ns) if pair[1] - pair[0] > _GAP * interval_us * 1000]
    ok = all(excused(idle, before + interval_us * 1000, after) for before, after in long)
    message = f"the longest time between two readings of {name} is {longest:.0f} us, the interval {interval_us} us"
    if long and ok:
        message += WHY
    elif long:
        message += ": the guest's clock jumped, or a reading is missing"
    return Check(label, COLLECTION, ok, message, interval_us, longest, (_GAP - 1) * interval_us, "us")


SOURCE = "qlog"


def qlog_checks(plan: Plan, report: IngestReport) -> list[Check]:
    """One for each flow that a QUIC stack made."""
    flows = [flow for flow in plan.flows if flow.quic is not None]
    if not flows:
        return []
    source = report.sources.get(SOURCE)
    accounts = {int(item["flow"]): item for item in (source.counts.get("flows", []) if source else [])}
    return [_bytes(flow, accounts.get(flow.id)) for flow in flows]


def _bytes(flow: Flow, account: dict[str, Any] | None) -> Check:
    """UDP payload to the byte: coalesced packets share a datagram, so that only bytes can be compared."""
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
