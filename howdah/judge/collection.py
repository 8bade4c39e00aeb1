# SPDX-License-Identifier: Apache-2.0
"""Whether everything that should have been recorded was, and can be read."""

from __future__ import annotations

import itertools
from typing import Any

from howdah.ingest import IngestReport
from howdah.judge.check import COLLECTION, Check, none_of
from howdah.plan.plan import Plan

_GAP = 2.5  # intervals between two readings of a collector at which one is missing


def collection_checks(plan: Plan, report: IngestReport, trace: dict[str, Any] | None) -> list[Check]:
    """``trace`` is trace.json, None if missing."""
    checks = [_raw_files(report)]
    if plan.collect.tcp_probe:
        checks += [_lost_records(report, trace), _whole_trace(report, trace), _unknown_sockets(report)]
    checks += [_rows(plan, report)]
    return checks


def _raw_files(report: IngestReport) -> Check:
    problems = report.all_problems
    more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
    good = "every raw file was read to its end"
    bad = "raw data are damaged or missing: " + "; ".join(problems[:3]) + more
    # Braces in a file's message are no place holders.
    return Check("raw files", COLLECTION, not problems, bad if problems else good, 0, len(problems), 0, "problems")


def _lost_records(report: IngestReport, trace: dict[str, Any] | None) -> Check:
    if trace is None:
        return Check("lost trace records", COLLECTION, False, "trace.json is missing: nobody counted lost records")
    counts = report.sources["tcp_probe"].counts
    by_kernel = sum(int(trace.get(name) or 0) for name in ("overrun", "dropped_events", "commit_overrun"))
    lost = max(by_kernel, int(counts.get("lost_events", 0))) + int(counts.get("gaps_of_unknown_size", 0))
    lost += int(bool(trace.get("bytes_lost"))) + int(trace.get("unread") or 0)
    return none_of(
        "lost trace records",
        COLLECTION,
        lost,
        "records",
        "no per-ACK record was lost",
        "{count} per-ACK records were lost: the trace buffer was too small or was read too late",
    )


def _whole_trace(report: IngestReport, trace: dict[str, Any] | None) -> Check:
    """As many records were decoded as the kernel handed over."""
    if trace is None or trace.get("entries") is None:
        return Check("trace records", COLLECTION, None, "the kernel's count of records is not known")
    source = report.sources["tcp_probe"]
    others = ("receiver_rows", "control_rows", "unknown_rows", "foreign_events")
    decoded = source.rows + sum(int(source.counts.get(name, 0)) for name in others)
    expected = int(trace["entries"])
    ok = decoded == expected
    message = f"{decoded} records were decoded, the kernel handed over {expected}"
    return Check("trace records", COLLECTION, ok, message, expected, decoded, 0, "records")


def _unknown_sockets(report: IngestReport) -> Check:
    counts = report.sources["tcp_probe"].counts
    sockets = counts.get("unknown_sockets", [])
    named = ", ".join(f"{item['source_port']} to {item['destination_port']}" for item in sockets[:3])
    return none_of(
        "unknown sockets",
        COLLECTION,
        int(counts.get("unknown_rows", 0)),
        "records",
        "every record belongs to a flow of the plan",
        "{count} records belong to sockets of no flow (ports " + named + "): there is traffic nobody planned",
    )


def _rows(plan: Plan, report: IngestReport) -> Check:
    """Every collector that was switched on left something."""
    wanted = {
        "tcp_probe": plan.collect.tcp_probe,
        "tcp_info": plan.collect.tcp_info_us is not None,
        "qdisc": plan.collect.qdisc_us is not None,
        "interface": plan.collect.interface_us is not None,
        "counter": True,
    }
    empty = [name for name, on in wanted.items() if on and plan.flows and not report.sources[name].rows]
    message = f"nothing was collected for {', '.join(empty)}" if empty else "every collector has readings"
    return Check("collectors", COLLECTION, not empty, message, 0, len(empty), 0, "tables")


def reading_gaps(name: str, interval_us: int | None, times_ns: list[int]) -> Check:
    """No reading of a collector is missing: its times follow one another at the interval."""
    label = f"{name} readings"
    if interval_us is None or len(times_ns) < 2:
        return Check(label, COLLECTION, None, f"{name} was not read twice", interval_us, None, None, "us")
    longest = max(after - before for before, after in itertools.pairwise(times_ns)) / 1000
    ok = longest <= _GAP * interval_us
    message = f"the longest time between two readings of {name} is {longest:.0f} us, the interval {interval_us} us"
    if not ok:
        message += ": the guest's clock jumped, or a reading is missing"
    return Check(label, COLLECTION, ok, message, interval_us, longest, (_GAP - 1) * interval_us, "us")
