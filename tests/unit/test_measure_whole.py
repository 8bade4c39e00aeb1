# SPDX-License-Identifier: Apache-2.0
"""A flow of fixed size, measured to the ACK of its last byte: ten segments, the last of which arrive at 30 ms."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.measure import throughput
from howdah.measure.exit import find_exit
from howdah.measure.overshoot import LossEpisode
from howdah.measure.recovery import early_loss_rows, losing_together, startup_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace, columns_of, trace_of
from howdah.record.schema import TCP_PROBE
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_flow, make_info, make_measured, make_trace

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
