# SPDX-License-Identifier: Apache-2.0
"""Repair of the first losses, timeouts, blackouts, estimates and the time to a window, on hand-made traces."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.measure.event import estimate_rows
from howdah.measure.opening import reach, reach_rows
from howdah.measure.overshoot import LossEpisode
from howdah.measure.recovery import recovery_rows
from howdah.measure.row import Sheet
from howdah.measure.throughput import blackout_s, silent_spans
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Plan
from howdah.record.metrics import MetricRow
from tests.unit.event_factory import told
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, make_counters, make_flow, make_measured, make_trace

RTT_MS = 40  # of make_flow()
SENDER = make_flow().sender


def rows_of(sheet: Sheet) -> dict[str, MetricRow]:
    return {row.metric: row for row in sheet.rows}


def steady(stop_ms: float = 2000) -> FlowTrace:
    """A window of 10 packets a round trip from 40 ms on, to the end."""
    times = [40.0 * step for step in range(1, int(stop_ms // 40) + 1)]
    una = [10 * step for step in range(len(times))]
    return make_trace(times, una, [first + 10 for first in una], stop_ms=stop_ms)


def recovered(trace: FlowTrace, episode: LossEpisode | None, **parts: Any) -> dict[str, MetricRow]:
    sheet = Sheet({})
    recovery_rows(sheet, make_measured([trace], **parts), trace, episode)
    return rows_of(sheet)


def test_a_repair_lasts_from_the_third_duplicate_to_the_ack_of_all_that_was_out() -> None:
    episode = LossEpisode(400 * MS, 800 * MS, retransmitted=30, dropped=30)
    rows = recovered(steady(), episode)
    assert rows["recovery_s"].value == pytest.approx(0.4)
    # 10 round trips of 40 ms, 30 packets.
    assert rows["repaired_per_rtt_packets"].value == pytest.approx(3)


def test_a_repair_that_is_not_over_lasts_to_the_end_of_the_flow() -> None:
    trace = steady()
    episode = LossEpisode(400 * MS, int(trace.time_ns[-1]), retransmitted=40, dropped=900)
    rows = recovered(trace, episode)
    assert rows["recovery_s"].value == pytest.approx(1.6)
    assert rows["repaired_per_rtt_packets"].value == pytest.approx(1)


def test_without_a_loss_there_is_no_repair_and_the_row_says_so() -> None:
    rows = recovered(steady(), None)
    assert rows["recovery_s"].value is None
    assert rows["recovery_s"].why == "no loss episode"
    unread = recovered(steady(), LossEpisode(400 * MS, 800 * MS, retransmitted=None, dropped=30))
    assert unread["repaired_per_rtt_packets"].value is None
    short = recovered(steady(), LossEpisode(400 * MS, 430 * MS, retransmitted=3, dropped=3))
    assert short["repaired_per_rtt_packets"].value is None


def test_timeouts_are_those_of_the_senders_host_while_the_flow_is_there() -> None:
    name = "TcpExtTCPTimeouts"
    readings = [(-100, SENDER, name, 7), (500, SENDER, name, 7), (900, SENDER, name, 9), (1900, SENDER, name, 10)]
    counters = make_counters([*readings, (900, "elsewhere", name, 99)])
    rows = recovered(steady(), None, counters=counters)
    assert rows["timeouts"].value == 3
    assert rows["first_timeout_s"].value == pytest.approx(0.9)
    calm = recovered(steady(), None, counters=make_counters([(-100, SENDER, name, 7), (1900, SENDER, name, 7)]))
    assert calm["timeouts"].value == 0
    assert calm["first_timeout_s"].value is None
    unread = recovered(steady(), None)
    assert (unread["timeouts"].value, unread["timeouts"].why) == (None, "the counters were not read")


def test_timeouts_of_two_flows_of_one_host_cannot_be_told_apart() -> None:
    one, other = steady(), make_trace([], [], [], flow=make_flow(id=2))
    counters = make_counters([(0, SENDER, "TcpExtTCPTimeouts", 0), (900, SENDER, "TcpExtTCPTimeouts", 2)])
    sheet = Sheet({})
    recovery_rows(sheet, make_measured([one, other], counters=counters), one, None)
    shared = "other flows of this host share its counters"
    told = {row.metric: (row.flow, row.value, row.why) for row in sheet.rows}
    assert told["timeouts"] == told["first_timeout_s"] == (one.flow.id, None, shared)
    assert {row.flow for row in sheet.rows} == {one.flow.id}


def silent(begin: int, end: int, steps: int = 1000) -> FlowTrace:
    """20 Mbit/s (the capacity of make_plan()) but from round ``begin`` to ``end``, and once more for one round."""
    times, una, sent = [], [], 0
    for step in range(1, steps):
        if begin <= step < end or step == end + 20:
            continue
        times.append(40.0 * step)
        una.append(sent)
        sent += 60
    return make_trace(times, una, [first + 60 for first in una], stop_ms=40.0 * (steps - 4))


def test_the_longest_blackout_is_the_longest_stretch_and_not_the_sum() -> None:
    trace = silent(100, 200)
    rows = recovered(trace, None)
    capacity = make_measured([trace]).capacity
    total = blackout_s(trace, capacity)
    spans = silent_spans(trace, capacity)
    assert total is not None and spans is not None
    longest = rows["longest_blackout_s"].number
    assert longest is not None
    assert longest == pytest.approx(100 * RTT_MS / 1000, abs=0.1)
    assert len(spans) == 2
    assert total == pytest.approx(longest + RTT_MS / 1000)
    assert rows["long_blackout"].value == 0


def test_a_blackout_is_long_from_thirty_seconds_on() -> None:
    assert recovered(silent(50, 50 + 760), None)["long_blackout"].value == 1
    assert recovered(silent(50, 50 + 740), None)["long_blackout"].value == 0


def test_a_flow_that_never_got_going_has_no_blackout() -> None:
    trace = make_trace([40, 80, 120], [0, 1, 2], [1, 2, 3])
    assert recovered(trace, None)["longest_blackout_s"].value is None
    assert recovered(make_trace([], [], []), None)["long_blackout"].value is None


def test_the_first_estimate_of_a_rate_is_what_the_module_told() -> None:
    events = [
        told(100, "phase", "queue-estimate", quantity=5, threshold=1),
        told(200, "estimate", "packet-pair", quantity=143_400, threshold=3, ssthresh_packets=1263),
        told(900, "estimate", "packet-pair", quantity=9, threshold=3, ssthresh_packets=7),
    ]
    sheet = Sheet({})
    estimate_rows(sheet, steady(), events)
    rows = rows_of(sheet)
    assert rows["estimated_bits_per_second"].value == 143_400_000
    assert rows["estimated_packets"].value == 1263
    nothing = Sheet({})
    estimate_rows(nothing, steady(), events[:1])
    assert nothing.rows == []


def growing() -> FlowTrace:
    """Connected at 40 ms; the windows 1, 2, 4, 8, one ACK a round from 80 ms on."""
    return make_trace([80, 120, 160, 200], [0, 1, 3, 7], [1, 3, 7, 15], cwnd=[1, 2, 4, 8], connected_ms=40)


def test_a_window_is_reached_by_the_ack_after_which_it_is_there() -> None:
    found = reach(growing(), 4)
    assert found is not None
    assert found.time_s == pytest.approx(0.08)  # the ACK at 120 ms, 80 ms after the connection
    assert found.rounds == 2
    assert reach(growing(), 5) == dataclasses.replace(found, time_s=0.12, rounds=3)
    assert reach(growing(), 9) is None
    assert reach(make_trace([], [], []), 2) is None


def test_a_round_in_the_middle_of_which_the_window_is_reached_counts_whole() -> None:
    trace = make_trace([80, 120, 121, 160], [0, 2, 3, 4], [2, 5, 6, 8], cwnd=[2, 3, 4, 5])
    found = reach(trace, 4)
    assert found is not None
    assert found.rounds == 2


def test_the_window_that_is_looked_for_is_the_plans() -> None:
    sheet = Sheet({})
    reach_rows(sheet, growing(), None)
    assert sheet.rows == []
    reach_rows(sheet, growing(), 100)
    assert rows_of(sheet)["time_to_cwnd_s"].why == "the window never was 100 packets"
    plan = make_plan()
    assert "measure_cwnd_packets" not in plan.to_json()
    asked = dataclasses.replace(plan, measure_cwnd_packets=5000)
    assert Plan.from_json(asked.to_json()) == asked
