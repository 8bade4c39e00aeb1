# SPDX-License-Identifier: Apache-2.0
"""The points of figures over time, as in the tables: seconds since a given time, and values."""

from __future__ import annotations

import pyarrow.compute as pc

from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import Float64, column
from howdah.report.source import TableSource


def records(run: Run, flow: Flow, name: str, factor: float, start_s: float) -> tuple[Float64, Float64] | None:
    """A column of tcp_probe, or of tcp_info if there is no such table."""
    for table_name in ("tcp_probe", "tcp_info"):
        table = run.table(table_name)
        if table is None or name not in table.column_names:
            continue
        part = table.filter(pc.equal(table.column("flow"), flow.id))
        if table_name == "tcp_info":
            part = part.filter(pc.equal(part.column("end").cast("string"), "sender"))
        if part.num_rows:
            part = part.sort_by("time_ns")
            return column(part, "time_ns") / 1e9 - start_s, column(part, name) * factor
    return None


def cwnd(run: Run, flow: Flow, start_s: float) -> tuple[Float64, Float64] | None:
    return records(run, flow, "cwnd_packets", 1.0, start_s)


def acknowledged(run: Run, flow: Flow, start_s: float) -> tuple[Float64, Float64] | None:
    return records(run, flow, "snd_una_bytes", 1e-6, start_s) or records(run, flow, "bytes_acked_bytes", 1e-6, start_s)


def rtt(run: Run, flow: Flow, start_s: float) -> tuple[Float64, Float64] | None:
    return records(run, flow, "srtt_us", 1e-3, start_s) or records(run, flow, "rtt_us", 1e-3, start_s)


def queue(run: Run, _flow: Flow, start_s: float) -> tuple[Float64, Float64] | None:
    table = run.table("qdisc")
    if table is None or run.plan is None:
        return None
    for name, value in zip(("node", "interface", "handle"), run.plan.calibration.bottleneck, strict=True):
        table = table.filter(pc.equal(table.column(name).cast("string"), value))
    if not table.num_rows:
        return None
    table = table.sort_by("time_ns")
    return column(table, "time_ns") / 1e9 - start_s, column(table, "backlog_bytes") / 1e3


def goodput(run: Run, flow: Flow, start_s: float) -> tuple[Float64, Float64] | None:
    """The report's goodput curve: the mean over one round trip."""
    curve = TableSource().curves(run).get("goodput", {}).get(str(flow.id))
    return None if curve is None else (curve.time_ms / 1e3 - start_s, curve.value)
