# SPDX-License-Identifier: Apache-2.0
"""How busy the bottleneck was, the BDP of a moment, and times without the handshake, on hand-made traces."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from howdah.measure.capacity import FairCapacity, bdp_packets
from howdah.measure.course import exponential_growth_s
from howdah.measure.group import transfer_rows, transfer_s
from howdah.measure.queue import link_rows, link_utilisation, sent_bytes
from howdah.measure.recovery import startup_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.record.agent import FlowRecord
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import flow_record
from tests.unit.trace_factory import MS, make_flow, make_info, make_measured, make_trace


def queue(times_ms: list[int], sent: list[int]) -> Samples:
    return Samples(np.array(times_ms) * MS, {"sent_bytes": np.array(sent)})


def test_what_left_the_queue_is_shared_out_between_readings() -> None:
    readings = queue([0, 100, 200, 300], [0, 1000, 4000, 4000])
    assert sent_bytes(readings, 0, 300 * MS) == 4000
    assert sent_bytes(readings, 50 * MS, 150 * MS) == 500 + 1500
    assert sent_bytes(readings, 100 * MS, 100 * MS) is None
    assert sent_bytes(readings, 0, 500 * MS) is None, "nothing is known of the last 200 ms"
    assert sent_bytes(queue([0], [0]), 0, 100 * MS) is None


def test_a_link_that_is_full_of_retransmissions_is_busy() -> None:
    """Nothing is acknowledged, and the queue sends at the rate of the link."""
    plan = dataclasses.replace(make_plan(), measure_window_us=(0, 1_000_000))
    rate = plan.path.rate_bits_per_second
    full = queue([0, 500, 1000], [0, rate // 16, rate // 8])
    data = make_measured([make_trace([], [], [])], plan=plan, queue=full)
    assert link_utilisation(data, 0, 1000 * MS) == pytest.approx(1.0, abs=1e-6)
    sheet = Sheet({})
    link_rows(sheet, data)
    assert {row.metric: row.value for row in sheet.rows} == pytest.approx({"link_utilisation": 1.0}, abs=1e-6)


def test_the_rate_of_the_link_is_that_of_the_moment() -> None:
    """From half a second on the link has a quarter of its rate: as much is then all it can send."""
    base = make_plan()
    rate = base.path.rate_bits_per_second
    path = dataclasses.replace(base.path, rate_steps=[[500_000, rate // 4]])
    sent = queue([0, 500, 1000], [0, rate // 16, rate // 16 + rate // 64])
    data = make_measured([make_trace([], [], [])], plan=dataclasses.replace(base, path=path), queue=sent)
    assert link_utilisation(data, 0, 1000 * MS) == pytest.approx(1.0, abs=1e-6)


def test_the_bdp_of_a_moment_is_what_the_link_could_carry_in_the_round_trip_before_it() -> None:
    path = dataclasses.replace(make_plan().path, mss_bytes=1000, rate_steps=[[500_000, 4_000_000]])
    flow = make_flow(rtt_us=100_000)
    # 8 Mbit/s of goodput are 1000 bytes a millisecond; from 500 ms on half of that.
    capacity = FairCapacity(8e6, [], [(500 * MS, 4e6)])
    moments = bdp_packets(capacity, flow, path, np.array([400, 550, 700]) * MS)
    assert moments == pytest.approx([100, 75, 50])


def test_a_lost_syn_is_no_retransmission_of_the_start_up() -> None:
    trace = make_trace([1100.0, 1140.0], [0, 10], [10, 30], start_ms=0, connected_ms=1050)
    info = make_info([0, 500, 1000, 1200, 2000], total_retrans_packets=[0, 0, 1, 1, 4])
    assert startup_retransmitted(trace, info, None) == 3


def test_no_window_grows_in_a_handshake() -> None:
    windows, times = [1, 2, 4, 8, 16, 18], [440.0 + 40 * index for index in range(6)]
    una, nxt, sent = [], [], 0
    for window in windows:
        una.append(sent)
        sent += window
        nxt.append(sent)
    trace = make_trace(times, una, nxt, cwnd=windows, connected_ms=400)
    unknown = dataclasses.replace(trace, connected_ns=None)
    found, from_start = exponential_growth_s(trace), exponential_growth_s(unknown)
    assert found is not None
    assert from_start is not None
    assert from_start - found == pytest.approx(0.4)


def record(end_ms: float, connected_ms: float | None, **changes: Any) -> FlowRecord:
    connected = None if connected_ms is None else int(connected_ms * MS)
    found = {"start_ns": 0, "connected_ns": connected, "end_ns": int(end_ms * MS), "complete": True}
    return flow_record(**{**found, "bytes_received": 100_000, **changes})


def test_a_transfer_takes_the_handshake_less() -> None:
    flow = make_flow(size_bytes=100_000)
    assert transfer_s(flow, record(300, 96)) == pytest.approx(0.204)
    assert transfer_s(flow, record(300, None)) is None
    assert transfer_s(flow, record(300, 96, complete=False)) is None
    sheet = Sheet({})
    transfer_rows(sheet, "web", flow, [0.1, 0.2, 0.3, None])
    values = {row.metric: row.value for row in sheet.rows}
    assert values["large_transfer_time_median_s"] == pytest.approx(0.2)
    assert values["large_transfer_time_p25_s"] == pytest.approx(0.15)
    transfer_rows(empty := Sheet({}), "web", flow, [])
    assert not empty.rows
