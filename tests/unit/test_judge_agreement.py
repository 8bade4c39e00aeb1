# SPDX-License-Identifier: Apache-2.0
"""Sources that contradict each other, on traces made by hand: 40 ms, an ACK of two segments every 10 ms."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.judge.agreement import agreement_checks
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, Samples
from howdah.measure.trace import FlowTrace
from howdah.record.schema import FLOW
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_counters, make_flow, make_info, make_trace

_COUNT = 20
_TIMES = [float(100 + 10 * number) for number in range(_COUNT)]
_WINDOWS = [10 + number for number in range(_COUNT)]


def _trace(**changes: Any) -> FlowTrace:
    una = [2 * number for number in range(_COUNT)]
    made = {"cwnd": _WINDOWS, "ssthresh": [np.inf] * 10 + [20.0] * 10, **changes}
    return make_trace(_TIMES, una, [each + 10 for each in una], flow=make_flow(), **made)


def _info(**columns: list[int]) -> Samples:
    """Read after the 2nd, 5th, 10th, 15th and 19th ACK."""
    read = {
        "state": [TCP_ESTABLISHED] * 5,
        "cwnd_packets": [12, 15, 20, 25, 29],
        "ssthresh_packets": [MISSING, MISSING, 20, 20, 20],
        "bytes_acked_bytes": [MSS * count + 1 for count in (4, 10, 20, 30, 38)],
        "total_retrans_packets": [0] * 5,
        **columns,
    }
    return make_info([115.0, 145.0, 195.0, 245.0, 285.0], **read)


def _failed(
    trace: FlowTrace | None = None,
    info: Samples | None = None,
    counters: dict[str, int] | None = None,
    received: int = 2 * _COUNT * MSS,
    complete: bool = True,
) -> dict[str, str]:
    trace = _trace() if trace is None else trace
    flow = trace.flow
    moved = {"TcpExtTCPHystartTrainDetect": 0, "TcpExtTCPHystartTrainCwnd": 0, "TcpRetransSegs": 0}
    moved |= {"TcpExtTCPHystartDelayDetect": 0, "TcpExtTCPHystartDelayCwnd": 0, **(counters or {})}
    readings: list[tuple[float, str | None, str, int]] = [
        (time, flow.sender, name, value)
        for name, grown in moved.items()
        for time, value in ((0.0, 7), (400.0, 7 + grown))
    ]
    row: dict[str, Any] = dict.fromkeys(FLOW.names)
    row |= {"flow": flow.id, "bytes_received_bytes": received, "complete": complete}
    plan = make_plan()
    collect = dataclasses.replace(plan.collect, tcp_probe=True, tcp_info_us=50_000)
    data = Measured(
        plan=dataclasses.replace(plan, flows=[flow], collect=collect),
        traces=[trace],
        info={flow.id: _info() if info is None else info},
        info_receiver={},
        bottleneck=make_info([]),
        counters=make_counters(readings),
        flows=pa.Table.from_pylist([row], schema=FLOW),
    )
    return {check.name: check.message for check in agreement_checks(data) if check.ok is False}


def test_sources_that_agree() -> None:
    assert _failed() == {}
    assert _failed(counters={"TcpExtTCPHystartTrainDetect": 1, "TcpExtTCPHystartTrainCwnd": 20}) == {}
    assert _failed(counters={"TcpRetransSegs": 3}) == {}


@pytest.mark.parametrize(
    ("column", "values", "name", "numbers"),
    [
        (
            "bytes_acked_bytes",
            [MSS * count for count in (4, 10, 45, 30, 38)],
            "bytes of trace and tcp_info",
            [str(MSS * 45)],
        ),
        ("cwnd_packets", [12, 15, 60, 25, 29], "windows of trace and tcp_info", ["60"]),
        ("cwnd_packets", [12, 15, 9, 25, 29], "windows of trace and tcp_info", ["9"]),
        ("ssthresh_packets", [MISSING] * 5, "exits of trace and tcp_info", ["infinite in tcp_info"]),
        ("ssthresh_packets", [20] * 5, "exits of trace and tcp_info", ["20 packets", "infinite in tcp_probe"]),
    ],
)
def test_a_reading_that_the_trace_contradicts(column: str, values: list[int], name: str, numbers: list[str]) -> None:
    failed = _failed(info=_info(**{column: values}))
    assert list(failed) == [name]
    assert all(number in failed[name] for number in [*numbers, "tcp_probe", "tcp_info"])


def test_what_a_timer_cut_before_the_next_ack_is_no_contradiction() -> None:
    """The 10th ACK opened the window to 60, a timeout closed it to 1, and the 11th record shows that."""
    windows = [*_WINDOWS[:10], 1, *range(2, 11)]
    info = _info(cwnd_packets=[12, 15, 60, 5, 9])
    assert _failed(_trace(cwnd=windows), info) == {}


def test_readings_that_no_record_surrounds_say_nothing() -> None:
    """Before the first record a timer may have cut what nobody saw, and what the last ACK did is in no record."""
    info = make_info(
        [50.0, 295.0],
        state=[TCP_ESTABLISHED] * 2,
        cwnd_packets=[60, 99],
        ssthresh_packets=[3, MISSING],
        bytes_acked_bytes=[1, MSS * 99],
        total_retrans_packets=[0, 0],
    )
    assert _failed(info=info) == {}


def test_a_transfer_must_be_traced_to_its_last_byte() -> None:
    size = 2 * _COUNT * MSS
    flow = make_flow(size_bytes=size, traffic="kernel")
    short = dataclasses.replace(_trace(), flow=flow, received_ns=250 * MS)
    failed = _failed(short)
    assert list(failed) == ["bytes of trace and receiver"]
    assert (
        f"{38 * MSS} bytes" in failed["bytes of trace and receiver"]
        and str(size) in failed["bytes of trace and receiver"]
    )
    assert _failed(dataclasses.replace(short, acknowledged_bytes=size)) == {}
    assert _failed(short, complete=False) == {}
    late = dataclasses.replace(flow, stop_us=480_000)  # before an ACK that is delayed by 200 ms
    assert _failed(dataclasses.replace(short, flow=late)) == {}
    assert _failed(dataclasses.replace(short, flow=dataclasses.replace(flow, traffic="iperf3"))) == {}


def test_the_receiver_has_what_was_acknowledged() -> None:
    assert list(_failed(received=10 * MSS)) == ["bytes of trace and receiver"]


def test_an_exit_that_only_hystart_counts() -> None:
    name = f"HyStart's counters and the trace, {make_flow().sender}"
    counted = {"TcpExtTCPHystartDelayDetect": 1, "TcpExtTCPHystartDelayCwnd": 20}
    without = _trace(ssthresh=[np.inf] * _COUNT)
    blind = _info(ssthresh_packets=[MISSING] * 5)
    assert _failed(without, blind) == {}
    assert "windows 20 packets" in _failed(without, blind, counted)[name]
    assert "an exit at 500 packets" in _failed(counters={**counted, "TcpExtTCPHystartDelayCwnd": 500})[name]


def test_more_retransmissions_than_the_host_counts() -> None:
    failed = _failed(info=_info(total_retrans_packets=[0, 0, 2, 5, 9]), counters={"TcpRetransSegs": 4})
    (message,) = failed.values()
    assert "4 retransmissions" in message and "9" in message
