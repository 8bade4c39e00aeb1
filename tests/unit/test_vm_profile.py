# SPDX-License-Identifier: Apache-2.0
"""A profile of a finite processor: from what perf, the counter and the guest leave to the rows of metrics.json."""

from __future__ import annotations

import dataclasses
import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.profiling import module_sections, parse_stat
from howdah.build.inlined import Function, SymbolTable
from howdah.engine.vm.symbols import Names, image_functions, module_functions
from howdah.engine.vm.tally import (
    INSTRUCTIONS_FILE,
    SAMPLES_FILE,
    instructions_by_address,
    read_blocks,
    read_counts,
    read_samples,
    samples_by_interval,
    write,
)
from howdah.errors import HowdahError
from howdah.ingest.cpu import ingest_finite_processor
from howdah.ingest.source import Context
from howdah.judge.engine import idle_of
from howdah.measure.cpu import cpu_rows
from howdah.measure.processor import busy_time_of
from howdah.measure.row import Sheet
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory, write_json
from tests.unit.profile_factory import make_one

# Recorded by perf 6.12 in a guest with Linux 6.12.117: a quarter of a second at the beginning of a flow, 1 ms a sample.
RECORDED = Path(__file__).resolve().parents[1] / "golden" / "perf" / "cpu-clock.data"
HALT = 0xFFFFFFFF81CE5FFF

KALLSYMS = """\
ffffffff81b4e7b0 t __pfx_tcp_sacktag_write_queue
ffffffff81b4e7c0 t tcp_sacktag_write_queue
ffffffff81b4f000 t tcp_clean_rtx_queue.constprop.0
ffffffff81b50570 t tcp_ack
ffffffff81ce5ff0 t pv_native_safe_halt
ffffffff81ce6010 T default_idle
ffffffff82000000 D jiffies
0000000000001000 A fixed_percpu_data
ffffffffc0401000 t sink_tasklet	[howdah_traffic]
"""


def test_samples_that_perf_recorded() -> None:
    samples = read_samples(RECORDED.read_bytes(), str(RECORDED))
    assert (len(samples.found), samples.lost, samples.throttled) == (300, 0, 0)
    times = [time_ns for time_ns, _process, _address in samples.found]
    assert times == sorted(times)
    assert 298 <= (times[-1] - times[0]) / 999_983 <= 300, "one each 999 983 ns"
    assert sum(address == HALT for _time, _process, address in samples.found) == 212, "most of the time it is idle"
    assert {process for _time, process, address in samples.found if address == HALT} == {0}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "requires a buffer"),
        (b"ELF" + RECORDED.read_bytes()[3:], "it begins with"),
        (RECORDED.read_bytes()[:-100], "perf did not end it"),
    ],
)
def test_what_perf_did_not_end_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(HowdahError, match=why):
        read_samples(content, "perf.data")


def test_functions_of_an_image_reach_to_the_next_one() -> None:
    functions = image_functions(KALLSYMS)
    assert Function(0xFFFFFFFF81B4E7C0, 0x840, "tcp_sacktag_write_queue") in functions
    assert [function.name for function in functions if "sink" in function.name] == [], "modules are told by their files"
    assert "jiffies" not in {function.name for function in functions}
    assert image_functions("") == []


def test_names_of_addresses() -> None:
    modules = SymbolTable([Function(0xFFFFFFFFC0401000, 0x80, "sink_tasklet")])
    names = Names(SymbolTable(image_functions(KALLSYMS)), modules)
    assert names.place(0xFFFFFFFF81B4E7B4) == ("kernel", "tcp_sacktag_write_queue"), "what pads it belongs to it"
    assert names.place(0xFFFFFFFF81B4F010) == ("kernel", "tcp_clean_rtx_queue.constprop.0")
    assert names.place(HALT) == ("idle", "pv_native_safe_halt")
    assert names.place(0xFFFFFFFFC0401000) == ("module", "sink_tasklet")
    assert names.place(0xFFFFFFFFC0900000) == ("kernel", "?")
    assert names.place(0x00007F0000000000) == ("user", "?")
    assert names.tcp_functions() == ["tcp_ack", "tcp_clean_rtx_queue", "tcp_sacktag_write_queue"]


def test_functions_of_modules_lie_where_the_guest_says(tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text("int twice(int x) { return 2 * x; }\nint thrice(int x) { return 3 * x; }\n")
    subprocess.run(["gcc", "-O2", "-c", "-o", str(tmp_path / "mine.ko"), str(source)], check=True)
    sections = {"mine": {".text": 0xFFFFFFFFC0000000}, "not_ours": {".text": 0xFFFFFFFFC1000000}}
    table = module_functions({"mine": tmp_path / "mine.ko"}, sections)
    assert sorted(function.name for function in table.functions) == ["thrice", "twice"]
    first = table.at(0xFFFFFFFFC0000000)
    assert first is not None
    assert first.name == "twice"
    assert table.at(0xFFFFFFFFC1000000) is None


def test_what_the_guest_says_of_its_modules_and_of_its_time(tmp_path: Path) -> None:
    place = tmp_path / "tcp_mine" / "sections"
    place.mkdir(parents=True)
    (place / ".text").write_text("0xffffffffc0401000\n")
    (tmp_path / "built_in").mkdir()
    assert module_sections(tmp_path) == {"tcp_mine": {".text": 0xFFFFFFFFC0401000}}
    assert parse_stat("cpu  1 2 3 40 5 6 7 8 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\n") == {
        "user": 1,
        "nice": 2,
        "system": 3,
        "idle": 40,
        "iowait": 5,
        "irq": 6,
        "softirq": 7,
        "steal": 8,
    }


SACK, CLEAN, ACK = 0xFFFFFFFF81B4E7C0, 0xFFFFFFFF81B4F000, 0xFFFFFFFF81B50570
# Blocks: outside the kernel; three instructions of 2, 3 and 1 bytes; two instructions across two functions' border.
BLOCKS = (
    struct.pack("<QIB", 0, 1, 0) + struct.pack("<QI3B", SACK, 3, 2, 3, 1) + struct.pack("<QI2B", CLEAN - 4, 2, 4, 1)
)


def _counts(*intervals: list[tuple[int, int]]) -> bytes:
    return b"".join(
        struct.pack("<I", len(pairs)) + b"".join(struct.pack("<II", *pair) for pair in pairs) for pairs in intervals
    )


def test_executions_of_blocks_are_counted_by_the_instruction() -> None:
    blocks = read_blocks(BLOCKS)
    assert blocks == [(0,), (SACK, SACK + 2, SACK + 5), (CLEAN - 4, CLEAN)]
    first, second = read_counts(_counts([(0, 700), (1, 10)], [(2, 5)]))
    assert instructions_by_address(blocks, first) == {0: 700, SACK: 10, SACK + 2: 10, SACK + 5: 10}
    assert instructions_by_address(blocks, second) == {CLEAN - 4: 5, CLEAN: 5}
    with pytest.raises(HowdahError, match="did not end"):
        list(read_counts(_counts([(0, 1)])[:-1]))


def test_samples_belong_to_the_interval_between_two_marks() -> None:
    samples = [(5, 0, 1), (10, 0, 1), (19, 0, 2), (20, 0, 3), (30, 0, 4)]
    assert samples_by_interval(samples, [10, 20, 30]) == [{1: 1, 2: 1}, {3: 1}]


MARKS_S = (-0.5, 0.0, 0.1, 0.2, 1.0)


def _run(path: Path, account: dict[str, Any], shift: int = 1) -> tuple[RunDirectory, Plan]:
    """Four intervals; in that from 0 to 0.1 s 10 million instructions of SACK, 5 of tcp_ack(), 20 of programs."""
    plan = make_one(path, f"collect: {{cpu: true}}\nmachine: {{shift: {shift}}}\n", engine="vm")
    directory = RunDirectory(path / "run")
    directory.raw.mkdir(parents=True)
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    marks = [plan.epoch_us * 1000 + int(mark * 1e9) for mark in MARKS_S]
    names = Names(SymbolTable(image_functions(KALLSYMS)), SymbolTable([]))

    def place_of(address: int) -> tuple[str, str, str]:
        return (*names.place(address), "")

    million = 1_000_000
    counted = [{ACK: 77 * million}, {SACK: 10 * million, ACK: 5 * million, 0: 20 * million}, {}, {ACK: 40 * million}]
    sampled = [{HALT: 100}, {SACK: 10, ACK: 5, 0x1000: 19, HALT: 16}, {HALT: 50}, {ACK: 41, HALT: 360}]
    write(directory.raw / INSTRUCTIONS_FILE, marks, counted, place_of)
    write(directory.raw / SAMPLES_FILE, marks, sampled, place_of)
    whole: dict[str, Any] = {
        "counter_why": None,
        "perf_why": None,
        "perf_period_ns": million << shift,
        "stat": [[marks[1], {"user": 0, "idle": 100, "iowait": 0}], [marks[4], {"user": 15, "idle": 180, "iowait": 5}]],
        "functions": names.tcp_functions(),
    }
    write_json(directory.raw / "processor.json", {**whole, **account})
    return directory, plan


def _ingest(directory: RunDirectory, plan: Plan) -> dict[str, Any]:
    made = ingest_finite_processor(Context(directory, plan, AgentRecord(), plan.epoch_us * 1000))
    for name, (table, _report) in made.items():
        store.write(directory, name, table)
    sources = {name: {"rows": report.rows, "counts": report.counts} for name, (_table, report) in made.items()}
    write_json(directory.tables / "ingest.json", {"format": 1, "sources": sources})
    return sources


def test_instructions_are_worth_their_time(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {})
    sources = _ingest(directory, plan)
    assert (sources["cpu"]["counts"]["source"], sources["cpu_sample"]["counts"]["source"]) == ("counter", "perf")
    rows = {(row["time_ns"], row["symbol"]): row for row in store.read(directory, "cpu").to_pylist()}
    assert rows[0, "tcp_sacktag_write_queue"]["cpu_ns"] == 20_000_000, "two ns each at shift 1"
    assert rows[0, "tcp_sacktag_write_queue"]["duration_ns"] == 100_000_000
    assert rows[200_000_000, "tcp_ack"]["duration_ns"] == 800_000_000
    assert sources["cpu"]["counts"]["stat"] == [[0, 10**9, 10**9], [10**9, 1_850_000_000, 2 * 10**9]]


def test_busy_time_of_intervals(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {})
    _ingest(directory, plan)
    for name in ("cpu", "cpu_sample"):
        course = busy_time_of(store.read(directory, name)).between(0, plan.duration_us * 1000)
        assert course.busy_ns[0] / course.duration_ns[0] == pytest.approx(0.7, rel=0.05), name
        assert course.of(("tcp_sacktag_write_queue",)).sum() == 20_000_000
        first = course.between(0, 100_000_000)
        assert first.kernel_ns.tolist() == [30_000_000]


def test_shares_of_functions_that_are_there(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {"functions": ["tcp_ack", "tcp_sacktag_write_queue"]})
    _ingest(directory, plan)
    sheet = Sheet({})
    cpu_rows(sheet, directory, plan)
    rows = {row.metric: row for row in sheet.rows}
    assert rows["cpu_share_tcp_sacktag_write_queue"].value == pytest.approx(20 / 110)
    assert rows["cpu_share_tcp_clean_rtx_queue"].value is None
    assert "inlined" in str(rows["cpu_share_tcp_clean_rtx_queue"].why)
    assert rows["cpu_share_tcp_clean_rtx_queue"].unsupported
    assert rows["cpu_share_user_copy"].value is None


def test_without_the_counter_perf_is_the_source(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {"counter_why": "QEMU takes no plugin"})
    sources = _ingest(directory, plan)
    assert sources["cpu"]["counts"]["source"] == "perf"
    assert sources["cpu"]["counts"]["why"] is None
    assert sources["cpu_sample"]["rows"] == 0
    rows = {(row["time_ns"], row["symbol"]): row["cpu_ns"] for row in store.read(directory, "cpu").to_pylist()}
    assert rows[0, "tcp_sacktag_write_queue"] == 20_000_000
    assert rows[0, "pv_native_safe_halt"] == 32_000_000


@pytest.mark.parametrize("account", [{"counter_why": "none", "perf_why": "no perf"}, None])
def test_where_nothing_looked_every_measure_says_so(tmp_path: Path, account: dict[str, Any] | None) -> None:
    directory, plan = _run(tmp_path, account or {})
    if account is None:
        (directory.raw / "processor.json").unlink()
    _ingest(directory, plan)
    sheet = Sheet({})
    cpu_rows(sheet, directory, plan)
    assert {row.value for row in sheet.rows} == {None}
    assert all(row.unsupported for row in sheet.rows)
    assert json.loads((directory.tables / "ingest.json").read_text())["sources"]["cpu"]["counts"]["why"]


def test_what_the_processor_was_idle_is_read_from_its_account(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {})
    _ingest(directory, plan)
    idle = idle_of(directory, plan)
    assert idle is not None
    ms = 1_000_000
    assert idle(0, 100 * ms) == 30 * ms, "70 of 100 ms were busy"
    assert idle(120 * ms, 180 * ms) == 60 * ms, "no more than there is"
    assert idle(900 * ms, 1900 * ms) == 1000 * ms, "what was not seen was idle"


def test_in_real_time_there_is_no_finite_processor(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, {})
    sources = _ingest(directory, dataclasses.replace(plan, processor_shift=None))
    assert "no declared speed" in sources["cpu"]["counts"]["why"]
    assert sources["cpu"]["rows"] == 0
