# SPDX-License-Identifier: Apache-2.0
"""Hand-made traces with known answers, for tests of measures and of the judge."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.measure.event import SlowStartEvent
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, Counters, Samples
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Flow, Plan
from howdah.record.schema import COUNTER, FLOW, TCP_INFO
from tests.unit.plan_factory import make_plan

MSS = 1448
MS = 1_000_000


def make_flow(**changes: Any) -> Flow:
    return dataclasses.replace(make_plan().flows[0], **changes)


def make_trace(
    time_ms: list[float],
    una: list[int],
    nxt: list[int],
    cwnd: list[int] | None = None,
    ssthresh: list[float] | None = None,
    *,
    flow: Flow | None = None,
    start_ms: float = 0,
    stop_ms: float = 2000,
    srtt_ms: float = 40,
    connected_ms: float | None = 0,
    window_bytes: list[int] | None = None,
) -> FlowTrace:
    """``una`` and ``nxt`` are in segments; every list has one element a record."""
    count = len(time_ms)
    return FlowTrace(
        flow=flow or make_flow(),
        mss_bytes=MSS,
        start_ns=int(start_ms * MS),
        connected_ns=None if connected_ms is None else int(connected_ms * MS),
        stop_ns=int(stop_ms * MS),
        time_ns=np.array([int(time * MS) for time in time_ms], dtype=np.int64),
        snd_nxt=np.array(nxt, dtype=np.int64) * MSS,
        snd_una=np.array(una, dtype=np.int64) * MSS,
        cwnd=np.array(cwnd or [10] * count, dtype=np.int64),
        ssthresh=np.array(ssthresh or [np.inf] * count, dtype=np.float64),
        srtt_ns=np.full(count, int(srtt_ms * MS), dtype=np.int64),
        snd_wnd=np.array(window_bytes or [], dtype=np.int64),
    )


def make_counters(readings: list[tuple[float, str | None, str, int]]) -> Counters:
    """Readings are (time in ms, node, name, value)."""
    return Counters(
        pa.Table.from_pylist(
            [
                {"node": node, "source": "netstat", "name": name, "time_ns": int(time * MS), "value": value}
                for time, node, name, value in readings
            ],
            schema=COUNTER,
        )
    )


def make_info(time_ms: list[float], **columns: list[int]) -> Samples:
    """tcp_info readings; columns that are not given are missing."""
    count = len(time_ms)
    values = {name: np.full(count, MISSING, dtype=np.int64) for name in TCP_INFO.names if name != "end"}
    values |= {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
    return Samples(np.array([int(time * MS) for time in time_ms], dtype=np.int64), values)


def make_queue(
    time_ms: list[float], backlog: list[int], sent: list[int] | None = None, drops: list[int] | None = None
) -> Samples:
    """Readings of the bottleneck's queue, in bytes and packets."""
    count = len(time_ms)
    columns = {
        "backlog_bytes": np.array(backlog, dtype=np.int64),
        "sent_bytes": np.array(sent or [0] * count, dtype=np.int64),
        "drops_packets": np.array(drops or [0] * count, dtype=np.int64),
    }
    return Samples(np.array([int(time * MS) for time in time_ms], dtype=np.int64), columns)


def make_measured(
    traces: list[FlowTrace],
    *,
    plan: Plan | None = None,
    queue: Samples | None = None,
    info: Samples | None = None,
    counters: Counters | None = None,
    events: dict[int, list[SlowStartEvent]] | None = None,
) -> Measured:
    plan = plan or dataclasses.replace(make_plan(), flows=[trace.flow for trace in traces])
    none = make_info([])
    return Measured(
        plan=plan,
        traces=traces,
        info={flow.id: info or none for flow in plan.flows},
        info_receiver={flow.id: none for flow in plan.flows},
        bottleneck=queue or make_queue([], []),
        counters=counters or make_counters([]),
        flows=FLOW.empty_table(),
        events=events or {},
    )
