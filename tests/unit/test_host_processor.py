# SPDX-License-Identifier: Apache-2.0
"""The processors of hosts, from readings made by hand: measures, checks, series, and the table from raw answers."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from howdah.ingest.processor import SCHEMA, ingest_processor
from howdah.ingest.source import Context
from howdah.judge.accounting import Snapshots
from howdah.judge.check import VIRTUAL
from howdah.judge.host_processor import processor_checks
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.linux.netlink.message import attribute, build, nested, text
from howdah.linux.output import FRAME, KIND_PROCESSOR
from howdah.measure.host_processor import processor_host_rows
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.plan.plan import Plan, Processor
from howdah.record import table as store
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory
from howdah.record.table import axes_of
from howdah.record.verdict import Check
from tests.unit.plan_factory import collecting, make_plan
from tests.unit.trace_factory import MS, make_measured, make_trace

SOURCES = dict.fromkeys(("packet", "ack", "searched", "search", "queue"), "the profile")
# A segment takes 1 ms, an ACK half of one more, and a searched packet 1 us.
ONE = Processor("s1", "s1-eth0", "none", 1_000_000, 500_000, 1000, "one-pass", 20, SOURCES)
COLUMNS = tuple(name for name in SCHEMA.names if name not in ("node", "time_ns"))
# An ACK that comes after 150 ms has 150 000 packets searched: it is in service at 200 and 300 ms.
READINGS = {
    0: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    100: (10, 10, 0, 0, 10, 10, 0, 15_000_000, 15_000_000, 2),
    200: (31, 10, 2, 19, 11, 11, 150_000, 166_500_000, 65_000_000, 2),
    300: (31, 10, 2, 19, 11, 11, 150_000, 166_500_000, 165_000_000, 2),
    400: (31, 29, 2, 0, 29, 28, 150_000, 193_000_000, 193_000_000, 3),
}
Changes = dict[tuple[int, str], int]  # time in ms and column: by how much it is changed


def plan_with_one() -> Plan:
    base = make_plan()
    collect = collecting(base.collect, processor_us=100_000)
    flows = [dataclasses.replace(base.flows[0], sender="s1")]
    window = {"measure_window_us": (0, 400_000), "duration_us": 400_000}
    return dataclasses.replace(base, processors=[ONE], collect=collect, flows=flows, **window)  # type: ignore[arg-type]


def lived(path: Path, changes: Changes | None = None) -> tuple[RunDirectory, Measured]:
    plan = plan_with_one()
    rows: list[dict[str, Any]] = [
        {"node": "s1", "time_ns": time_ms * MS, **dict(zip(COLUMNS, values, strict=True))}
        for time_ms, values in READINGS.items()
    ]
    for (time_ms, name), more in (changes or {}).items():
        (row,) = [row for row in rows if row["time_ns"] == time_ms * MS]
        row[name] += more
    directory = RunDirectory(path)
    table = store.table_of("processor", {name: [row[name] for row in rows] for name in SCHEMA.names})
    store.write(directory, "processor", table, axes_of(plan, None))
    trace = dataclasses.replace(make_trace([], [], []), flow=plan.flows[0])
    return directory, make_measured([trace], plan=plan)


def _counted(netstat: dict[str, dict[str, int]]) -> Snapshots:
    told: list[Any] = [{}, {"netstat": netstat}]
    return Snapshots(*told)


def judged(path: Path, changes: Changes | None = None, taken: int | None = 29) -> dict[str, Check]:
    directory, data = lived(path, changes)
    netstat = {"s1": {} if taken is None else {"TcpInSegs": taken}}
    found = processor_checks(directory, data, _counted(netstat), VIRTUAL)
    return {check.name.removeprefix("processor s1 "): check for check in found}


def test_measures_of_the_sender(tmp_path: Path) -> None:
    sheet = Sheet({})
    processor_host_rows(sheet, *lived(tmp_path))
    values = {row.metric: row.value for row in sheet.rows}
    assert values == {
        "processor_busy_share": pytest.approx(0.4825),
        "processor_saturated_s": pytest.approx(0.1),
        "processor_peak_waiting_packets": 19,
        "processor_drops_packets": 2,
        "processor_searched_packets": 150_000,
    }


def test_a_processor_that_was_not_read_has_no_measures(tmp_path: Path) -> None:
    directory, data = lived(tmp_path)
    unread = dataclasses.replace(data.plan, collect=collecting(data.plan.collect, processor_us=None))
    sheet = Sheet({})
    processor_host_rows(sheet, directory, dataclasses.replace(data, plan=unread))
    assert len(sheet.rows) == 5
    assert all(row.value is None and row.why == "the processor was not read" for row in sheet.rows)
    found = processor_checks(directory, dataclasses.replace(data, plan=unread), None, VIRTUAL)
    assert [check.ok for check in found] == [None] * 3


def test_a_host_that_answered_nothing_or_in_part_has_no_such_measures(tmp_path: Path) -> None:
    directory, data = lived(tmp_path)
    table = store.read(directory, "processor")
    unknown = pa.nulls(table.num_rows, SCHEMA.field("searched_packets").type)
    at = table.column_names.index("searched_packets")
    for some, missing in ((table.slice(0, 0), 5), (table.set_column(at, SCHEMA.field(at), unknown), 1)):
        store.write(directory, "processor", some)
        sheet = Sheet({})
        processor_host_rows(sheet, directory, data)
        assert [row.value for row in sheet.rows][-missing:] == [None] * missing
        assert all(row.why == "the processor was not read" for row in sheet.rows[-missing:])


def test_an_honest_processor_passes(tmp_path: Path) -> None:
    found = judged(tmp_path)
    assert {name: check.ok for name, check in found.items()} == dict.fromkeys(("segments", "costs", "time"), True)
    assert "all the time in 0.100 s" in found["time"].message


def test_without_tcps_own_counter_the_segments_are_not_proven(tmp_path: Path) -> None:
    assert judged(tmp_path, taken=None)["segments"].ok is None


@pytest.mark.parametrize(
    ("changes", "taken", "name", "words"),
    [
        ({(300, "arrived_packets"): 1}, 29, "segments", "some are nowhere"),
        ({(400, "served_packets"): -1}, 29, "segments", "some are nowhere"),
        ({(200, "dropped_packets"): -2}, 29, "segments", "some are nowhere"),
        ({(100, "begun_packets"): 2}, 29, "segments", "some are nowhere"),
        ({(400, "served_packets"): -1, (400, "waiting_packets"): 1}, 28, "segments", "still wait"),
        ({}, 31, "segments", "TCP took 31: not all that TCP took came from the processor"),
        ({(400, "cost_ns"): -1}, 29, "costs", "the plan says 193000000 ns"),
        ({(200, "searched_packets"): 1}, 29, "costs", "150001 searched packets cost"),
        ({(300, "acks_packets"): -1}, 29, "costs", "cost the processor of s1"),
        ({(300, "busy_ns"): -MS}, 29, "time", "rested while segments waited"),
        ({(200, "busy_ns"): -20 * MS}, 29, "time", "was busy for longer than time passed"),
        ({(100, "busy_ns"): -1}, 29, "time", "was not busy for 1 ns that were due"),
        ({(400, "busy_ns"): 5}, 29, "time", "5 ns more than everything cost"),
        ({(200, "busy_ns"): -70 * MS, (300, "busy_ns"): -70 * MS}, 29, "time", "busy for -20000000 of"),
    ],
)
def test_what_a_processor_says_and_is_not_so(
    tmp_path: Path, changes: Changes, taken: int, name: str, words: str
) -> None:
    check = judged(tmp_path, changes, taken)[name]
    assert check.ok is False
    assert words in check.message


def test_a_processor_that_nobody_can_read_is_none(tmp_path: Path) -> None:
    directory, data = lived(tmp_path)
    store.write(directory, "processor", store.read(directory, "processor").slice(0, 0))
    found = processor_checks(directory, data, None, VIRTUAL)
    assert [check.ok for check in found] == [False] * 3


def answer(kind: str, values: tuple[int, ...]) -> bytes:
    """An RTM_NEWQDISC answer: struct tcmsg, TCA_KIND, TCA_OPTIONS, TCA_STATS2 with TCA_STATS_APP."""
    statistics = nested(7, attribute(1, bytes(16)), attribute(3, bytes(20)), attribute(4, struct.pack("=10Q", *values)))
    return build(36, 0, 1, struct.pack("=BxxxiIII", 0, 2, 0xFFFF0000, 0, 1) + text(1, kind) + statistics)


def test_answers_become_a_table(tmp_path: Path) -> None:
    plan = plan_with_one()
    number = [host.name for host in plan.hosts].index("s1")
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir()
    content = b""
    for time_ms, values in READINGS.items():
        raw = answer(HostProcessor.kind, values)
        content += FRAME.pack(1_000 * MS + time_ms * MS, len(raw), number, KIND_PROCESSOR) + raw
    other = answer("bfifo", READINGS[0])
    content += FRAME.pack(1_500 * MS, len(other), number, KIND_PROCESSOR) + other
    (directory.raw / "processor.bin").write_bytes(content)
    table, report = ingest_processor(Context(directory, plan, AgentRecord(), 1_000 * MS))
    assert [tuple(row[name] for name in COLUMNS) for row in table.to_pylist()] == list(READINGS.values())
    assert table["time_ns"].to_pylist() == [time_ms * MS for time_ms in READINGS]
    assert set(table["node"].to_pylist()) == {"s1"}
    assert len(report.problems) == 1 and "kind bfifo instead of a processor" in report.problems[0]


FIRST = "10 segments reached s1, of which 10 were served, 0 dropped and 0 waited"
ALL = "29 segments, 28 ACKs and 150000 searched packets cost the processor of s1 193000000 ns"


@pytest.mark.parametrize(
    ("changes", "taken", "name", "ok", "message", "numbers"),
    [
        (
            {},
            29,
            "segments",
            True,
            "31 segments reached s1; its processor dropped 2 and served 29, TCP took 29",
            (29, 29, 0, "packets"),
        ),
        (
            {},
            30,
            "segments",
            False,
            "31 segments reached s1; its processor dropped 2 and served 29, TCP took 30: not all that TCP took came "
            "from the processor, or it says what is not so",
            (30, 29, 0, "packets"),
        ),
        (
            {},
            None,
            "segments",
            None,
            "the processor of s1 served 29 segments; TCP's own counter was not read",
            (None, 29, 0, "packets"),
        ),
        # The first reading that does not add up is told, and how many do not.
        (
            {(300, "arrived_packets"): 1, (100, "arrived_packets"): 1},
            29,
            "segments",
            False,
            "11 segments reached s1, of which 10 were served, 0 dropped and 0 waited 0.100 s after the start: some are "
            "nowhere, or twice",
            (0, 2, 0, "readings"),
        ),
        # One segment may be in service, and none before it was begun.
        ({(100, "begun_packets"): 1, (100, "cost_ns"): MS}, 29, "segments", True, None, (29, 29, 0, "packets")),
        (
            {(100, "begun_packets"): -1},
            29,
            "segments",
            False,
            f"{FIRST} 0.100 s after the start: some are nowhere, or twice",
            (0, 1, 0, "readings"),
        ),
        (
            {(400, "arrived_packets"): 2, (400, "waiting_packets"): 2},
            29,
            "segments",
            False,
            "2 segments still wait for the processor of s1 at the end",
            (0, 2, 0, "packets"),
        ),
        ({}, 29, "costs", True, f"{ALL}, as the plan says", (193_000_000, 193_000_000, 0, "ns")),
        # 11 segments, 11 ACKs of half of one and 150 000 packets of 1 us: 11 + 5.5 + 150 ms.
        (
            {(200, "cost_ns"): 1, (400, "cost_ns"): 1},
            29,
            "costs",
            False,
            "11 segments, 11 ACKs and 150000 searched packets cost the processor of s1 166500001 ns, "
            "the plan says 166500000 ns",
            (166_500_000, 166_500_001, 0, "ns"),
        ),
        (
            {},
            29,
            "time",
            True,
            "the processor of s1 was busy for 0.193000 s, and all the time in 0.100 s in which segments waited from "
            "one reading to the next",
            (100_000_000, 100_000_000, 30_000.0, "ns"),
        ),
        # 100 ms are known to 20 us and a ten thousandth of them: 30 us.
        ({(300, "busy_ns"): -30_000}, 29, "time", True, None, (100_000_000, 99_970_000, 30_000.0, "ns")),
        (
            {(300, "busy_ns"): -30_001},
            29,
            "time",
            False,
            "the processor of s1 rested while segments waited: busy for 99969999 of 100000000 ns, 0.200 s "
            "after the start",
            (100_000_000, 99_969_999, 30_000.0, "ns"),
        ),
        (
            {(200, "busy_ns"): -30_001},
            29,
            "time",
            False,
            "the processor of s1 was busy for longer than time passed: busy for 100030001 of 100000000 ns, 0.200 s "
            "after the start",
            (100_000_000, 100_030_001, 30_000.0, "ns"),
        ),
        # A rest in between: it may have been idle.
        ({(300, "busy_ns"): -MS, (300, "rests"): 1, (400, "rests"): 1}, 29, "time", True, None, None),
        (
            {(100, "busy_ns"): -1},
            29,
            "time",
            False,
            "the processor of s1 was not busy for 1 ns that were due",
            (None, None, None, "ns"),
        ),
        (
            {(300, "busy_ns"): 2_000_000, (400, "busy_ns"): 5},
            29,
            "time",
            False,
            "the processor of s1 was busy for 500000 ns more than everything cost",
            (None, None, None, "ns"),
        ),
    ],
)
def test_what_is_said_of_a_processor(
    tmp_path: Path,
    changes: Changes,
    taken: int | None,
    name: str,
    ok: bool | None,
    message: str | None,
    numbers: tuple[Any, ...] | None,
) -> None:
    check = judged(tmp_path, changes, taken)[name]
    stage = "accounting" if name == "segments" else "during"
    assert (check.name, check.stage, check.ok) == (f"processor s1 {name}", stage, ok)
    if message is not None:
        assert check.message == message
    if numbers is not None:
        assert (check.expected, check.measured, check.tolerance, check.unit) == numbers


def test_a_processor_that_was_not_read_or_once_says_so(tmp_path: Path) -> None:
    directory, data = lived(tmp_path)
    stages = {"segments": "accounting", "costs": "during", "time": "during"}
    unread = dataclasses.replace(data.plan, collect=collecting(data.plan.collect, processor_us=None))
    assert processor_checks(directory, dataclasses.replace(data, plan=unread), None, VIRTUAL) == [
        Check(f"processor s1 {what}", stage, None, "the processor of s1 was not read") for what, stage in stages.items()
    ]
    table = store.read(directory, "processor")
    store.write(directory, "processor", table.slice(0, 0))
    assert processor_checks(directory, data, None, VIRTUAL) == [
        Check(f"processor s1 {what}", stage, False, "of s1 no processor can be read") for what, stage in stages.items()
    ]
    store.write(directory, "processor", table.slice(0, 1))
    found = processor_checks(directory, data, _counted({"s1": {"TcpInSegs": 0}}), VIRTUAL)
    assert [check.ok for check in found] == [True, True, None]
    assert found[2] == Check("processor s1 time", "during", None, "the processor of s1 was read once", unit="ns")
    for account in (None, _counted({}), _counted({"s1": {}})):
        assert processor_checks(directory, data, account, VIRTUAL)[0].ok is None
