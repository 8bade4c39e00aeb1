# SPDX-License-Identifier: Apache-2.0
"""The time-sequence picture of a flow: bytes sent, acknowledged, SACKed, retransmitted and lost, with both windows. It
is made from the sender's state at each ACK (tcp_probe) and its counters (tcp_info), or, where the flow was captured at
its sender, from each segment and SACK block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import Float64, Int64, column
from howdah.report.plot.style import Style, token
from howdah.report.source import Curve

SENT, ACKED, RETRANSMITTED, LOST, SACKED, WINDOW, ALLOWED = (
    *("sent", "acknowledged", "retransmitted", "lost", "SACKed"),
    *("congestion window", "receive window"),
)


@dataclass(frozen=True)
class SequencePart:
    """The look of one part of the picture: a colour named in reports/css/tokens.css, dashes, and whether it is drawn as
    points."""

    colour: str
    dash: tuple[int, ...] = ()
    points: bool = False

    @property
    def style(self) -> Style:
        return token(self.colour, *self.dash)


# In the order of the legend. Of several runs laid over each other the first three are drawn.
SERIES = {
    SENT: SequencePart("ink"),
    ACKED: SequencePart("good"),
    RETRANSMITTED: SequencePart("bad", points=True),
    LOST: SequencePart("warn", points=True),
    SACKED: SequencePart("focus", (2, 3)),
    WINDOW: SequencePart("focus", (7, 4)),
    ALLOWED: SequencePart("quiet", (9, 3, 2, 3)),
}
MOST_OVERLAID = 3
_MB = 1e6
_MS = 1_000_000  # nanoseconds
Booleans = npt.NDArray[np.bool_]
_ROOM = 1.3  # of what was sent: a receive window further up would press the rest to the floor


def sequence_curves(run: Run, flow: Flow) -> dict[str, Curve]:
    """The curves by series, in MB from the first byte of data; empty without records of ACKs."""
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
        found |= _from_counters(info, time, una, mss_bytes)
    segments = _of_flow(run.table("segment"), flow, "sender")
    if segments is not None and mss_bytes:
        found |= _from_captures(segments, _of_flow(run.table("segment"), flow, "receiver"), mss_bytes)
        found |= _sack_ranges(_of_flow(run.table("sack_block"), flow, "sender"))
    return {name: found[name] for name in SERIES if name in found and not np.isnan(found[name].value).all()}


def _from_counters(info: pa.Table, time: Int64, una: Float64, mss_bytes: int) -> dict[str, Curve]:
    """Curves from counters at each reading: how far SACKs reach beyond the acknowledged bytes, and a point where a
    segment was retransmitted or counts as lost."""
    at = _time(info)
    floor = np.interp(at, time, una)
    retransmitted = np.diff(column(info, "total_retrans_packets"), prepend=np.nan) > 0
    lost, sacked = column(info, "lost_packets"), column(info, "sacked_packets")
    return {
        RETRANSMITTED: Curve(at[retransmitted], floor[retransmitted]),
        LOST: Curve(at[lost > 0], floor[lost > 0] + lost[lost > 0] * mss_bytes / _MB),
        SACKED: Curve(at, np.where(sacked > 0, floor + sacked * mss_bytes / _MB, np.nan)),
    }


def _from_captures(segments: pa.Table, arrived: pa.Table | None, mss_bytes: int) -> dict[str, Curve]:
    """Bytes sent and acknowledged at each segment of the sender's capture, and a point for each retransmission. With a
    capture at the receiver, also a point for each segment that did not arrive, at the time it was sent."""
    begin, end, time_ns = _data_segments(segments, mss_bytes)
    if not begin.size:
        return {}
    reached = np.maximum.accumulate(end)
    before = np.concatenate(([0], reached[:-1]))
    retransmitted = begin < before
    found = {
        SENT: Curve(time_ns // _MS, reached / _MB),
        RETRANSMITTED: Curve(time_ns[retransmitted] // _MS, end[retransmitted] / _MB),
    }
    acks = segments.filter(pc.equal(segments.column("sent_by").cast("string"), "receiver"))
    acked = column(acks, "ack_bytes")
    if (known := ~np.isnan(acked)).any():
        found[ACKED] = Curve(_time(acks)[known], np.maximum.accumulate(acked[known]) / _MB)
    if arrived is not None:
        lost = _lost_segments(begin, *_data_segments(arrived, mss_bytes)[:2])
        found[LOST] = Curve(time_ns[lost] // _MS, end[lost] / _MB)
    return found


def _sack_ranges(blocks: pa.Table | None) -> dict[str, Curve]:
    """The range of each SACK block that reached the sender. Among equal times, the block that ends last comes last,
    because a cursor reads the last one."""
    if blocks is None:
        return {}
    blocks = blocks.filter(pc.equal(blocks.column("sent_by").cast("string"), "receiver"))
    time, left, right = _time(blocks), column(blocks, "left_edge_bytes"), column(blocks, "right_edge_bytes")
    order = np.lexsort((right, time))
    return {SACKED: Curve(time[order], right[order] / _MB, left[order] / _MB)}


def _data_segments(segments: pa.Table, mss_bytes: int) -> tuple[Int64, Int64, Int64]:
    """First byte, end (exclusive) and time of each data segment, ordered by time. A super-packet, which the NIC or the
    kernel splits, counts as the segments it becomes."""
    data = segments.filter(
        pc.and_(
            pc.equal(segments.column("sent_by").cast("string"), "sender"),
            pc.greater(segments.column("payload_bytes"), 0),
        )
    )
    first, size, time = (
        np.asarray(data.column(name).to_numpy(), dtype=np.int64)
        for name in ("sequence_bytes", "payload_bytes", "time_ns")
    )
    count = -(-size // mss_bytes)
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.repeat(first, count) + number * mss_bytes
    return begin, np.minimum(begin + mss_bytes, np.repeat(first + size, count)), np.repeat(time, count)


def _lost_segments(begin: Int64, arrived: Int64, arrived_end: Int64) -> Booleans:
    """Which of the sent segments are lost; among several with the same first byte, the earlier ones. Segments beyond
    everything that arrived may still be in flight and do not count as lost."""
    starts, ends = np.sort(arrived), np.sort(arrived_end)
    there = np.searchsorted(starts, begin, side="right") - np.searchsorted(ends, begin, side="right")
    order = np.argsort(begin, kind="stable")
    _, first, place, count = np.unique(begin[order], return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(begin.size, dtype=np.int64)
    rank[order] = np.arange(begin.size) - first[place]
    sent = np.empty(begin.size, dtype=np.int64)
    sent[order] = count[place]
    behind = begin >= (ends[-1] if ends.size else 0)
    lost: Booleans = (rank < sent - there) & ~behind
    return lost


def _of_flow(table: pa.Table | None, flow: Flow, end: str = "") -> pa.Table | None:
    if table is None:
        return None
    mine = pc.equal(table.column("flow"), flow.id)
    if end:
        mine = pc.and_(mine, pc.equal(table.column("end").cast("string"), end))
    part = table.filter(mine).sort_by("time_ns")
    return part if part.num_rows else None


def _time(table: pa.Table) -> Int64:
    return np.asarray(table.column("time_ns").to_numpy(), dtype=np.int64) // 1_000_000
