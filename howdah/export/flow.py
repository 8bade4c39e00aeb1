# SPDX-License-Identifier: Apache-2.0
"""Parts of exports that describe a flow: its path in words, when and why it left slow start, and its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from howdah.errors import HowdahError
from howdah.plan.plan import Flow, Plan
from howdah.record.result import Run


@dataclass(frozen=True)
class FlowExit:
    """The exit of a flow; ``time_ns`` counts from the epoch."""

    time_ns: int
    cause: str
    cwnd_packets: float | None
    cwnd_bdp: float | None

    def text(self, flow: Flow) -> str:
        window = "" if self.cwnd_packets is None else f", window {self.cwnd_packets:g} packets"
        share = "" if self.cwnd_bdp is None else f" ({self.cwnd_bdp:.3g} BDP)"
        since_s = self.time_ns / 1e9 - flow.start_us / 1e6
        return f"flow {flow.name} leaves slow start after {since_s:.4g} s: {self.cause}{window}{share}"


def plan_of(run: Run) -> Plan:
    """The run's plan. Raises HowdahError for a run that cannot be exported."""
    where = str(run.directory.path)
    if run.plan is None:
        raise HowdahError(f"there is nothing to export: {run.problem}", where=where)
    if not run.data_kept:
        raise HowdahError(
            "the tables of this run were not kept (keep: first)",
            where=where,
            hint="Export its first repetition, or make it again with 'howdah rerun'.",
        )
    return run.plan


def path_text(plan: Plan) -> str:
    path = plan.path
    return (
        f"{path.rate_bits_per_second / 1e6:g} Mbit/s, RTT {path.rtt_us / 1e3:g} ms, buffer {path.buffer_bytes} bytes "
        f"(BDP {path.bdp_packets} packets)"
    )


def flow_text(flow: Flow) -> str:
    return f"flow {flow.name}: {flow.algorithm}, {flow.sender} to {flow.receiver}"


def exit_of(run: Run, flow: Flow) -> FlowExit | None:
    """The exit of a flow, or None if the run recorded none."""
    rows = {row.metric: row.value for row in run.metrics if row.flow == flow.id}
    numbers = {row.metric: row.number for row in run.metrics if row.flow == flow.id}
    time_s = numbers.get("exit_time_s")
    if time_s is None:
        return None
    time_ns = round(time_s * 1e9) + start_ns(run, flow)
    cwnd = numbers.get("exit_cwnd_packets"), numbers.get("exit_cwnd_bdp")
    return FlowExit(time_ns, str(rows.get("exit_cause")), *cwnd)


def start_ns(run: Run, flow: Flow) -> int:
    """The flow's actual start, from the epoch; its planned start if the flow table lacks it."""
    table = run.table("flow")
    for row in table.to_pylist() if table is not None else []:
        if row["flow"] == flow.id and row["start_ns"] is not None:
            return int(row["start_ns"])
    return flow.start_us * 1000


def probed(run: Run) -> Iterator[tuple[Flow, pa.Table]]:
    """Yield each TCP flow with its ACKs in the order of time. Raises HowdahError if the run has none."""
    plan = plan_of(run)
    table = run.table("tcp_probe")
    if table is None:
        raise HowdahError("the run recorded no ACKs (collect.tcp_probe)", where=str(run.directory.path))
    for flow in plan.flows:
        rows = table.filter(pc.equal(table["flow"], flow.id))
        if rows.num_rows:
            yield flow, rows


def file_stem(run: Run, flow: Flow) -> str:
    return f"{run.experiment}-{run.name}-{flow.name}"
