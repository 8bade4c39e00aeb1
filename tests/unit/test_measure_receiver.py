# SPDX-License-Identifier: Apache-2.0
"""What a receiver did, from segments made by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.measure.receiver import receiver_rows
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import SEGMENT
from howdah.record.table import axes_of
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_measured, make_trace

SYN, ACK = 2, 16
# (time in ms, what): data by their number, or of an ACK the data acknowledged, its window in segments, its SACK blocks.
Data = tuple[float, int]
Ack = tuple[float, int, int, int]
# The fifth of eight segments is lost, and the seventh and eighth come before it comes again.
CONVERSATION: list[Data | Ack] = [
    (20, 0),
    (20, 1, 30, 0),
    (21, 1),
    (23, 2),
    (23, 3, 40, 0),
    (24, 3),
    (25, 5),
    (25, 4, 50, 1),
    (26, 7),
    (26, 4, 50, 2),
    (60, 4),
    (60, 6, 70, 1),
    (70, 6),
    (70, 8, 90, 0),
    (80, 8, 90, 0),
]
BDP_PACKETS = 20_000_000 * 0.04 / 8 / 1514


def row(time_ms: float, **columns: Any) -> dict[str, Any]:
    usual = {"flow": 1, "end": "receiver", "time_ns": round(time_ms * MS), "flags": ACK, "sequence_bytes": 0}
    absent = {"mss_bytes": None, "window_scale_bits": None, "sack_permitted": False, "time_stamps": False}
    return {**usual, **absent, "payload_bytes": 0, "ack_bytes": 0, "window_bytes": 0, "sack_blocks": 0, **columns}


def segments(conversation: list[Data | Ack]) -> list[dict[str, Any]]:
    rows = [
        row(0, sent_by="sender", flags=SYN, ack_bytes=None, window_bytes=64240),
        row(
            0,
            sent_by="receiver",
            flags=SYN | ACK,
            window_bytes=65160,
            mss_bytes=1460,
            window_scale_bits=7,
            time_stamps=True,
        ),
    ]
    for time_ms, number, *ack in conversation:
        if ack:
            told = {"ack_bytes": number * MSS, "window_bytes": ack[0] * MSS, "sack_blocks": ack[1]}
            rows.append(row(time_ms, sent_by="receiver", **told))
        else:
            rows.append(row(time_ms, sent_by="sender", sequence_bytes=number * MSS, payload_bytes=MSS))
    return rows


def measured(
    path: Path,
    rows: list[dict[str, Any]] | None,
    *,
    pcap: tuple[str, ...] = ("r1:r1-eth0",),
    trace: FlowTrace | None = None,
    info: Any = None,
    **changes: Any,
) -> dict[str, Any]:
    """Values of the rows of metrics.json by name, of a run with these rows in its table; None: without the table."""
    plan = make_plan()
    collect = dataclasses.replace(plan.collect, pcap=list(pcap))
    plan = dataclasses.replace(plan, collect=collect, flows=[dataclasses.replace(plan.flows[0], **changes)])
    directory = RunDirectory(path)
    if rows is not None:
        columns = {name: [each[name] for each in rows] for name in SEGMENT.names}
        store.write(directory, "segment", store.table_of("segment", columns), axes_of(plan, None))
    trace = dataclasses.replace(trace or make_trace([], [], []), flow=plan.flows[0])
    sheet = Sheet({})
    receiver_rows(sheet, directory, make_measured([trace], plan=plan, info=info))
    assert all(each.flow == 1 for each in sheet.rows)
    return {each.metric: each.value for each in sheet.rows}


def test_how_it_acknowledged(tmp_path: Path) -> None:
    found = measured(tmp_path, segments(CONVERSATION))
    # Nothing is missing at the first two ACKs and the last two: they come after 1, 2, 1 and no segments.
    assert found["acks_sent_packets"] == 7
    assert found["segments_per_ack"] == 1.0
    assert found["most_segments_per_ack"] == 2
    shares = [found[f"acks_of_{name}_share"] for name in ("none", "one", "two", "3_to_8", "more")]
    assert shares == [0.25, 0.5, 0.25, 0, 0]
    # Segments 0 to 3 come in order: acknowledged after 0, 2, 0 and 1 ms, the last with the report of a hole.
    assert found["ack_delay_median_us"] == 500
    assert found["ack_delay_p95_us"] == pytest.approx(1850)
    assert found["ack_delay_most_us"] == 2000


def test_what_it_reported_of_holes(tmp_path: Path) -> None:
    found = measured(tmp_path, segments(CONVERSATION))
    assert found["sack_blocks_per_ack"] == pytest.approx(4 / 3)
    assert found["most_sack_blocks"] == 2
    # Two holes: segment 4, told of at 25 ms and passed at 60 ms; segment 6, from 26 to 70 ms.
    assert found["holes"] == 2
    assert found["hole_repair_median_s"] == pytest.approx(0.0395)
    assert found["hole_repair_most_s"] == pytest.approx(0.044)


def test_the_window_it_offered(tmp_path: Path) -> None:
    # Slow start ends at 62 ms. Windows of 10, 20 and 40 segments at 15, 18 and 50 ms need offers of 20, 40 and 80.
    # These come at 20, 23 and 70 ms: the last one after slow start, which counts until its end.
    trace = make_trace([15, 18, 50, 62, 80], [0, 1, 2, 3, 4], [9] * 5, [5, 10, 20, 40, 40], [99, 99, 99, 99, 40])
    found = measured(tmp_path, segments(CONVERSATION), trace=trace)
    assert found["offered_window_least_bdp"] == pytest.approx(30 / BDP_PACKETS)
    assert found["offered_window_most_bdp"] == pytest.approx(90 / BDP_PACKETS)
    assert found["offered_window_bdp_time_s"] == pytest.approx(0.06)
    assert found["autotuning_lag_s"] == pytest.approx(0.012)


def test_options_are_those_of_its_own_syn(tmp_path: Path) -> None:
    rows = segments(CONVERSATION)
    assert measured(tmp_path / "some", rows)["receiver_options"] == "MSS 1460, window scale 7, time stamps"
    rows[1] |= {"mss_bytes": None, "window_scale_bits": None, "sack_permitted": True, "time_stamps": True}
    assert measured(tmp_path / "others", rows)["receiver_options"] == "SACK, time stamps"
    rows[1] |= {"sack_permitted": False, "time_stamps": False}
    assert measured(tmp_path / "none", rows)["receiver_options"] == "none"
    assert measured(tmp_path / "gone", [rows[0], *rows[2:]])["receiver_options"] is None


def test_without_time_stamps_a_segment_is_larger(tmp_path: Path) -> None:
    """Else each would count as two that a device has joined."""
    rows = segments([(20, 0), (20, 1, 50, 0), (30, 1), (31, 2, 50, 0)])
    for row in rows:
        row["payload_bytes"] = row["payload_bytes"] and MSS + 12
    assert measured(tmp_path / "joined", rows)["segments_per_ack"] == 2
    rows[1]["time_stamps"] = False
    assert measured(tmp_path / "larger", rows)["segments_per_ack"] == 1


def test_growth_of_the_window_is_over_that_of_the_first_ack(tmp_path: Path) -> None:
    assert measured(tmp_path / "grows", segments(CONVERSATION))["offered_window_growth"] == pytest.approx(90 / 30)
    fixed = segments([(20, 0), (20, 1, 50, 0), (30, 1), (31, 2, 50, 0)])
    assert measured(tmp_path / "fixed", fixed)["offered_window_growth"] == 1


def test_a_window_that_is_large_enough_has_no_lag(tmp_path: Path) -> None:
    trace = make_trace([30, 40, 50], [0, 1, 2], [9] * 3, [5, 10, 20])
    found = measured(tmp_path, segments([(20, 0), (20, 1, 50, 0)]), trace=trace)
    assert found["autotuning_lag_s"] == 0
    assert found["offered_window_bdp_time_s"] is None
    assert found["sack_blocks_per_ack"] is None
    assert (found["holes"], found["hole_repair_most_s"]) == (0, None)


def test_segments_that_a_device_joined_count_as_many(tmp_path: Path) -> None:
    rows = segments([(20, 0), (20, 12, 30, 0)])
    rows[2]["payload_bytes"] = 11 * MSS + 1
    found = measured(tmp_path, rows)
    assert (found["segments_per_ack"], found["acks_of_more_share"]) == (12, 1)


def test_a_window_whose_scale_is_not_known_is_no_measure(tmp_path: Path) -> None:
    found = measured(tmp_path, [{**each, "window_bytes": None} for each in segments(CONVERSATION)])
    names = ("offered_window_least_bdp", "offered_window_most_bdp", "offered_window_bdp_time_s", "autotuning_lag_s")
    assert [found[name] for name in names] == [None] * 4
    assert found["segments_per_ack"] == 1.0


def test_a_receiver_that_said_nothing_has_no_measures(tmp_path: Path) -> None:
    found = measured(tmp_path, segments([(20, 0), (21, 1)]))
    there = {name: value for name, value in found.items() if value is not None}
    assert there == {"acks_sent_packets": 0, "holes": 0, "receiver_options": "MSS 1460, window scale 7, time stamps"}
    assert measured(tmp_path / "nothing", segments([]))["acks_sent_packets"] == 0


@pytest.mark.parametrize(
    "changes",
    [{"role": "background"}, {"group": "web"}, {"datagram_bytes": 100}, {"receiver": "r2"}],
    ids=lambda changes: next(iter(changes)),
)
def test_flows_that_are_not_measured_there_have_no_rows(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert measured(tmp_path, segments(CONVERSATION), **changes) == {}


def test_without_captures_there_are_no_rows(tmp_path: Path) -> None:
    assert measured(tmp_path, segments(CONVERSATION), pcap=()) == {}
    assert measured(tmp_path / "older", None) == {}, "of a version that made no table of captures"


def test_a_flow_of_its_own_behaviour_says_so() -> None:
    sheet = Sheet({"receiver": "windows-xp"}, {1: "freebsd-7"})
    for flow in (0, 1, None):
        sheet.add(flow, "retransmitted_packets", 3)
    assert [row.plain(sheet.common)["receiver"] for row in sheet.rows] == ["windows-xp", "freebsd-7", "windows-xp"]
