# SPDX-License-Identifier: Apache-2.0
"""Every ACK around a flow's slow-start exit, from the tcp_probe table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import Float64, Int64, column
from howdah.report.codec import extremes

_OUTSIDE_POINTS = 400
_OF_IT = "the flow "


@dataclass(frozen=True)
class WindowExit:
    """A flow's exit from slow start. ``time_ns`` counts from the epoch, ``after_start_s`` from the flow's start.

    ``share`` is cwnd / BDP as metrics.json has it: computed with the flow's own round trip, not in whole packets.
    """

    time_ns: int
    after_start_s: float
    cwnd_packets: float | None
    share: float | None
    cause: str


@dataclass(frozen=True)
class AckWindow:
    """Records around an exit; ``time_us`` is relative to it. Within ``full_us`` no record is left out."""

    time_us: Int64
    cwnd: Float64
    ssthresh: Float64
    srtt_ms: Float64
    full_us: tuple[int, int]
    records: int


def measured(run: Run, flow: int, name: str) -> object:
    """The value of a measure of one flow, or None."""
    for row in run.metrics:
        if row.flow == flow and row.metric == name:
            return row.value
    return None


def without_exit(run: Run, flow: Flow) -> str | None:
    """Why the flow has no exit: ``flow1 did not leave slow start``. None unless metrics.json reports the exit as
    missing.
    """
    for row in run.metrics:
        if row.flow == flow.id and row.metric == "exit_time_s" and row.value is None:
            why = row.why or "its exit has no time"
            return f"{flow.name} {why.removeprefix(_OF_IT)}" if why.startswith(_OF_IT) else f"{flow.name}: {why}"
    return None


def exit_of(run: Run, flow: Flow) -> WindowExit | None:
    """The exit that metrics.json reports, or None; ``exit_time_s`` counts from the flow's start."""
    after = measured(run, flow.id, "exit_time_s")
    if not isinstance(after, int | float):
        return None
    cwnd = measured(run, flow.id, "exit_cwnd_packets")
    share = measured(run, flow.id, "exit_cwnd_bdp")
    cause = measured(run, flow.id, "exit_cause")
    return WindowExit(
        time_ns=round(after * 1e9) + flow_start_ns(run, flow),
        after_start_s=float(after),
        cwnd_packets=float(cwnd) if isinstance(cwnd, int | float) else None,
        share=float(share) if isinstance(share, int | float) else None,
        cause=str(cause or "unknown"),
    )


def flow_start_ns(run: Run, flow: Flow) -> int:
    """The flow's actual start, or its planned start if the flow table lacks it."""
    table = run.table("flow")
    if table is not None:
        for row in table.select(["flow", "start_ns"]).to_pylist():
            if row["flow"] == flow.id and row["start_ns"] is not None:
                return int(row["start_ns"])
    return flow.start_us * 1000


def ack_window(table: pa.Table | None, flow: Flow, exit_ns: int, most: int) -> AckWindow | None:
    """The records within two round trips of the exit: the ``most`` nearest in full, the others thinned."""
    if table is None:
        return None
    reach = 2 * flow.rtt_us * 1000
    time = table.column("time_ns")
    near = pc.and_(pc.greater_equal(time, exit_ns - reach), pc.less_equal(time, exit_ns + reach))
    part = table.filter(pc.and_(pc.equal(table.column("flow"), flow.id), near)).sort_by("time_ns")
    if part.num_rows == 0:
        return None
    at = np.asarray(part.column("time_ns").to_numpy(), dtype=np.int64) - exit_ns
    cwnd = column(part, "cwnd_packets")
    middle = int(np.searchsorted(at, 0))
    first, end = max(0, middle - most // 2), min(len(at), middle + most // 2)
    before = extremes(cwnd[:first], _OUTSIDE_POINTS)
    after = extremes(cwnd[end:], _OUTSIDE_POINTS) + end
    kept = np.concatenate([before, np.arange(first, end), after])
    return AckWindow(
        time_us=np.rint(at[kept] / 1000).astype(np.int64),
        cwnd=cwnd[kept],
        ssthresh=column(part, "ssthresh_packets")[kept],
        srtt_ms=column(part, "srtt_us")[kept] / 1e3,
        full_us=(int(at[first] // 1000), int(at[end - 1] // 1000)),
        records=part.num_rows,
    )
