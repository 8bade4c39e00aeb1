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
from howdah.record.axis import axes_of
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from tests.unit.plan_factory import collecting, make_plan
from tests.unit.recorded_lines import compare_checks
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


# Changes, what TCP took, the check, and whether it passes.
SAID: dict[str, tuple[Changes, int | None, str, bool | None]] = {
    "all served": ({}, 29, "segments", True),
    "TCP took one more": ({}, 30, "segments", False),
    "nobody knows what TCP took": ({}, None, "segments", None),
    "two readings that do not add up": (
        {(300, "arrived_packets"): 1, (100, "arrived_packets"): 1}, 29, "segments", False
    ),
    "one in service": ({(100, "begun_packets"): 1, (100, "cost_ns"): MS}, 29, "segments", True),
    "two in service": ({(100, "begun_packets"): 2}, 29, "segments", False),
    "served before it was begun": ({(100, "begun_packets"): -1}, 29, "segments", False),
    "two still wait": ({(400, "arrived_packets"): 2, (400, "waiting_packets"): 2}, 29, "segments", False),
    "costs as planned": ({}, 29, "costs", True),
    # 11 segments, 11 ACKs of half of one and 150 000 packets of 1 us: 11 + 5.5 + 150 ms.
    "a nanosecond too dear": ({(200, "cost_ns"): 1, (400, "cost_ns"): 1}, 29, "costs", False),
    "busy while segments waited": ({}, 29, "time", True),
    # 100 ms are known to 20 us and a ten thousandth of them: 30 us.
    "a rest of 30 us": ({(300, "busy_ns"): -30_000}, 29, "time", True),
    "a rest of 30.001 us": ({(300, "busy_ns"): -30_001}, 29, "time", False),
    "busy for 30.001 us more than there are": ({(200, "busy_ns"): -30_001}, 29, "time", False),
    "a rest in between: it may have been idle": (
        {(300, "busy_ns"): -MS, (300, "rests"): 1, (400, "rests"): 1}, 29, "time", True
    ),
    "a nanosecond that was due": ({(100, "busy_ns"): -1}, 29, "time", False),
    "busy for more than everything cost": ({(300, "busy_ns"): 2_000_000, (400, "busy_ns"): 5}, 29, "time", False),
}  # fmt: skip


def test_what_is_said_of_a_processor(tmp_path: Path) -> None:
    found = {title: judged(tmp_path / title, changes, taken)[name] for title, (changes, taken, name, _) in SAID.items()}
    compare_checks("processor", ((title, SAID[title][3], check) for title, check in found.items()))


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
