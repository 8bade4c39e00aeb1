# SPDX-License-Identifier: Apache-2.0
"""Groups of connections by the agent's record of each, with every number computed by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import RecordError
from howdah.measure.capacity import FairCapacity
from howdah.measure.group import (
    completion_s,
    connection_rows,
    datagram_bits_per_second,
    goodput_bits_per_second,
    group_rows,
    initial_window_bytes,
    is_large,
    traced_ends_ns,
)
from howdah.measure.measured import background_rows, crosses, role_rows
from howdah.measure.row import Sheet
from howdah.plan.plan import Flow, Plan
from howdah.plan.traffic import Exchange
from howdah.record.agent import AgentRecord, FlowRecord
from howdah.record.connections import Connections, read_connections, write_connections
from howdah.record.directory import RunDirectory
from howdah.record.metrics import MetricRow
from tests.unit.path_factory import path_plan
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import flow_record
from tests.unit.trace_factory import MS, MSS, make_flow, make_trace

SIZE = 10 * MSS


def member(number: int = 7, **changes: Any) -> Flow:
    return make_flow(**{"id": number, "name": f"web-{number}", "group": "web", "size_bytes": SIZE, **changes})


def record(**changes: Any) -> FlowRecord:
    """Connected after 40 ms, done after 500 ms, 2 of 20 segments sent again."""
    usual: dict[str, Any] = {
        "start_ns": 1000 * MS,
        "connected_ns": 1040 * MS,
        "end_ns": 1500 * MS,
        "complete": True,
        "bytes_received": SIZE,
        "bytes_sent": SIZE,
        "segments_sent": 20,
        "segments_retransmitted": 2,
    }
    return flow_record(**(usual | changes))


def agent(records: dict[int, FlowRecord]) -> AgentRecord:
    """What the agent tells of flows by their ids."""
    return AgentRecord(flows=[dataclasses.replace(each, id=flow) for flow, each in records.items()])


def connections_of(sheet: Sheet) -> list[MetricRow]:
    return list(Connections(sheet.connections.table()).rows())


def rows_of(sheet: Sheet) -> dict[str, Any]:
    rows = [*sheet.rows, *connections_of(sheet)]
    names = [row.metric for row in rows]
    assert len(names) == len(set(names))
    return {row.metric: row.value for row in rows}


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 0.5),
        ({"bytes_received": SIZE - 1}, None),
        ({"bytes_received": SIZE + 1}, 0.5),
        ({"complete": False}, None),
        ({"end_ns": None}, None),
    ],
)
def test_a_connection_is_complete_with_its_last_byte(changes: dict[str, Any], seconds: float | None) -> None:
    assert completion_s(member(), record(**changes)) == seconds
    assert completion_s(member(size_bytes=None), record()) is None


def test_goodput_is_over_the_time_from_the_start_to_the_last_byte() -> None:
    assert goodput_bits_per_second(record()) == SIZE * 8 / 0.5
    for changes in ({"end_ns": None}, {"start_ns": None}, {"end_ns": 1000 * MS}):
        assert goodput_bits_per_second(record(**changes)) is None
    assert goodput_bits_per_second(flow_record()) is None


def test_the_rows_of_a_connection() -> None:
    flow = member()
    trace = make_trace([1100.0, 1490.0, 1491.0], [0, 0, 10], [10, 10, 10], flow=flow, start_ms=1000)
    sheet = Sheet({})
    connection_rows(sheet, trace, record())
    assert rows_of(sheet) == {
        "completion_time_s": 0.5,
        "transfer_time_s": pytest.approx(0.46),
        "retransmitted_packets": 2,
        "retransmission_ratio": 0.1,
        "goodput_bits_per_second": SIZE * 16,
        "large_completion_time_s": 0.5,
        "large_retransmission_ratio": 0.1,
    }
    assert {(row.flow, row.group, row.algorithm) for row in connections_of(sheet)} == {(7, "web", flow.algorithm)}
    (compared,) = sheet.compared
    assert (compared.flow, compared.sources) == ("web", {"compared": 1, "agree": 1})
    assert compared.agree


def test_rows_of_connections_come_back_from_their_file(tmp_path: Path) -> None:
    sheet = Sheet({}, receivers={7: "windows"})
    connection_rows(sheet, make_trace([], [], [], flow=member()), record(segments_sent=None))
    made = Connections(sheet.connections.table())
    run = RunDirectory(tmp_path)
    write_connections(run, made)
    found = read_connections(run)
    assert list(found.rows()) == list(made.rows())
    assert found.summary() == made.summary() == sheet.plain(made)["connections"]
    assert found.of("completion_time_s", "web").values.tolist() == [0.5]
    assert (found.of("completion_time_s").unit, found.of("completion_time_s", "other").flows) == ("s", [])
    assert {row.receiver for row in found.rows()} == {"windows"}
    other = Sheet({}, receivers={7: "windows"})
    connection_rows(other, make_trace([], [], [], flow=member()), record(end_ns=1501 * MS, segments_sent=None))
    assert Connections(other.connections.table()).summary() != made.summary()
    write_connections(run, Connections(made.table.slice(0, 0)))
    assert not run.connections.exists(), "an older analysis had some"
    assert len(read_connections(run)) == 0
    run.connections.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(RecordError, match="measures of connections cannot be read"):
        read_connections(run)


@pytest.mark.parametrize(("last_ms", "agree"), [(1421.0, True), (1419.0, False), (1579.0, True), (1581.0, False)])
def test_agent_and_trace_agree_within_two_round_trips(last_ms: float, agree: bool) -> None:
    trace = make_trace([1100.0, last_ms, last_ms + 1], [0, 0, 10], [10] * 3, flow=member(), start_ms=1000, srtt_ms=40)
    sheet = Sheet({})
    connection_rows(sheet, trace, record())
    assert [each.agree for each in sheet.compared] == [agree]


def test_a_connection_that_did_nothing_says_why() -> None:
    sheet = Sheet({})
    connection_rows(sheet, make_trace([], [], [], flow=member()), flow_record())
    assert set(rows_of(sheet).values()) == {None}
    why = {row.metric: row.why for row in connections_of(sheet)}
    assert why["completion_time_s"] == f"the connection did not complete its {SIZE} bytes"
    assert why["retransmitted_packets"] == "the agent did not count segments"
    assert why["goodput_bits_per_second"] == "no byte arrived"
    assert sheet.compared == []
    nothing_sent = Sheet({})
    connection_rows(nothing_sent, make_trace([], [], [], flow=member()), record(segments_sent=0))
    assert rows_of(nothing_sent)["retransmission_ratio"] is None


def planned(flows: list[Flow]) -> Plan:
    return dataclasses.replace(make_plan(), flows=flows)


def test_the_rows_of_a_group_are_over_its_members() -> None:
    """Four members: done after 0.5 s, 1 s and 2 s, and one that is not; of the last nothing was counted."""
    flows = [member(number) for number in (1, 2, 3, 4)] + [make_flow(id=9)]
    records = {
        1: record(),
        2: record(end_ns=2000 * MS, segments_retransmitted=0, segments_sent=10),
        3: record(end_ns=3000 * MS, segments_retransmitted=8, segments_sent=20),
        4: record(complete=False, end_ns=2000 * MS, bytes_received=MSS, segments_sent=None),
    }
    sheet = Sheet({})
    group_rows(sheet, planned(flows), agent(records))
    assert {(row.flow, row.group, row.role) for row in sheet.rows} == {(None, "web", "measured")}
    bits = SIZE * 8
    assert rows_of(sheet) == {
        "connections": 4,
        "completed_share": 0.75,
        "completion_time_p10_s": pytest.approx(0.6),
        "completion_time_p25_s": 0.75,
        "completion_time_median_s": 1.0,
        "completion_time_p75_s": 1.5,
        "completion_time_p90_s": pytest.approx(1.8),
        "completion_time_p95_s": None,  # of five connections
        "completion_time_p99_s": None,
        "completion_time_p999_s": None,
        "received_bytes": 3 * SIZE + MSS,
        "connection_goodput_median_bits_per_second": (bits / 2 + bits / 1) / 2,
        "retransmitted_packets": 10,
        "retransmission_ratio": 0.2,
        "retransmission_free_share": pytest.approx(1 / 3),
        "large_connections": 4,
        "large_completion_time_p25_s": 0.75,
        "large_completion_time_median_s": 1.0,
        "large_completion_time_p75_s": 1.5,
        "large_completion_time_p90_s": pytest.approx(1.8),
        "large_within_1_s_share": 0.5,
        "large_retransmission_free_share": pytest.approx(1 / 3),
        "large_retransmission_ratio": 0.2,
        "large_transfer_time_p25_s": pytest.approx(0.71),
        "large_transfer_time_median_s": pytest.approx(0.96),
        "large_transfer_time_p75_s": pytest.approx(1.46),
        "large_transfer_time_p90_s": pytest.approx(1.76),
    }


def test_a_far_quantile_takes_as_many_connections_as_leave_one_beyond_it() -> None:
    """The n-th of them is done after n ms."""
    for count, known in ((999, False), (1000, True)):
        records = {number: record(start_ns=0, end_ns=number * MS) for number in range(1, count + 1)}
        sheet = Sheet({})
        group_rows(sheet, planned([member(number) for number in records]), agent(records))
        found = rows_of(sheet)["completion_time_p999_s"]
        assert found == (pytest.approx(0.999001) if known else None)


def test_a_group_of_which_nothing_is_known_has_no_values_but_counts() -> None:
    sheet = Sheet({})
    group_rows(sheet, planned([member(1), member(2, group="other", role="background", size_bytes=100)]), AgentRecord())
    mine = {row.metric: row for row in sheet.rows if row.group == "web"}
    assert {name: row.value for name, row in mine.items() if row.value is not None} == {
        "connections": 1,
        "completed_share": 0,
        "received_bytes": 0,
        "large_connections": 1,
        "large_within_1_s_share": 0,
    }
    assert mine["retransmission_ratio"].why == "the agent did not count segments of this group"
    assert mine["completion_time_median_s"].why == "no connection of the group was completed"
    other = {row.metric for row in sheet.rows if row.group == "other"}
    assert not [name for name in other if name.startswith("large")], "100 bytes fit the initial window"
    assert {row.role for row in sheet.rows if row.group == "other"} == {"background"}


def test_datagrams_are_delivered_or_not() -> None:
    """1000-byte packets each 8 ms in two bursts, one of which begins before the interval."""
    source = member(
        3, size_bytes=None, datagram_bytes=972, datagram_interval_ns=8 * MS, bursts=[[0, 200_000], [500_000, 600_000]]
    )
    plan = planned([source, make_flow(id=9), dataclasses.replace(source, id=4, direction="reverse")])
    frame_bits = (972 + 28 + plan.path.frame_bytes - plan.path.mtu_bytes) * 8
    sends = (100 + 100) / 8
    assert datagram_bits_per_second(plan, 100 * MS, 1100 * MS) == pytest.approx(sends * frame_bits)
    sheet = Sheet({})
    group_rows(sheet, planned([source]), agent({3: record(bytes_sent=4000, bytes_received=3000)}))
    found = rows_of(sheet)
    assert found["delivered_share"] == 0.75
    assert "retransmission_ratio" not in found
    nothing = Sheet({})
    group_rows(nothing, planned([source]), AgentRecord())
    assert rows_of(nothing)["delivered_share"] is None


@pytest.mark.parametrize(("mss", "window"), [(500, 2000), (1095, 4380), (1448, 4380), (2190, 4380), (3000, 6000)])
def test_the_initial_window_of_rfc_3390(mss: int, window: int) -> None:
    assert initial_window_bytes(mss) == window
    assert is_large(member(size_bytes=window + 1), mss)
    assert not is_large(member(size_bytes=window), mss)
    assert not is_large(member(size_bytes=None), mss)


def exchanged(number: int = 7, requests: int = 3) -> Flow:
    return member(number, exchange=Exchange(SIZE, 300, requests, 0), size_bytes=None)


def asked(*spans_ms: tuple[int, int]) -> FlowRecord:
    return record(transactions=[{"start_ns": begin * MS, "end_ns": end * MS} for begin, end in spans_ms])


def test_transactions_of_a_connection_and_of_its_group() -> None:
    """Answers are acknowledged at 1200, 1500 and 2000 ms; the client has them at once, but for the third."""
    trace = make_trace([1100, 1200, 1500, 2000], [0, 10, 20, 30], [10, 20, 30, 30], flow=exchanged(), start_ms=1000)
    assert traced_ends_ns(trace, 3, SIZE) == [1100 * MS, 1200 * MS, 1500 * MS]
    assert traced_ends_ns(make_trace([], [], []), 3, SIZE) == []
    sheet = Sheet({})
    connection_rows(sheet, trace, asked((1000, 1100), (1100, 1200), (1200, 1590)))
    found = rows_of(sheet)
    assert found["transactions"] == 3
    assert {(row.flow, row.group, row.algorithm) for row in connections_of(sheet)} == {(7, "web", trace.flow.algorithm)}
    assert found["first_transaction_time_s"] == 0.1
    assert found["last_transaction_time_s"] == 0.39
    assert found["transaction_time_median_s"] == 0.1
    (compared,) = (each for each in sheet.compared if each.metric == "transaction_time_s")
    assert not compared.agree
    assert compared.message.endswith("about the end of a transaction: 1 of 1 connections (flow 7)")
    whole = Sheet({})
    group_rows(
        whole, planned([exchanged(1), exchanged(2)]), agent({1: asked((0, 100), (100, 300)), 2: asked((0, 400))})
    )
    over = rows_of(whole)
    assert (over["transactions"], over["answered_share"]) == (3, 0.5)
    assert [over[f"transaction_time_{name}_s"] for name in ("p10", "median", "p90")] == pytest.approx([0.12, 0.2, 0.36])


def test_requests_without_an_answer_are_counted() -> None:
    sheet = Sheet({})
    connection_rows(sheet, make_trace([], [], [], flow=exchanged()), record(complete=False))
    found = rows_of(sheet)
    assert found["transactions"] == 0
    assert found["first_transaction_time_s"] is found["transaction_time_median_s"] is None
    whole = Sheet({})
    group_rows(whole, planned([exchanged(1)]), AgentRecord())
    assert (rows_of(whole)["answered_share"], rows_of(whole)["transaction_time_median_s"]) == (0, None)


def test_background_has_a_goodput_of_its_own_and_shares_the_utilisation() -> None:
    """2 Mbit/s over the whole window of 2 s, of which background has a quarter."""
    mine, other = make_flow(id=1), make_flow(id=2, role="background", name="upload")
    plan = dataclasses.replace(path_plan(), flows=[mine, other], measure_window_us=(0, 2_000_000))
    assert crosses(plan, mine)
    assert not crosses(plan, dataclasses.replace(mine, direction="reverse"))
    measured = make_trace([100, 1900], [0, 30], [30, 30], flow=mine)
    beside = make_trace([100, 1900], [0, 10], [10, 10], flow=other)
    sheet = Sheet({})
    background_rows(sheet, plan, beside)
    (row,) = sheet.rows
    assert (row.flow, row.role, row.metric) == (2, "background", "background_goodput_bits_per_second")
    assert row.value == pytest.approx(10 * MSS * 8 / 2)
    background_rows(empty := Sheet({}), plan, make_trace([], [], [], flow=other))
    assert (empty.rows[0].value, empty.rows[0].role) == (None, "background")
    capacity = FairCapacity(40 * MSS * 8 / 2, [(0, 2000 * MS)], [])
    role_rows(sheet := Sheet({}), plan, [measured, beside], capacity)
    assert rows_of(sheet) == {
        "utilisation_measured": pytest.approx(0.75),
        "utilisation_background": pytest.approx(0.25),
    }
    assert [row.role for row in sheet.rows] == ["measured", "background"]
    role_rows(alone := Sheet({}), dataclasses.replace(plan, flows=[mine]), [measured], capacity)
    assert alone.rows == []
