# SPDX-License-Identifier: Apache-2.0
"""A TCP flow as qlog (draft-ietf-quic-qlog-main-schema, version 0.3, JSON text sequences), for tools such as qvis.

It uses the events of QUIC's recovery: ``recovery:metrics_updated`` with cwnd, round-trip time and bytes in flight, and
``recovery:congestion_state_updated`` where the flow leaves slow start. Times are in milliseconds from the epoch of the
run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from howdah import __version__
from howdah.export.flow import exit_of, file_stem, flow_text, path_text, plan_of, probed, start_ns
from howdah.plan.plan import Flow, Plan
from howdah.record.directory import write_whole
from howdah.record.result import Run

SUFFIX = ".sqlog"
VERSION = "0.3"
STEP_NS = 1_000_000  # between two metrics_updated at least; a changed ssthresh is told at once
_RECORD = "\x1e"  # before each text of a sequence (RFC 7464)


def write_qlog(run: Run, directory: Path) -> list[Path]:
    """Write one file for each TCP flow. Raises HowdahError for a run without tables or without ACKs."""
    plan = plan_of(run)
    written = []
    for flow, rows in probed(run):
        events = sorted([*_metrics(rows, plan.path.mss_bytes), *_states(run, flow)], key=lambda event: event.time)
        texts = (json.dumps(each, separators=(",", ":")) for each in (_head(run, plan, flow), *map(vars, events)))
        file = directory / f"{file_stem(run, flow)}{SUFFIX}"
        write_whole(file, "".join(f"{_RECORD}{text}\n" for text in texts))
        written.append(file)
    return written


@dataclass(frozen=True)
class _RecoveryEvent:
    """``time`` is in milliseconds."""

    time: float
    name: str
    data: dict[str, str | float]


def _head(run: Run, plan: Plan, flow: Flow) -> object:
    return {
        "qlog_format": "JSON-SEQ",
        "qlog_version": VERSION,
        "title": f"{run.experiment}/{run.name}, {flow_text(flow)}",
        "description": path_text(plan),
        "trace": {
            "title": flow.name,
            "vantage_point": {"name": flow.sender, "type": "server"},
            "common_fields": {
                "time_format": "relative",
                "reference_time": run.started_s * 1e3,
                "protocol_type": ["TCP"],
                "group_id": run.name,
            },
            "configuration": {
                "time_offset": 0,
                "original_uris": [],
                "howdah": {"version": __version__, "kernel": run.kernel, "algorithm": flow.algorithm},
            },
        },
    }


def _metrics(rows: pa.Table, mss_bytes: int) -> Iterator[_RecoveryEvent]:
    """Yield events with only the values that changed since the last event, as the schema requires."""
    names = ("time_ns", "cwnd_packets", "ssthresh_packets", "srtt_us", "snd_nxt_bytes", "snd_una_bytes")
    columns = [rows[name].to_pylist() for name in names]
    told: dict[str, str | float] = {}
    last_ns: int | None = None
    for time_ns, cwnd, ssthresh, srtt_us, sent, una in zip(*columns, strict=True):
        now: dict[str, str | float] = {"congestion_window": cwnd * mss_bytes}
        if ssthresh is not None:
            now["ssthresh"] = ssthresh * mss_bytes
        if srtt_us:
            now["smoothed_rtt"] = srtt_us / 1e3
        if sent is not None and una is not None:
            now["bytes_in_flight"] = max(sent - una, 0)
        fresh = {name: value for name, value in now.items() if told.get(name) != value}
        soon = last_ns is not None and time_ns - last_ns < STEP_NS
        if not fresh or (soon and "ssthresh" not in fresh):
            continue
        told, last_ns = told | fresh, time_ns
        yield _RecoveryEvent(time_ns / 1e6, "recovery:metrics_updated", fresh)


def _states(run: Run, flow: Flow) -> Iterator[_RecoveryEvent]:
    yield _RecoveryEvent(start_ns(run, flow) / 1e6, "recovery:congestion_state_updated", {"new": "slow_start"})
    leaves = exit_of(run, flow)
    if leaves is not None:
        about: dict[str, str | float] = {"old": "slow_start", "new": "congestion_avoidance", "trigger": leaves.cause}
        yield _RecoveryEvent(leaves.time_ns / 1e6, "recovery:congestion_state_updated", about)
