# SPDX-License-Identifier: Apache-2.0
"""The time-sequence picture of a flow: what was sent, acknowledged, acknowledged selectively, sent again and lost, with
both windows. From a sender's state at each ACK (tcp_probe) and its counters (tcp_info)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import Float64, Int64, column
from howdah.report.source import Curve

# In the order of the legend. Of several runs laid over each other the first three are drawn.
SENT, ACKED, AGAIN, LOST, SACKED, WINDOW, ALLOWED = (
    *("sent", "acknowledged", "retransmitted", "lost", "SACKed"),
    *("congestion window", "receive window"),
)
SERIES = (SENT, ACKED, AGAIN, LOST, SACKED, WINDOW, ALLOWED)
OVER_EACH_OTHER = 3
POINTS = (AGAIN, LOST)
_MB = 1e6
_ROOM = 1.3  # of what was sent: a receive window further up would press the rest to the floor


def sequence_curves(run: Run, flow: Flow) -> dict[str, Curve]:
    """By series, in MB from the first byte of data; empty without records of ACKs."""
    probe = _of_flow(run.table("tcp_probe"), flow)
    if probe is None:
        return {}
    time, una = _time(probe), column(probe, "snd_una_bytes")
    known = ~np.isnan(una)
    if not known.any():
        return {}
    time, una = time[known], una[known] / _MB
    sent = np.maximum.accumulate(np.nan_to_num(column(probe, "snd_nxt_bytes")[known])) / _MB
    mss_bytes = run.plan.path.mss_bytes if run.plan else 0
    allowed = una + column(probe, "snd_wnd_bytes")[known] / _MB
    found = {
        SENT: Curve(time, sent),
        ACKED: Curve(time, una),
        WINDOW: Curve(time, una + column(probe, "cwnd_packets")[known] * mss_bytes / _MB),
        ALLOWED: Curve(time, np.where(allowed <= _ROOM * sent.max(), allowed, np.nan)),
    }
    info = _of_flow(run.table("tcp_info"), flow, "sender")
    if info is not None:
        found |= _counted(info, time, una, mss_bytes)
    return {name: found[name] for name in SERIES if name in found and not np.isnan(found[name].value).all()}


def _counted(info: pa.Table, time: Int64, una: Float64, mss_bytes: int) -> dict[str, Curve]:
    """What counters say between two readings: how far SACKs reach beyond what is acknowledged, and a point at what is
    acknowledged where a segment was sent again, or counts as lost."""
    at = _time(info)
    floor = np.interp(at, time, una)
    again = np.diff(column(info, "total_retrans_packets"), prepend=np.nan) > 0
    lost, sacked = column(info, "lost_packets"), column(info, "sacked_packets")
    return {
        AGAIN: Curve(at[again], floor[again]),
        LOST: Curve(at[lost > 0], floor[lost > 0] + lost[lost > 0] * mss_bytes / _MB),
        SACKED: Curve(at, np.where(sacked > 0, floor + sacked * mss_bytes / _MB, np.nan)),
    }


def _of_flow(table: pa.Table | None, flow: Flow, end: str = "") -> pa.Table | None:
    if table is None:
        return None
    mine = pc.equal(table.column("flow"), flow.id)
    if end:
        mine = pc.and_(mine, pc.equal(table.column("end"), end))
    part = table.filter(mine).sort_by("time_ns")
    return part if part.num_rows else None


def _time(table: pa.Table) -> Int64:
    return np.asarray(table.column("time_ns").to_numpy(), dtype=np.int64) // 1_000_000
