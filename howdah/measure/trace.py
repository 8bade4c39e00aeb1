# SPDX-License-Identifier: Apache-2.0
"""The per-ACK trace of one flow as arrays, and the bytes that it shows as acknowledged at any time.

A tcp_probe record is the state *before* its ACK is processed (``trace_tcp_probe`` is the first statement of
``tcp_rcv_established``). The effect of ACK *i* is therefore in record *i* + 1; that of the last one is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.plan.plan import Flow

Integers = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

SECOND_NS = 1_000_000_000
_NO_WINDOW = -1  # marks an unknown window


@dataclass(frozen=True)
class FlowTrace:
    """Records of one flow in the order of arrival, all arrays of the same length.

    ``snd_nxt`` and ``snd_una`` count bytes from the first data byte; ``ssthresh`` is infinite if the kernel's is;
    ``start_ns`` is when the flow began to connect (a transfer by iperf3: when it was connected, see ingest/run.py),
    ``connected_ns`` when it could send, ``stop_ns`` when it ended. A flow of fixed size that is complete has a
    ``received_ns``, when its receiver had the last byte, and ends when that byte is acknowledged. ``snd_wnd`` is the
    window that the receiver offered, in bytes; empty if unknown.
    """

    flow: Flow
    mss_bytes: int
    start_ns: int
    connected_ns: int | None
    stop_ns: int
    time_ns: Integers
    snd_nxt: Integers
    snd_una: Integers
    cwnd: Integers
    ssthresh: Reals
    srtt_ns: Integers
    received_ns: int | None = None
    acknowledged_bytes: int | None = None  # acknowledged by the last record's ACK, if known
    snd_wnd: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return self.time_ns.size

    @cached_property
    def una_after(self) -> Integers:
        """snd_una after each record's ACK was processed; for the last one, before it, unless the flow is complete."""
        last = self.snd_una[-1:]
        if self.acknowledged_bytes is not None:
            last = np.maximum(last, self.acknowledged_bytes)
        return np.concatenate([self.snd_una[1:], last])

    @cached_property
    def window_ns(self) -> Integers:
        """The round-trip time at each record: the smoothed one, but at least the path's own."""
        return np.maximum(self.srtt_ns, self.flow.rtt_us * 1000)

    @property
    def packets_out(self) -> Reals:
        """Segments sent and not cumulatively acknowledged (``tp->packets_out``), when each ACK arrived."""
        return (self.snd_nxt - self.snd_una) / self.mss_bytes

    def acked_bytes(self, time_ns: Integers | int) -> Integers:
        """Return the bytes acknowledged at the sender at the given times (ns from the epoch), same shape."""
        if not len(self):
            return np.zeros(np.shape(time_ns), dtype=np.int64)
        index = np.searchsorted(self.time_ns, time_ns, side="right")
        return np.where(index > 0, self.una_after[np.maximum(index - 1, 0)], 0)


Columns = dict[str, npt.NDArray[Any]]


def columns_of(table: pa.Table) -> Columns:
    """Return the columns of the table ``tcp_probe`` that traces need, for all flows; traces are slices of them."""
    return {
        "time_ns": _integers(table["time_ns"]),
        "snd_nxt": _integers(table["snd_nxt_bytes"]),
        "snd_una": _integers(table["snd_una_bytes"]),
        "cwnd": _integers(table["cwnd_packets"].fill_null(0)),  # null if the sender's window is unknown
        "ssthresh": table["ssthresh_packets"].cast(pa.float64()).fill_null(np.inf).to_numpy().astype(np.float64),
        "srtt_ns": _integers(table["srtt_us"].fill_null(0)) * 1000,
        "snd_wnd": _integers(table["snd_wnd_bytes"].fill_null(_NO_WINDOW)),
    }


def trace_of(columns: Columns, flow: Flow, record: dict[str, int | None], mss_bytes: int) -> FlowTrace:
    """Return the trace of a flow; ``record`` is its row of the table ``flow``."""
    start = record.get("start_ns")
    end = record.get("end_ns")
    stop = flow.stop_us * 1000
    times, sent, windows = (columns[name] for name in ("time_ns", "snd_nxt", "snd_wnd"))
    received = end if end is not None and end < stop and flow.size_bytes and record.get("complete") else None
    whole = received is not None and _is_whole(flow, times, sent, received)
    if whole:
        end = int(times[-1])
    return FlowTrace(
        flow=flow,
        mss_bytes=mss_bytes,
        start_ns=flow.start_us * 1000 if start is None else start,
        connected_ns=record.get("connected_ns"),
        stop_ns=stop if end is None else min(stop, end),
        time_ns=times,
        snd_nxt=sent,
        snd_una=columns["snd_una"],
        cwnd=columns["cwnd"],
        ssthresh=columns["ssthresh"],
        srtt_ns=columns["srtt_ns"],
        received_ns=received,
        acknowledged_bytes=flow.size_bytes if whole else None,
        snd_wnd=windows[:0] if (windows == _NO_WINDOW).any() else windows,
    )


def _is_whole(flow: Flow, times: Integers, sent: Integers, received_ns: int) -> bool:
    """Whether the last record is the ACK of the last byte: howdah's sources close after it, and every ACK of an
    established connection has a record. Other programs may close earlier."""
    waits = flow.kind.single and flow.is_tcp and flow.sender_stack is None
    return waits and bool(times.size) and int(times[-1]) >= received_ns and int(sent[-1]) >= (flow.size_bytes or 0)


def _integers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(column.to_numpy(), dtype=np.int64)
