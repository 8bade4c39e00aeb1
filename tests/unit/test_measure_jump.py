# SPDX-License-Identifier: Apache-2.0
"""Jumps, the opening of a window, large connections and the drop rate, on hand-made traces."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from howdah.measure.capacity import FairCapacity
from howdah.measure.group import group_rows
from howdah.measure.opening import extreme_rows, jump_rows, opening_rows, spread_rtts
from howdah.measure.queue import drop_ratio
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.record.metrics import MetricRow
from tests.unit.event_factory import told
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import told as agent_telling
from tests.unit.trace_factory import MSS, make_flow, make_info, make_measured, make_trace

PATH = make_plan().path
CAPACITY = FairCapacity(PATH.capacity_goodput_bits_per_second, [])
NEEDED = PATH.rate_bits_per_second * make_flow().rtt_us / 8_000_000 / PATH.frame_bytes


def rows_of(sheet: Sheet) -> dict[str, MetricRow]:
    return {row.metric: row for row in sheet.rows}


def test_a_window_opens_at_the_ack_that_makes_it_hold_the_path() -> None:
    enough = int(NEEDED) + 1
    trace = make_trace([40, 80, 120, 160], [0, 10, 30, 70], [10, 30, 70, 150], [10, enough - 1, enough, 2 * enough])
    sheet = Sheet({})
    opening_rows(sheet, trace, PATH, CAPACITY)
    extreme_rows(sheet, trace)
    rows = rows_of(sheet)
    # The record at 120 ms is the state that the ACK at 80 ms left.
    assert rows["window_open_time_s"].value == pytest.approx(0.080)
    assert rows["window_open_sent_bytes"].value == 70 * MSS
    assert rows["least_cwnd_packets"].value == 10
    assert rows["largest_cwnd_packets"].value == 2 * enough


def test_a_window_that_never_opens_says_so() -> None:
    sheet = Sheet({})
    opening_rows(sheet, make_trace([40, 80], [0, 1], [1, 2], [2, 3]), PATH, CAPACITY)
    rows = rows_of(sheet)
    assert rows["window_open_time_s"].value is None
    assert "never" in str(rows["window_open_sent_bytes"].why)


def jumped(events: list[Any], **parts: Any) -> dict[str, MetricRow]:
    """Twenty packets sent at once; the ACK of the first at 40 ms, of each further one a millisecond later."""
    count = 20
    times = [40.0 + step for step in range(count + 1)]
    trace = make_trace(times, list(range(count + 1)), [count] * (count + 1))
    sheet = Sheet({})
    data = dataclasses.replace(make_measured([trace], **parts), events={trace.flow.id: events})
    jump_rows(sheet, data, trace)
    return rows_of(sheet)


def test_a_jump_has_its_size_and_the_time_over_which_it_was_spread() -> None:
    rows = jumped([told(40, "jump-end", "jump-size", quantity=20)])
    assert rows["jump_packets"].value == 20
    # 19 ms from the first ACK to the twentieth, on a path of 40 ms.
    assert rows["jump_spread_rtts"].value == pytest.approx(19 / 40)
    assert "retreat_packets" not in rows


def test_a_jump_of_which_not_all_was_acknowledged_has_no_spread() -> None:
    trace = make_trace([80, 90, 100], [0, 5, 10], [20, 20, 20])
    assert spread_rtts(trace, 10) == pytest.approx(10 / 40)
    for acknowledged in (make_trace([80, 90], [0, 0], [20, 20]), make_trace([80, 90, 100], [0, 5, 9], [20, 20, 20])):
        assert spread_rtts(acknowledged, 10) is None
    assert spread_rtts(make_trace([], [], []), 10) is None


def test_a_retreat_is_compared_with_half_of_what_was_not_retransmitted() -> None:
    events = [
        told(40, "jump-end", "jump-size", quantity=20),
        told(50, "exit", "loss", quantity=6),
        told(90, "retreat", "jump-size", quantity=7),
    ]
    info = make_info([30, 49, 91, 200], total_retrans_packets=[0, 0, 6, 9])
    rows = jumped(events, info=info)
    assert rows["retreat_packets"].value == 7
    assert rows["jump_half_survived_packets"].value == (20 - 6) // 2
    assert rows["jump_spread_rtts"].value is None


def test_flows_without_a_jump_have_no_such_rows() -> None:
    assert jumped([told(50, "exit", "loss")]) == {}


@pytest.mark.parametrize(("done", "tail"), [(19, (None, None)), (20, (19.05, None)), (100, (95.05, 99.01))])
def test_the_tail_of_a_group_takes_connections_that_lie_beyond_it(
    done: int, tail: tuple[float | None, float | None]
) -> None:
    """Completion times of 1, 2, 3 … s: the quantile q of n of them is 1 + q (n - 1)."""
    plan = make_plan()
    flows = [dataclasses.replace(plan.flows[0], id=number, group="web", size_bytes=1) for number in range(1, done + 2)]
    records = [
        {"id": number, "complete": True, "start_ns": 0, "end_ns": number * 10**9, "bytes_received": 1}
        for number in range(1, done + 1)
    ]
    sheet = Sheet({})
    group_rows(sheet, dataclasses.replace(plan, flows=flows), agent_telling(flows=records))
    rows = rows_of(sheet)
    for name, expected in zip(("p95", "p99"), tail, strict=True):
        row = rows[f"completion_time_{name}_s"]
        assert row.value == (None if expected is None else pytest.approx(expected))


def queue(sent: list[int], dropped: list[int]) -> Samples:
    columns = {"sent_packets": np.array(sent, dtype=np.int64), "drops_packets": np.array(dropped, dtype=np.int64)}
    return Samples(np.arange(len(sent), dtype=np.int64), columns)


def test_the_drop_rate_counts_all_that_came() -> None:
    assert drop_ratio(queue([10, 40, 100], [2, 5, 12])) == pytest.approx(10 / 100)
    assert drop_ratio(queue([5], [0])) is None
