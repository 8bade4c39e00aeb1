# SPDX-License-Identifier: Apache-2.0
"""Captures made by hand to the table ``segment``: whose segments, when, and what their headers say."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.capture import read_packets, tcp_headers
from howdah.ingest.machines import ingest_machines
from howdah.ingest.segment import ingest_segments
from howdah.ingest.source import Context
from howdah.plan.plan import Plan
from howdah.record.clock import ClockRecord, MachineClock
from howdah.record.directory import RunDirectory
from tests.unit.capture_factory import ACK, FIN, SYN, Ends, frame, sack, scale, write_capture
from tests.unit.plan_factory import make_plan
from tests.unit.told_by_agent import told

MS = 1_000_000
MSS = 1448
BASE_NS = 1_700_000_000_000_000_000  # CLOCK_REALTIME when CLOCK_MONOTONIC is 0
EPOCH_NS = 5_000 * MS
THERE: Ends = ("10.1.0.1", 40001, "10.3.0.1", 5001)
BACK: Ends = ("10.3.0.1", 5001, "10.1.0.1", 40001)
NEAR_WRAP = 2**32 - 1000  # sequence number of the sender's SYN
OTHER = 77
CLOCKS = [{"monotonic_ns": at_ns, "realtime_ns": BASE_NS + at_ns} for at_ns in (1000 * MS, 9000 * MS)]


def handshake(sender: int | None = 10, receiver: int | None = 7) -> list[bytes]:
    """SYN and SYN-ACK with these shifts of the window scale; None: without the option."""
    asked, told = (b"" if shift is None else scale(shift) for shift in (sender, receiver))
    return [
        frame(THERE, NEAR_WRAP, flags=SYN, window=64240, options=asked),
        frame(BACK, OTHER, NEAR_WRAP + 1, flags=SYN | ACK, window=65160, options=told),
    ]


def conversation() -> list[bytes]:
    """The second of three segments is lost, and comes after the third; a fourth ends the flow."""
    begin = [NEAR_WRAP + 1 + number * MSS for number in range(4)]
    return [
        *handshake(),
        frame(THERE, begin[0], OTHER + 1, payload_bytes=MSS, window=64),
        frame(BACK, OTHER + 1, begin[1], window=500),
        frame(THERE, begin[2], OTHER + 1, payload_bytes=MSS, window=64),
        frame(BACK, OTHER + 1, begin[1], window=501, options=sack((begin[2], begin[3]))),
        frame(THERE, begin[1], OTHER + 1, payload_bytes=MSS, window=64),
        frame(BACK, OTHER + 1, begin[3], window=502),
        frame(THERE, begin[3], OTHER + 1, flags=ACK | FIN, payload_bytes=100, window=64),
    ]


def context(path: Path, packets: dict[str, list[bytes]], clocks: Any = CLOCKS, **changes: Any) -> Context:
    """A run with these captures, of which each packet comes a millisecond after the one before, from the epoch on."""
    plan = make_plan()
    plan = dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, pcap=list(packets)), **changes)
    directory = RunDirectory(path)
    for place, frames in packets.items():
        timed = [(BASE_NS + EPOCH_NS + number * MS, each) for number, each in enumerate(frames)]
        write_capture(directory.raw / "pcap" / f"{place.replace(':', '-')}.pcap", timed)
    directory.raw.mkdir(parents=True, exist_ok=True)
    (directory.raw / "pcap.json").write_text(json.dumps({"format": 1, "clocks": clocks, "captures": []}))
    return Context(directory, plan, told(flows=[{"id": 1, "source_port": 40001}]), EPOCH_NS)


def rows_of(found: Context) -> list[dict[str, Any]]:
    table, report = ingest_segments(found)["segment"]
    assert report.rows == table.num_rows
    assert report.problems == []
    return list(table.to_pylist())


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_a_conversation_at_the_receiver(tmp_path: Path) -> None:
    rows = rows_of(context(tmp_path, {"r1:r1-eth0": conversation()}))
    assert column(rows, "time_ns") == [number * MS for number in range(9)]
    assert {(row["flow"], row["end"]) for row in rows} == {(1, "receiver")}
    assert column(rows, "sent_by") == ["sender", "receiver"] * 4 + ["sender"]
    assert column(rows, "flags") == [SYN, SYN | ACK, *[ACK] * 6, ACK | FIN]
    assert column(rows, "sequence_bytes") == [0, 0, 0, 0, 2 * MSS, 0, MSS, 0, 3 * MSS], "beyond the wrap, too"
    assert column(rows, "payload_bytes") == [0, 0, MSS, 0, MSS, 0, MSS, 0, 100]
    assert column(rows, "ack_bytes") == [None, 0, 0, MSS, 0, MSS, 0, 3 * MSS, 0]
    windows = [64240, 65160, 64 << 10, 500 << 7, 64 << 10, 501 << 7, 64 << 10, 502 << 7, 64 << 10]
    assert column(rows, "window_bytes") == windows
    assert column(rows, "sack_blocks") == [0, 0, 0, 0, 0, 1, 0, 0, 0]


def test_sack_blocks_are_counted_as_the_data_that_they_name(tmp_path: Path) -> None:
    """Beyond the wrap, below what is acknowledged (a D-SACK), and of another connection none."""
    begin = [NEAR_WRAP + 1 + number * MSS for number in range(9)]
    blocks = sack((begin[0], begin[1]), (begin[4], begin[6]), (begin[7], begin[8]))
    other = frame(("10.9.0.1", 1, "10.3.0.1", 5001), 5, 6, options=sack((1, 2)))
    frames = [*conversation(), other, frame(BACK, OTHER + 1, begin[2], options=blocks)]
    made = ingest_segments(context(tmp_path, {"s1:s1-eth0": frames, "r1:r1-eth0": frames}))
    table, report = made["sack_block"]
    assert (report.rows, table.num_rows) == (8, 8)
    for end in ("sender", "receiver"):
        rows = [row for row in table.to_pylist() if row["end"] == end]
        assert {(row["flow"], row["sent_by"]) for row in rows} == {(1, "receiver")}
        found = [(row["time_ns"] // MS, row["left_edge_bytes"] // MSS, row["right_edge_bytes"] / MSS) for row in rows]
        assert found == [(5, 2, 3), (10, 0, 1), (10, 4, 6), (10, 7, 8)]
    counted = made["segment"][0].to_pylist()
    assert sum(row["sack_blocks"] for row in counted) == table.num_rows


def test_without_sack_blocks_their_table_is_empty(tmp_path: Path) -> None:
    made = ingest_segments(context(tmp_path, {"r1:r1-eth0": handshake()}))
    assert made["sack_block"][0].num_rows == 0


def test_both_ends_are_there_and_the_path_between_is_not(tmp_path: Path) -> None:
    places = {"s1:s1-eth0": conversation()[:3], "left:left-eth1": conversation(), "r1:r1-eth0": conversation()[:2]}
    rows = rows_of(context(tmp_path, places))
    assert [(row["end"], row["time_ns"] // MS) for row in rows] == [
        ("sender", 0),
        ("receiver", 0),
        ("sender", 1),
        ("receiver", 1),
        ("sender", 2),
    ]


@pytest.mark.parametrize(("sender", "receiver"), [(None, 7), (10, None), (None, None)])
def test_a_scale_that_one_end_did_not_offer_holds_for_none(
    tmp_path: Path, sender: int | None, receiver: int | None
) -> None:
    frames = [*handshake(sender, receiver), *conversation()[2:4]]
    assert column(rows_of(context(tmp_path, {"r1:r1-eth0": frames})), "window_bytes") == [64240, 65160, 64, 500]


def test_without_the_handshake_nothing_says_what_a_window_is(tmp_path: Path) -> None:
    rows = rows_of(context(tmp_path, {"r1:r1-eth0": conversation()[2:]}))
    assert column(rows, "window_bytes") == [None] * 7
    assert column(rows, "sequence_bytes")[::2] == [0, 2 * MSS, MSS, 3 * MSS]
    assert column(rows, "ack_bytes")[1::2] == [MSS, MSS, 3 * MSS]


def test_what_is_of_no_flow_is_counted(tmp_path: Path) -> None:
    data = conversation()
    others = [
        frame(("10.1.0.1", 40002, "10.3.0.1", 5001), 5, payload_bytes=10),
        frame(("10.9.0.1", 40001, "10.3.0.1", 5001), 5, payload_bytes=10),
        frame(THERE, 5, protocol=17),
        frame(THERE, 5, fragment=100, payload_bytes=10),
        data[2][:12] + b"\x08\x06" + data[2][14:],
        data[2][:40],
    ]
    table, report = ingest_segments(context(tmp_path, {"r1:r1-eth0": [*others, *data]}))["segment"]
    assert table.num_rows == len(data)
    assert report.counts == {"other_packets": len(others)}


def test_clocks_that_drift_are_followed(tmp_path: Path) -> None:
    clocks = [CLOCKS[0], {"monotonic_ns": 9000 * MS, "realtime_ns": BASE_NS + 9000 * MS + 800_000}]  # 100 ppm
    rows = rows_of(context(tmp_path, {"r1:r1-eth0": conversation()}, clocks))
    assert column(rows, "time_ns")[0] == pytest.approx(-400_000, abs=100), "it gained 400 us by the epoch"
    assert column(rows, "time_ns")[8] == pytest.approx(8 * MS - 400_800, abs=100)


@pytest.mark.parametrize("clocks", [None, [], "noon", [{}, {}]])
def test_captures_whose_clock_is_not_known_become_no_table(tmp_path: Path, clocks: Any) -> None:
    assert ingest_segments(context(tmp_path, {"r1:r1-eth0": conversation()}, clocks)) == {}


def test_a_run_without_captures_has_no_table(tmp_path: Path) -> None:
    assert ingest_segments(context(tmp_path, {})) == {}


def test_a_file_that_is_cut_off_costs_what_it_held(tmp_path: Path) -> None:
    found = context(tmp_path, {"r1:r1-eth0": conversation()})
    file = found.directory.raw / "pcap" / "r1-r1-eth0.pcap"
    file.write_bytes(file.read_bytes()[:-1])
    assert len(rows_of(found)) == 8
    file.unlink()
    assert rows_of(found) == []


def test_a_capture_that_is_not_of_ethernet_gives_no_rows(tmp_path: Path) -> None:
    found = context(tmp_path, {"r1:any": conversation()})
    write_capture(found.directory.raw / "pcap" / "r1-any.pcap", [(BASE_NS, each) for each in conversation()], 276)
    assert rows_of(found) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"", (-1, 0)),
        (b"\x03\x03\x0e", (14, 0)),
        (b"\x03\x03\xff", (255, 0)),
        (b"\x03\x04\x05\x00", (-1, 0)),
        (b"\0\x03\x03\x05", (-1, 0)),
        (b"\1\1\1\x03\x03\x05\x05\x0a" + bytes(8), (5, 1)),
        (b"\x08\x01\x03\x03\x05", (-1, 0)),
        (b"\x08\x00\x03\x03\x05", (-1, 0)),
        (b"\x03\x03\x05\x05\xff", (5, 0)),
        (b"\x05\x1a" + bytes(24) + b"\x05", (-1, 3)),
    ],
)
def test_options(tmp_path: Path, options: bytes, expected: tuple[int, int]) -> None:
    file = tmp_path / "one.pcap"
    write_capture(file, [(1, frame(THERE, 5, options=options))])
    headers = tcp_headers(read_packets(file))
    assert (headers.options.scale.tolist(), headers.options.sack_blocks.tolist()) == ([expected[0]], [expected[1]])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (b"", (-1, 0, 0)),
        (b"\x02\x04\x05\xb4", (1460, 0, 0)),
        (b"\x02\x03\x05\x01", (-1, 0, 0)),
        (b"\x02\x04\x05\xb4\x04\x02\x08\x0a" + bytes(8) + b"\x01\x03\x03\x07", (1460, 1, 1)),
        (b"\x08\x09" + bytes(7) + b"\x04\x03\x00", (-1, 0, 0)),
        (b"\x01\x01\x08\x0a" + bytes(8), (-1, 0, 1)),
    ],
)
def test_options_of_a_syn(tmp_path: Path, options: bytes, expected: tuple[int, int, int]) -> None:
    file = tmp_path / "one.pcap"
    write_capture(file, [(1, frame(THERE, 5, options=options))])
    headers = tcp_headers(read_packets(file))
    read = headers.options
    found = (read.mss_bytes, read.sack_permitted, read.time_stamps)
    assert tuple(each.tolist()[0] for each in found) == expected


def test_of_several_machines_one_may_have_captured(tmp_path: Path) -> None:
    """Machines have clocks of their own, and directories below raw/."""
    plan = make_plan()
    plan = dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, pcap=["r1:r1-eth0"]))
    machines = {}
    for name, pcap in (("one", []), ("other", ["r1:r1-eth0"])):
        raw = context(tmp_path / name, {place: conversation() for place in pcap}).directory.raw
        (tmp_path / "run" / "raw").mkdir(parents=True, exist_ok=True)
        raw.rename(tmp_path / "run" / "raw" / name)
        _part(tmp_path / "run" / "raw" / name, plan, pcap)
        machines[name] = MachineClock(EPOCH_NS - 2 * MS)
    made = ingest_machines(RunDirectory(tmp_path / "run"), plan, ClockRecord(1, machines=machines), ingest_segments)
    table = made["segment"][0]
    assert table["time_ns"].to_pylist() == [number * MS for number in range(2, 11)]
    assert set(table["end"].to_pylist()) == {"receiver"}


def _part(raw: Path, plan: Plan, pcap: list[str]) -> None:
    collect = {**json.loads(plan.to_json())["collect"], "pcap": pcap}
    (raw / "part.json").write_text(json.dumps({"collect": collect, "flows": [{"id": 1}]}))
    (raw / "agent.json").write_text(json.dumps({"flows": []}))
    assert plan.flows[0].id == 1
