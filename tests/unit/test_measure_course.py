# SPDX-License-Identifier: Apache-2.0
"""Growth of a round, early downloads, decision against capacity, the RTT's period, how busy the bottleneck was."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from howdah.measure.capacity import FairCapacity, bdp_packets
from howdah.measure.course import (
    crossing_rows,
    delivery_share,
    dominant_period_rtts,
    download_rows,
    exit_queue_row,
    exponential_growth_s,
    final_cwnd,
    growth_rows,
    packet_throughput,
    round_growth,
)
from howdah.measure.exit import Decision, Exit, find_exit
from howdah.measure.group import transfer_s
from howdah.measure.queue import link_rows, link_utilisation
from howdah.measure.recovery import startup_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.record.agent import FlowRecord
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import flow_record
from tests.unit.trace_factory import MS, MSS, make_flow, make_info, make_measured, make_trace

RTT_MS = 40


def one_ack_a_round(windows: list[int], ssthresh: float | None = None) -> FlowTrace:
    """A flow of one ACK a round, which acknowledges the whole window; ``windows`` are those that follow the ACKs."""
    una, nxt, sent = [], [], 0
    for window in windows:
        una.append(sent)
        sent += window
        nxt.append(sent)
    times = [float(RTT_MS * (index + 1)) for index in range(len(windows))]
    threshold = [math.inf if ssthresh is None else ssthresh] * len(windows)
    return make_trace(times, una, nxt, windows, threshold, flow=make_flow(rtt_us=RTT_MS * 1000))


def exit_at(trace: FlowTrace, record: int) -> Exit:
    return Exit(record, int(trace.time_ns[record]), int(trace.cwnd[record]), int(trace.cwnd[record]), False, False)


def test_doubling_every_round_is_a_growth_of_two() -> None:
    trace = one_ack_a_round([1, 2, 4, 8, 16, 32, 33, 34])
    assert round_growth(trace, exit_at(trace, 6)) == pytest.approx(2.0)
    # Congestion avoidance does not count: rounds that begin before the exit do.
    assert round_growth(trace, exit_at(trace, 4)) == pytest.approx(2.0)


def test_doubling_every_other_round_is_the_root_of_two() -> None:
    trace = one_ack_a_round([10, 10, 20, 20, 40, 40, 80, 80, 160])
    assert round_growth(trace, exit_at(trace, 7)) == pytest.approx(math.sqrt(2))


def test_no_exit_has_no_growth() -> None:
    assert round_growth(one_ack_a_round([1, 2, 4]), None) is None
    assert round_growth(one_ack_a_round([1]), exit_at(one_ack_a_round([1]), 0)) is None


def test_exponential_growth_ends_with_the_first_round_that_grows_less() -> None:
    trace = one_ack_a_round([1, 2, 4, 8, 16, 18, 36, 72])
    assert exponential_growth_s(trace) == pytest.approx(0.2)  # five rounds of 40 ms: from 1 to 16 packets
    assert exponential_growth_s(one_ack_a_round([10, 11, 12])) == 0
    assert exponential_growth_s(one_ack_a_round([10])) is None


def test_the_final_window_is_that_of_the_last_ack_in_time() -> None:
    trace = one_ack_a_round([1, 2, 4, 8])
    assert final_cwnd(trace, 3 * RTT_MS * MS) == 4
    assert final_cwnd(trace, 4 * RTT_MS * MS - 1) == 4
    assert final_cwnd(trace, 1) is None


def test_rows_of_growth_have_units_and_the_share_of_the_bdp() -> None:
    trace = one_ack_a_round([1, 2, 4, 8], 8)
    path = dataclasses.replace(make_plan().path, rate_bits_per_second=20_000_000, frame_bytes=1000)
    sheet = Sheet({})
    growth_rows(sheet, path, FairCapacity(1e6, []), trace, find_exit(trace), 1000 * MS)
    found = {row.metric: row for row in sheet.rows}
    assert found["final_cwnd_packets"].value == 8
    # 20 Mbit/s x 40 ms are 100 packets of 1000 bytes.
    assert found["final_cwnd_bdp"].value == pytest.approx(0.08)
    assert found["round_growth"].value == pytest.approx(2.0)


def test_times_of_downloads_are_those_of_the_acks() -> None:
    trace = one_ack_a_round([35, 70, 140, 280, 560])  # 50 kB, then 152, 355, 760 kB acknowledged
    sheet = Sheet({})
    download_rows(sheet, make_plan().path, trace, 1_000_000.0)
    found = {row.metric: row for row in sheet.rows}
    assert found["time_to_100_kb_s"].value == pytest.approx(2 * RTT_MS / 1000)
    assert found["time_to_1_mb_s"].value is None
    assert "1000000 bytes" in str(found["time_to_1_mb_s"].why)


def test_throughput_in_packets_counts_headers() -> None:
    path = dataclasses.replace(make_plan().path, frame_bytes=1000, mss_bytes=934)
    assert packet_throughput(934_000.0, path) == pytest.approx(1_000_000)
    assert packet_throughput(None, path) is None


def steady(packets_a_round: int, count: int) -> FlowTrace:
    una = [packets_a_round * index for index in range(count)]
    nxt = [value + packets_a_round for value in una]
    times = [float(RTT_MS * (index + 1)) for index in range(count)]
    return make_trace(times, una, nxt, flow=make_flow(rtt_us=RTT_MS * 1000))


def test_the_share_of_the_capacity_at_the_decision() -> None:
    trace = steady(10, 20)
    whole = FairCapacity(20 * MSS * 8 / 0.04, [])  # 20 segments a round trip
    assert delivery_share(trace, whole, 10 * RTT_MS * MS) == pytest.approx(0.5)
    assert delivery_share(trace, whole, 1) is None


def test_the_decision_is_counted_from_the_full_path() -> None:
    """Ten rounds at a tenth of the capacity, then ten at all of it; the decision some rounds after that begins."""
    rates = [2] * 10 + [20] * 10
    una = [0, *np.cumsum(rates).tolist()][:20]
    nxt = [value + 40 for value in una]
    times = [float(RTT_MS * (index + 1)) for index in range(20)]
    trace = make_trace(times, una, nxt, flow=make_flow(rtt_us=RTT_MS * 1000))
    whole = FairCapacity(20 * MSS * 8 / 0.04, [(0, 2000 * MS)])
    sheet = Sheet({})
    crossing_rows(sheet, trace, whole, Decision(int(trace.time_ns[13]), 40, 40), "")
    found = {row.metric: row.value for row in sheet.rows}
    # The ACK of record 10 is the first of a full round: the window that holds it begins one round before.
    assert found["exit_after_capacity_rtts"] == pytest.approx(4.0)
    assert found["exit_delivery_share"] == pytest.approx(1.0)


def test_the_queue_at_the_decision_is_that_of_the_last_reading_before() -> None:
    trace = steady(10, 20)
    columns = {"backlog_bytes": np.array([0, 3000, 9000], dtype=np.int64)}
    readings = Samples(np.array([0, 400, 500], dtype=np.int64) * MS, columns)
    sheet = Sheet({})
    for at_ms in (499, 500):
        exit_queue_row(sheet, trace, readings, Decision(at_ms * MS, 40, 40), "")
    exit_queue_row(sheet, trace, readings, None, "it never left")
    assert [row.value for row in sheet.rows] == [3000, 9000, None]
    assert sheet.rows[-1].why == "it never left"


@pytest.mark.parametrize("period", [2.8, 3.5, 5.0])
def test_the_period_of_a_wave_is_found_in_noise(period: float) -> None:
    generator = np.random.default_rng(7)
    time_ns = np.sort(generator.uniform(0, 100 * RTT_MS * MS, 8000)).astype(np.int64)
    phase = 2 * np.pi * time_ns / (period * RTT_MS * MS)
    rtt_ns = (RTT_MS * MS + 5 * MS * np.sin(phase) + generator.normal(0, 2 * MS, time_ns.size)).astype(np.int64)
    assert dominant_period_rtts(time_ns, rtt_ns, RTT_MS * 1000) == pytest.approx(period, rel=0.03)


def test_a_short_trace_has_no_period() -> None:
    time_ns = np.arange(0, 100 * RTT_MS * MS, MS, dtype=np.int64)
    assert dominant_period_rtts(time_ns[:500], time_ns[:500] % (60 * MS), RTT_MS * 1000) is None
    assert dominant_period_rtts(time_ns[:1], time_ns[:1], RTT_MS * 1000) is None


def queue(times_ms: list[int], sent: list[int]) -> Samples:
    return Samples(np.array(times_ms) * MS, {"sent_bytes": np.array(sent)})


def test_what_left_the_queue_is_shared_out_between_readings() -> None:
    readings = queue([0, 100, 200, 300], [0, 1000, 4000, 4000])
    assert readings.grown("sent_bytes", 0, 300 * MS) == 4000
    assert readings.grown("sent_bytes", 50 * MS, 150 * MS) == 500 + 1500
    assert readings.grown("sent_bytes", 100 * MS, 100 * MS) is None
    assert readings.grown("sent_bytes", 0, 500 * MS) is None, "nothing is known of the last 200 ms"
    assert queue([0], [0]).grown("sent_bytes", 0, 100 * MS) is None


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
