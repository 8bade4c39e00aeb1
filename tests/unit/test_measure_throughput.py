# SPDX-License-Identifier: Apache-2.0
"""Goodput and flows of fixed size on hand-made traces: at 20 Mbit/s, 40 ms a full pipe moves 66.05 segments a round."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.measure import throughput
from howdah.measure.capacity import FairCapacity
from howdah.measure.exit import find_exit
from howdah.measure.overshoot import LossEpisode
from howdah.measure.recovery import early_loss_rows, losing_together, startup_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace, columns_of, trace_of
from howdah.record.schema import TCP_PROBE
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_flow, make_info, make_measured, make_trace

# One segment of goodput a millisecond.
CAPACITY = MSS * 8 * 1000.0


def capacity(*spans_ms: tuple[int, int]) -> FairCapacity:
    return FairCapacity(CAPACITY, [(start * MS, stop * MS) for start, stop in spans_ms])


def steady(
    from_ms: int, until_ms: int, per_ms: float = 1.0, silence: tuple[int, int] = (0, 0), stop_ms: int | None = None
) -> FlowTrace:
    """One ACK a millisecond for ``per_ms`` segments; none arrive in ``silence``."""
    times = [time for time in range(from_ms, until_ms + 1) if not silence[0] <= time < silence[1]]
    una = [int(index * per_ms) for index in range(len(times))]
    return make_trace(
        [float(time) for time in times], una, [value + 40 for value in una], stop_ms=stop_ms or until_ms, srtt_ms=40
    )


def test_fair_capacity_is_shared_by_the_flows_active_at_each_instant() -> None:
    shared = capacity((0, 1000), (500, 1000))
    assert shared.fair_bytes(0, 500 * MS) == pytest.approx(500 * MSS)
    assert shared.fair_bytes(500 * MS, 1000 * MS) == pytest.approx(250 * MSS)
    assert shared.fair_bytes(400 * MS, 600 * MS) == pytest.approx(150 * MSS)
    assert shared.whole_bytes(0, 1000 * MS) == pytest.approx(1000 * MSS)


def test_outside_all_flows_the_whole_capacity_counts() -> None:
    alone = capacity((100, 200))
    assert alone.fair_bytes(0, 100 * MS) == pytest.approx(100 * MSS)
    assert alone.fair_bytes(200 * MS, 300 * MS) == pytest.approx(100 * MSS)
    assert FairCapacity(CAPACITY, []).fair_bytes(0, MS) == pytest.approx(MSS)


def test_time_to_90_percent_is_the_start_of_the_first_full_window() -> None:
    # Half the capacity until 400 ms, all of it afterwards. A window of 40 ms from t holds 20 + (t + 40 - 400) / 2 above
    # half while it straddles: 36 segments are first reached by the window that begins at 392 ms.
    slow = [float(time) for time in range(400)]
    fast = [float(time) for time in range(400, 1000)]
    una = [int(time / 2) for time in slow] + [200 + int(time) - 400 for time in fast]
    trace = make_trace(slow + fast, una, [value + 40 for value in una], stop_ms=1000)
    assert throughput.time_to_share_s(trace, capacity((0, 1000))) == pytest.approx(0.392, abs=0.003)
    assert throughput.time_to_share_s(trace, capacity((0, 1000)), share=0.45) == pytest.approx(0.0, abs=0.002)


def test_the_window_is_the_rtt_in_effect_not_the_bare_one() -> None:
    """With 80 ms of RTT a flight comes in bursts of 40 ms; a window of 40 ms would call every burst full speed."""
    times = [float(time) for cycle in range(0, 800, 80) for time in range(cycle, cycle + 40)]
    una = list(range(len(times)))
    trace = make_trace(times, una, [value + 40 for value in una], srtt_ms=80, stop_ms=800)
    assert throughput.time_to_share_s(trace, capacity((0, 800))) is None
    assert throughput.blackout_s(trace, capacity((0, 800))) == 0


def test_a_flow_that_never_gets_there_has_no_time() -> None:
    half = steady(40, 1000, per_ms=0.5)
    assert throughput.time_to_share_s(half, capacity((0, 1000))) is None
    # Half the capacity is all of a fair share of two flows.
    assert throughput.time_to_share_s(half, capacity((0, 1000), (0, 1000))) is not None
    assert throughput.time_to_share_s(make_trace([], [], []), capacity((0, 1000))) is None


def test_blackouts_are_windows_without_goodput() -> None:
    assert throughput.blackout_s(steady(40, 1000), capacity((0, 1000))) == 0
    # Windows begin at 40 ms and every 40 ms; 10 of them lie in the silence from 200 to 601 ms.
    assert throughput.blackout_s(steady(40, 1000, silence=(200, 601)), capacity((0, 1000))) == pytest.approx(0.4)


def test_the_end_of_the_flow_ends_the_blackout() -> None:
    stopped = steady(40, 400, stop_ms=400)
    assert throughput.blackout_s(stopped, capacity((0, 1000))) == 0
    silent = steady(40, 400, stop_ms=1000)
    # The last ACK comes at 400 ms; 14 whole windows of 40 ms lie between 440 and 1000 ms.
    assert throughput.blackout_s(silent, capacity((0, 1000))) == pytest.approx(14 * 0.04, abs=0.041)


def test_a_flow_that_never_got_going_has_no_blackouts_to_tell() -> None:
    slow = make_trace([40, 80, 120, 160], una=[0, 0, 0, 0], nxt=[1, 1, 1, 1], stop_ms=400)
    assert throughput.blackout_s(slow, capacity((0, 1000))) is None
    assert throughput.blackout_s(make_trace([], [], []), capacity((0, 1000))) is None


def test_the_ramp_is_no_blackout() -> None:
    """One segment every second window of 40 ms, then full speed: the empty windows at the beginning do not count."""
    ramp = [40.0 + 80 * index for index in range(5)]
    fast = [float(time) for time in range(440, 1000)]
    una = list(range(5)) + [5 + index for index in range(len(fast))]
    trace = make_trace(ramp + fast, una, [value + 40 for value in una], stop_ms=1000)
    assert throughput.blackout_s(trace, capacity((0, 1000))) == 0


def test_goodput_and_utilisation_count_acknowledged_bytes() -> None:
    trace = steady(0, 1000)
    assert throughput.goodput_bits_per_second(trace, 100 * MS, 600 * MS) == pytest.approx(CAPACITY)
    assert throughput.goodput_bits_per_second(trace, 5, 5) is None
    half = steady(0, 1000, per_ms=0.5)
    assert throughput.utilisation([half, half], capacity((0, 1000)), 100 * MS, 600 * MS) == pytest.approx(1.0)
    assert throughput.utilisation([half], capacity((0, 1000)), 100 * MS, 600 * MS) == pytest.approx(0.5)
    assert throughput.utilisation([half], capacity((0, 1000)), 600 * MS, 600 * MS) is None


def test_completion_is_the_ack_of_the_last_byte() -> None:
    trace = make_trace([140, 180, 220, 260], una=[0, 10, 30, 70], nxt=[10, 30, 70, 70], start_ms=100)
    assert throughput.completion_time_s(trace, 70 * MSS) == pytest.approx(0.12)
    assert throughput.completion_time_s(trace, 71 * MSS) is None
    assert throughput.completion_time_s(make_trace([], [], []), 1) is None


@pytest.mark.parametrize(
    ("shares", "index"),
    [
        ([1.0, 1.0], 1.0),
        ([1.0, 0.0], 0.5),
        ([3.0, 1.0], 0.8),
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([5.0], None),
        ([0.0, 0.0], None),
    ],
)
def test_jain_index(shares: list[float], index: float | None) -> None:
    found = throughput.jain_index(shares)
    assert found is None if index is None else found == pytest.approx(index)


def test_the_common_span_is_when_all_are_active() -> None:
    first = make_trace([40], [0], [1], start_ms=0, stop_ms=1000)
    second = make_trace([540], [0], [1], start_ms=500, stop_ms=800)
    third = make_trace([940], [0], [1], start_ms=900, stop_ms=1000)
    assert throughput.common_span_ns([first, second]) == (500 * MS, 800 * MS)
    assert throughput.common_span_ns([second, third]) is None


_SIZE = 10 * MSS
_RECEIVED_NS = 30 * MS


def trace(times_ms: list[int], una: list[int], nxt: list[int], *, complete: bool = True, **changes: Any) -> FlowTrace:
    flow = make_flow(**{"size_bytes": _SIZE, "stop_us": 1_000_000, **changes})
    columns = {
        "flow": [flow.id] * len(times_ms),
        "time_ns": [time * MS for time in times_ms],
        "snd_una_bytes": [count * MSS for count in una],
        "snd_nxt_bytes": [count * MSS for count in nxt],
        "cwnd_packets": [10] * len(times_ms),
        "srtt_us": [40_000] * len(times_ms),
    }
    rows = {name: columns.get(name, [None] * len(times_ms)) for name in TCP_PROBE.names}
    table = pa.table(rows, schema=TCP_PROBE)
    record: dict[str, int | None] = {"start_ns": 0, "connected_ns": 0, "end_ns": _RECEIVED_NS, "complete": complete}
    return trace_of(columns_of(table), flow, record, MSS)


def test_it_ends_with_the_ack_of_its_last_byte() -> None:
    """The record of that ACK is the state before it."""
    whole = trace([10, 20, 50], [0, 4, 7], [7, 10, 10])
    assert (whole.received_ns, whole.stop_ns) == (_RECEIVED_NS, 50 * MS)
    assert list(whole.una_after) == [4 * MSS, 7 * MSS, _SIZE]
    assert throughput.completion_time_s(whole, _SIZE) == pytest.approx(0.05)


def test_its_goodput_is_its_size_over_the_time_until_it_is_received() -> None:
    whole = trace([10, 20, 50], [0, 4, 7], [7, 10, 10])
    for end_ns in (_RECEIVED_NS, 50 * MS, 900 * MS):
        assert throughput.flow_goodput_bits_per_second(whole, 0, end_ns) == pytest.approx(8 * _SIZE / 0.03)
    # After 10 ms four of them are acknowledged; before the end nobody knows what is received.
    assert throughput.flow_goodput_bits_per_second(whole, 10 * MS, 900 * MS) == pytest.approx(8 * 6 * MSS / 0.02)
    assert throughput.flow_goodput_bits_per_second(whole, 0, 20 * MS) == pytest.approx(8 * 7 * MSS / 0.02)


@pytest.mark.parametrize(
    ("what", "early"),
    [
        ("its sender closed before the last ACK", trace([10, 20], [0, 4], [7, 10])),
        ("not all of it was sent when the trace ends", trace([10, 20, 50], [0, 4, 7], [7, 8, 9])),
        ("another program may close early", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], traffic="iperf3")),
        ("it is not complete", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], complete=False)),
        ("it has no size", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], size_bytes=None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_last_ack_did_is_not_guessed(what: str, early: FlowTrace) -> None:
    assert early.acknowledged_bytes is None, what
    assert early.una_after[-1] == early.snd_una[-1]
    assert np.all(early.una_after < _SIZE)


def one_ack_a_round(rounds: int = 8) -> FlowTrace:
    """Record k at 40 (k + 1) ms begins round k; slow start is left at record 2."""
    out = [10, 20, 40, 60, 50, 40, 40, 40][:rounds]
    una, nxt, sent = [], [], 0
    for packets in out:
        una.append(sent)
        sent += packets
        nxt.append(sent)
    threshold = [math.inf, math.inf, *[28.0] * (rounds - 2)]
    return make_trace([40.0 * (index + 1) for index in range(rounds)], una, nxt, cwnd=out, ssthresh=threshold)


def duplicates_at(time_ms: float, number: int, role: str = "measured") -> FlowTrace:
    """Three duplicate ACKs, the first at ``time_ms``."""
    return make_trace(
        [time_ms - 40, time_ms, time_ms + 1, time_ms + 2, time_ms + 3, time_ms + 60],
        una=[0, 20, 20, 20, 20, 60],
        nxt=[40, 60, 60, 60, 60, 64],
        flow=make_flow(id=number, role=role),
    )


def test_only_what_is_sent_again_until_two_rounds_after_the_exit_counts() -> None:
    """The exit is at record 2 (120 ms), the start-up ends with record 5 (240 ms); the reading after that is at 250."""
    trace = one_ack_a_round()
    info = make_info([0, 100, 200, 250, 300, 400], total_retrans_packets=[0, 0, 3, 5, 40, 90])
    assert startup_retransmitted(trace, info, find_exit(trace)) == 5
    assert startup_retransmitted(trace, info, None) == 90
    assert startup_retransmitted(trace, make_info([]), None) is None
    assert startup_retransmitted(make_trace([], [], []), info, None) is None


def test_flows_that_notice_a_loss_in_the_same_overflow_lose_together() -> None:
    episode = LossEpisode(500 * MS, 600 * MS, 10, 10)
    trace = duplicates_at(498, 1)
    others = [duplicates_at(time, number) for number, time in enumerate([300, 420, 550, 700], start=2)]
    # 40 ms of RTT and 50 ms of buffer before the episode: from 410 ms on.
    assert losing_together(trace, episode, others, 50 * MS) == 2
    assert losing_together(trace, episode, others, 0) == 1
    ended = dataclasses.replace(others[2], stop_ns=450 * MS)
    assert losing_together(trace, episode, [ended], 0) == 0


def test_each_role_is_counted_apart_and_only_where_there_is_one() -> None:
    traces = [duplicates_at(498, 1), duplicates_at(510, 2), duplicates_at(520, 3), duplicates_at(900, 4)]
    plan = dataclasses.replace(make_plan(), flows=[trace.flow for trace in traces])
    data = make_measured(traces, plan=plan)
    sheet = Sheet({})
    early_loss_rows(sheet, data, traces[0], None, LossEpisode(500 * MS, 600 * MS, 1, 1), 0)
    values = {row.metric: row.value for row in sheet.rows}
    assert values == {"startup_retransmitted_packets": None, "synchronous_losses_measured": 2}
    quiet = Sheet({})
    early_loss_rows(quiet, data, traces[0], None, None, 0)
    assert quiet.rows[1].value is None
    assert quiet.rows[1].why == "no loss episode"
