# SPDX-License-Identifier: Apache-2.0
"""Senders with a TCP of their own: what their packets show at each ACK, and where their growth ends."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.ingest.segment import add_own_stacks
from howdah.ingest.source import Context, Made, SourceReport
from howdah.measure.growth import growth_end, in_flight
from howdah.measure.own_stack import filled_share, own_stack_rows, unseen_metrics
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace, columns_of
from howdah.measure.trace import trace_of as trace_in
from howdah.record import table as store
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory
from howdah.record.schema import TABLES
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import make_info, make_measured
from tests.unit.traffic_factory import make_stack

MSS = 1000
MS = 1_000_000
STACK = make_stack("mine", "reno")
ACK = 16


def ours(time_ms: int, begin: int, packets: int = 1) -> list[dict[str, object]]:
    return [
        {"time_ns": time_ms * MS, "sent_by": "sender", "sequence_bytes": (begin + each) * MSS, "payload_bytes": MSS}
        for each in range(packets)
    ]


def theirs(time_ms: int, acked: int, window: int = 100) -> list[dict[str, object]]:
    told = {"time_ns": time_ms * MS, "sent_by": "receiver", "ack_bytes": acked * MSS}
    return [{**told, "window_bytes": window * MSS, "sequence_bytes": 0, "payload_bytes": 0}]


# Two packets, four, four: the third of the second flight is lost, and sent again at 300 ms.
WIRE = [
    *(*ours(0, 0, 2), *theirs(100, 1), *ours(100, 2, 2), *theirs(101, 2), *ours(101, 4, 2)),
    *(*theirs(200, 4), *ours(200, 6, 1), *theirs(201, 4), *ours(300, 4), *theirs(400, 7, 1)),
]


def trace_of(wire: list[dict[str, object]]) -> tuple[FlowTrace, Made]:
    """The wire through ingest, as measures see it."""
    plan = make_plan()
    plan = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], sender_stack=STACK, rtt_us=100_000)])
    rows = [{"flow": 1, "end": "sender", "flags": ACK, "sack_blocks": 0, **row} for row in wire]
    columns = {}
    for field in TABLES["segment"]:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        columns[field.name] = pa.array([row.get(field.name) for row in rows], kind)
    made: Made = {name: (TABLES[name].empty_table(), SourceReport()) for name in ("tcp_probe", "tcp_info")}
    made["segment"] = (store.table_of("segment", columns), SourceReport())
    add_own_stacks(Context(RunDirectory.__new__(RunDirectory), plan, AgentRecord(), 0), made)
    return trace_in(columns_of(made["tcp_probe"][0]), plan.flows[0], {}, MSS), made


def test_each_ack_has_what_was_sent_and_acknowledged_before_it() -> None:
    trace, made = trace_of(WIRE)
    assert (trace.snd_nxt // MSS).tolist() == [2, 4, 6, 7, 7]
    assert (trace.snd_una // MSS).tolist() == [0, 1, 2, 4, 4]
    table = made["tcp_probe"][0]
    assert table["cwnd_packets"].null_count == table["ssthresh_packets"].null_count == len(trace) == 5
    assert made["tcp_probe"][1].counts == {"wire_rows": 5} and made["tcp_probe"][1].rows == 0


def test_what_was_sent_again_is_counted_from_then_on() -> None:
    _, made = trace_of(WIRE)
    info = made["tcp_info"][0].to_pylist()
    again = {row["time_ns"] // MS: row["total_retrans_packets"] for row in info}
    assert {count for time, count in again.items() if time < 400} == {0} and again[400] == 1
    assert {row["cwnd_packets"] for row in info} == {None}


def test_the_growth_ends_with_the_last_round_that_grew() -> None:
    rounds = [2, 4, 8, 8, 8]
    una = np.repeat(np.cumsum([0, *rounds[:-1]]), 1)
    trace = dataclasses.replace(
        trace_of(WIRE)[0],
        time_ns=np.arange(1, 6) * 100 * MS,
        snd_una=una * MSS,
        snd_nxt=(una + np.array(rounds, dtype=np.int64)) * MSS,
        cwnd=np.zeros(5, dtype=np.int64),
        ssthresh=np.full(5, np.inf),
        srtt_ns=np.zeros(5, dtype=np.int64),
    )
    end = growth_end(trace, in_flight(trace))
    assert end is not None
    assert (end.time_ns, end.packets, end.begin, end.following) == (300 * MS, 8.0, 2, 3)
    always = dataclasses.replace(trace, snd_nxt=(una + np.array([2, 4, 8, 16, 32], dtype=np.int64)) * MSS)
    assert growth_end(always, in_flight(always)) is None


def test_the_growth_ends_at_its_peak_where_the_losses_are_not_repaired() -> None:
    trace = dataclasses.replace(
        trace_of(WIRE)[0],
        time_ns=np.array([100, 200, 210, 500]) * MS,
        snd_una=np.array([0, 2, 2, 2]) * MSS,
        snd_nxt=np.array([2, 6, 7, 7]) * MSS,
        cwnd=np.zeros(4, dtype=np.int64),
        ssthresh=np.full(4, np.inf),
        srtt_ns=np.zeros(4, dtype=np.int64),
    )
    end = growth_end(trace, in_flight(trace))
    assert end is not None and (end.time_ns, end.packets) == (210 * MS, 5.0)
    soon = dataclasses.replace(trace, time_ns=np.array([100, 200, 210, 300]) * MS)
    assert growth_end(soon, in_flight(soon)) is None


def test_what_a_sack_reports_is_not_in_flight() -> None:
    """Eight packets out, the first is lost: at each duplicate ACK one more leaves, and as many as before are out."""
    una = np.array([0, 2, 6, *[6] * 8, 22])
    nxt = np.array([2, 6, 14, *range(15, 23), 26])
    trace = dataclasses.replace(
        trace_of(WIRE)[0],
        time_ns=np.array([100, 200, 300, *range(301, 309), 500]) * MS,
        snd_una=una * MSS,
        snd_nxt=nxt * MSS,
        cwnd=np.zeros(12, dtype=np.int64),
        ssthresh=np.full(12, np.inf),
        srtt_ns=np.zeros(12, dtype=np.int64),
    )
    assert trace.packets_out.max() == 16
    assert in_flight(trace).tolist() == [2, 4, 8, 9, 10, *[0] * 6, 4]
    end = growth_end(trace, in_flight(trace))
    assert end is not None and end.packets == 10


def test_a_full_window_counts_for_as_long_as_it_lasts() -> None:
    trace, _ = trace_of(WIRE)
    open_ = np.full(5, 100 * MSS)
    assert filled_share(trace, open_) == 0
    full = open_.copy()
    full[1] = 4 * MSS  # behind the second ACK, of two: six in all, and six were sent until the third
    assert filled_share(trace, full) == pytest.approx(99 / 300)


def test_what_packets_do_not_show_has_no_value_and_the_reason() -> None:
    plan = make_plan()
    plan = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], sender_stack=STACK)])
    sheet = Sheet({}, unseen=unseen_metrics(plan))
    sheet.add(1, "timeouts", 0)
    sheet.add(1, "retransmitted_packets", 3)
    assert [row.value for row in sheet.rows] == [None, 3]
    assert "the stack mine sends" in str(sheet.rows[0].why)
    assert unseen_metrics(make_plan()) == {}


def rows_of(tmp_path: Path, wire: list[dict[str, object]], retransmitted: list[int]) -> dict[str, tuple[Any, Any]]:
    """Values and reasons by metric; tcp_info is read at 0, 150, 250, 350 and 450 ms."""
    trace, made = trace_of(wire)
    directory = RunDirectory(tmp_path)
    directory.tables.mkdir()
    for name in ("segment", "tcp_probe"):
        store.write(directory, name, made[name][0])
    plan = dataclasses.replace(make_plan(), flows=[trace.flow])
    info = make_info([0, 150, 250, 350, 450], total_retrans_packets=retransmitted)
    sheet = Sheet({})
    own_stack_rows(sheet, directory, make_measured([trace], plan=plan, info=info))
    assert {(row.flow, row.algorithm) for row in sheet.rows} <= {(1, trace.flow.algorithm)}
    return {row.metric: (row.value, row.why) for row in sheet.rows}


SYN = {"flags": 2, "time_ns": -100 * MS, "sent_by": "sender", "sequence_bytes": -1, "payload_bytes": 0}
STILL = [
    *(*ours(0, 0, 2), *theirs(100, 2), *ours(100, 2, 4), *theirs(200, 6), *ours(200, 6, 4), *theirs(300, 10)),
    *(*ours(300, 10, 4), *theirs(400, 14)),
]


def test_the_rows_of_a_sender_of_its_own(tmp_path: Path) -> None:
    """Rounds of 2, 4, 4 and 4 packets; the path of 20 Mbit/s and 100 ms holds 250 000 bytes, 165.1 frames."""
    syn = {**SYN, "mss_bytes": 1000, "window_scale_bits": 7, "sack_permitted": True, "time_stamps": False}
    found = rows_of(tmp_path, [syn, *STILL], [0] * 5)
    frames = 250_000 / 1514
    assert found == {
        "sender_options": ("MSS 1000, window scale 7, SACK", None),
        "initial_flight_packets": (2, None),
        "inflight_peak_packets": (4, None),
        "inflight_peak_bdp": (pytest.approx(4 / frames), None),
        "offered_window_filled_share": (0, None),
        "growth_end_s": (0.2, None),
        "growth_end_bdp": (pytest.approx(4 / frames), None),
        "growth_end_cause": ("unknown", None),
    }


@pytest.mark.parametrize(
    ("window", "retransmitted", "cause"),
    [
        (100, [0, 0, 0, 1, 1], "loss"),
        (100, [0, 1, 1, 1, 1], "unknown"),  # before the last round that grew
        (4, [0] * 5, "receive-window"),
        (4, [0, 0, 1, 1, 1], "loss"),
    ],
)
def test_why_the_growth_of_a_sender_of_its_own_ends(
    tmp_path: Path, window: int, retransmitted: list[int], cause: str
) -> None:
    wire = [{**row, "window_bytes": window * MSS} if "window_bytes" in row else row for row in STILL]
    found = rows_of(tmp_path, wire, retransmitted)
    assert found["growth_end_cause"] == (cause, None)
    assert found["offered_window_filled_share"][0] == (1 if window == 4 else 0)


def test_a_sender_of_its_own_that_always_grew_or_was_not_seen(tmp_path: Path) -> None:
    found = rows_of(tmp_path, WIRE, [0, 0, 0, 0, 1])
    assert found["sender_options"] == (None, "the sender's SYN is not in its capture")
    for metric in ("growth_end_s", "growth_end_bdp", "growth_end_cause"):
        assert found[metric] == (None, "what it had in flight grew to the end of the flow")
    (tmp_path / "silent").mkdir()
    for value, why in rows_of(tmp_path / "silent", ours(0, 0, 2), [0] * 5).values():
        assert value is None
        assert "captur" in why or "grew" in why


def test_a_flow_of_a_kernel_has_no_such_rows(tmp_path: Path) -> None:
    sheet = Sheet({})
    own_stack_rows(sheet, RunDirectory(tmp_path), make_measured([], plan=make_plan()))
    trace, _ = trace_of(WIRE)
    plan = dataclasses.replace(make_plan(), flows=[trace.flow])
    own_stack_rows(sheet, RunDirectory(tmp_path), make_measured([trace], plan=plan))
    assert sheet.rows == [], "the second has no capture"
