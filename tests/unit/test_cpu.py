# SPDX-License-Identifier: Apache-2.0
"""Processor time by function: from what perf and binutils print to the rows of metrics.json."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.agent.module import module_symbols
from howdah.build.inlined import Function, SymbolTable, parse_chains, parse_functions, place_of
from howdah.engine.uml.naming import module_functions
from howdah.engine.uml.profiler import parse_line, record_arguments, refusal
from howdah.ingest.cpu import ingest_cpu
from howdah.ingest.source import Context
from howdah.measure.cpu import cpu_rows
from howdah.measure.row import Sheet
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.record import table as store
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.metrics import MetricRow
from tests.unit.profile_factory import make_one

# As objdump --syms, perf script and addr2line -a -f -i print them.
SYMBOLS = """\
0000000060015700 l     F .init.text	0000000000000036              trace_initcall_start_cb
00000000602a3790 l     F .text	000000000000056f              tcp_sacktag_walk
00000000602a5ac0 l     F .text	0000000000001559              tcp_ack
00000000602a8b40 g     F .text	0000000000000723              .hidden tcp_rcv_established
0000000060431668 g     O __ksymtab	0000000000000010              tcp_prot
"""
OBJECT = """\
0000000000003fc0 l     F .text	000000000000056f tcp_sacktag_walk
00000000000062f0 l     F .text	0000000000001559 tcp_ack
0000000000009370 g     F .text	0000000000000723 tcp_rcv_established
0000000000000000 l     F .init.text	0000000000000036 nothing_of_ours
"""
CHAINS = """\
0x00000000000062f0
tcp_ack
/src/net/ipv4/tcp_input.c:3965
0x0000000000006800
sk_mem_uncharge
/src/include/net/sock.h:1607
tcp_rtx_queue_unlink_and_free
/src/include/net/tcp.h:2128
tcp_clean_rtx_queue.constprop.0
/src/net/ipv4/tcp_input.c:3455
tcp_ack
/src/net/ipv4/tcp_input.c:4081
"""


def test_functions_of_an_image_and_of_an_object() -> None:
    image = SymbolTable(parse_functions(SYMBOLS))
    assert [function.name for function in image.functions] == [
        "trace_initcall_start_cb",
        "tcp_sacktag_walk",
        "tcp_ack",
        "tcp_rcv_established",
    ]
    assert image.at(0x602A5AC0) == image.at(0x602A5AC0 + 0x1558) == Function(0x602A5AC0, 0x1559, "tcp_ack")
    assert image.at(0x602A5AC0 + 0x1559) is None
    assert image.at(0) is None


def test_an_object_is_found_where_the_linker_put_it() -> None:
    image = SymbolTable(parse_functions(SYMBOLS))
    base = 0x602A5AC0 - 0x62F0
    assert place_of(parse_functions(OBJECT, ".text"), image) == (base, base + 0x9370 + 0x723)


def test_an_object_of_other_code_is_refused() -> None:
    image = SymbolTable(parse_functions(SYMBOLS))
    assert place_of(parse_functions(OBJECT.replace("1559 tcp_ack", "1560 tcp_ack"), ".text"), image) is None
    assert place_of(parse_functions(OBJECT.replace("62f0", "62e0"), ".text"), image) is None
    assert place_of([], image) is None


def test_chains_of_inlined_functions() -> None:
    assert parse_chains(CHAINS) == {
        0x62F0: ("tcp_ack",),
        0x6800: ("sk_mem_uncharge", "tcp_rtx_queue_unlink_and_free", "tcp_clean_rtx_queue", "tcp_ack"),
    }
    assert parse_chains("") == {}


def test_lines_of_perf_script() -> None:
    line = " 24915 1795308558.685045:          6017fa9a (/root/.cache/howdah/kernel/9557/linux)"
    assert parse_line(line, 24915) == "1795308558685045 main 6017fa9a linux"
    assert (
        parse_line(" 77 1795308558.685045:  737c1000 (#16 (deleted))", 24915) == "1795308558685045 other 737c1000 #16"
    )
    assert parse_line("linux 24915 1795308558.685045: PERF_RECORD_LOST lost 3", 24915) is None


def test_perf_is_asked_for_user_mode_alone() -> None:
    arguments = record_arguments()
    assert arguments[arguments.index("--event") + 1] == "cpu-clock:u"
    assert arguments[arguments.index("--clockid") + 1] == "CLOCK_REALTIME"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Error:\nAccess to performance monitoring is limited. perf_event_paranoid setting is 4", "no permission"),
        ("", "it said nothing"),
        ("# comment\nno such event\n", "no such event"),
    ],
)
def test_why_perf_refused(said: str, why: str) -> None:
    assert refusal(said).startswith(why)


def test_symbols_of_modules() -> None:
    text = "0000000000000000 T tcp_ack\n0000000073811340 t sink_tasklet\t[howdah_traffic]\n0000000073811000 d x [m]\n"
    assert module_symbols(text) == [(0x73811340, "sink_tasklet", "howdah_traffic")]


def test_functions_of_modules_reach_to_the_next_one() -> None:
    symbols = [(0x1000, "a", "m"), (0x1040, "b", "m"), (0x90000, "c", "n")]
    assert module_functions(symbols) == [
        Function(0x1000, 0x40, "a"),
        Function(0x1040, 0x10000, "b"),
        Function(0x90000, 0x10000, "c"),
    ]
    assert module_functions([]) == [], "a run may load none"


def _run(path: Path, samples: str, account: dict[str, Any] | None = None) -> tuple[RunDirectory, Plan]:
    """A run with stamps at -0.5, 0, 1 and 2 s of virtual time, which are 10, 20, 30 and 50 s of the host."""
    plan = make_one(path, "collect: {cpu: true}\n")
    directory = RunDirectory(path / "run")
    directory.raw.mkdir(parents=True)
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    epoch_ns = plan.epoch_us * 1000
    stamps = [
        [epoch_ns + int(virtual * 1e9), host * 10**6] for virtual, host in ((-0.5, 10), (0, 20), (1, 30), (2, 50))
    ]
    whole: dict[str, Any] = {
        "stamps": stamps,
        "why": None,
        "inlined_why": None,
        "period_ns": 1_000_000,
        "samples": 1,
        "lost": 0,
        "event": "cpu-clock:u",
    }
    if account is not None:
        write_json(directory.raw / "cpu-profile.json", {**whole, **account})
    (directory.raw / "cpu-profile.txt").write_text(samples, encoding="utf-8")
    return directory, plan


def _rows(directory: RunDirectory, plan: Plan) -> dict[str, MetricRow]:
    table, report = ingest_cpu(Context(directory, plan, AgentRecord(), plan.epoch_us * 1000))
    store.write(directory, "cpu", table)
    write_json(directory.tables / "ingest.json", {"format": 1, "sources": {"cpu": dataclasses.asdict(report)}})
    sheet = Sheet({})
    cpu_rows(sheet, directory, plan)
    return {row.metric: row for row in sheet.rows}


SAMPLES = (
    "5000000 kernel boot -\n"  # before the first stamp
    + "12000000 kernel calibration -\n"  # before the flows, within half a second
    + "20000000 kernel tcp_ack.part.0 rb_first<tcp_sacktag_write_queue\n" * 30
    + "21000000 kernel tcp_sacktag_walk -\n" * 10
    + "25000000 kernel tcp_ack tcp_clean_rtx_queue\n" * 20
    + "29999999 module sink_tasklet -\n" * 10
    + "30000000 kernel skb_clone -\n" * 29
    + "31000000 library libc.so.6 -\n" * 50
    + "31000000 user ? -\n" * 50
    + "99000000 kernel late -\n"
)


def test_times_of_the_host_become_intervals_of_virtual_time(tmp_path: Path) -> None:
    directory, plan = _run(tmp_path, SAMPLES, {})
    table, report = ingest_cpu(Context(directory, plan, AgentRecord(), plan.epoch_us * 1000))
    assert report.counts["outside"] == 2
    rows = {(row["time_ns"], row["symbol"]): row for row in table.to_pylist()}
    assert rows[0, "tcp_sacktag_walk"]["cpu_ns"] == 10_000_000
    assert rows[0, "tcp_sacktag_walk"]["duration_ns"] == 10**9
    assert rows[10**9, "skb_clone"]["cpu_ns"] == 29_000_000
    assert rows[-500_000_000, "calibration"]["duration_ns"] == 500_000_000
    assert rows[0, "tcp_ack.part.0"]["inlined"] == "rb_first<tcp_sacktag_write_queue"


def test_shares_and_rates(tmp_path: Path) -> None:
    rows = _rows(*_run(tmp_path, SAMPLES, {}))
    value = {metric: row.value for metric, row in rows.items()}
    # 100 ms of the kernel in 2.5 s; 70 of them in the first whole second. Sender: 60, receiver: 10.
    assert value["cpu_seconds_per_simulated_second"] == pytest.approx(0.1 / 2.5)
    assert value["cpu_peak_seconds_per_simulated_second"] == pytest.approx(0.07)
    assert value["cpu_sender_seconds_per_simulated_second"] == pytest.approx(0.06 / 2.5)
    assert value["cpu_receiver_seconds_per_simulated_second"] == pytest.approx(0.01 / 2.5)
    assert value["cpu_share_tcp_sacktag_write_queue"] == pytest.approx(0.4)
    assert value["cpu_sender_share_tcp_sacktag_write_queue"] == pytest.approx(40 / 60)
    assert value["cpu_share_tcp_clean_rtx_queue"] == pytest.approx(0.2)
    assert value["cpu_share_tcp_fastretrans_alert"] == 0
    assert value["cpu_share_user_copy"] is None
    assert "copied to user space" in str(rows["cpu_share_user_copy"].why)


@pytest.mark.parametrize(("interval_ms", "peak"), [(499, 0.07), (500, 0.2)])
def test_the_peak_is_of_intervals_of_half_a_second_or_more(tmp_path: Path, interval_ms: int, peak: float) -> None:
    """A busier one: 100 samples of 1 ms in it, beside 70 in a whole second."""
    directory, plan = _run(tmp_path, SAMPLES + "15000000 kernel tcp_ack -\n" * 99, {})
    account = read_json(directory.raw / "cpu-profile.json")
    account["stamps"][0][0] = plan.epoch_us * 1000 - interval_ms * 1_000_000
    write_json(directory.raw / "cpu-profile.json", account)
    value = _rows(directory, plan)["cpu_peak_seconds_per_simulated_second"].value
    assert value == pytest.approx(peak, rel=0.02)


def test_where_perf_was_refused_every_measure_says_so(tmp_path: Path) -> None:
    rows = _rows(*_run(tmp_path, "", {"why": "perf refused: no permission"}))
    assert {row.value for row in rows.values()} == {None}
    assert {row.why for row in rows.values()} == {"perf refused: no permission"}
    assert {row.unsupported for row in rows.values()} == {True}
    assert "cpu_share_tcp_data_queue" in rows


@pytest.mark.parametrize(
    ("account", "why"), [(None, "there is no cpu-profile.json"), ({"lost": 4}, "perf lost 4 samples")]
)
def test_half_a_profile_is_none(tmp_path: Path, account: dict[str, Any] | None, why: str) -> None:
    rows = _rows(*_run(tmp_path, SAMPLES, account))
    assert {(row.value, row.why) for row in rows.values()} == {(None, why)}


def test_without_inlining_only_totals_are_told(tmp_path: Path) -> None:
    rows = _rows(*_run(tmp_path, SAMPLES, {"inlined_why": "no source"}))
    known = {metric for metric, row in rows.items() if row.value is not None}
    assert known == {"cpu_seconds_per_simulated_second", "cpu_peak_seconds_per_simulated_second"}
    assert "no source" in str(rows["cpu_share_tcp_data_queue"].why)


def test_plans_say_it_only_where_it_is_asked_for(tmp_path: Path) -> None:
    plain, asked = make_one(tmp_path, ""), make_one(tmp_path, "collect: {cpu: true}\n")
    assert '"cpu"' not in plain.to_json()
    assert not any(line.strip().startswith("cpu ") for line in render(plain).splitlines())
    assert '"cpu": true' in asked.to_json()
    assert Plan.from_json(asked.to_json()) == asked
    assert Plan.from_json(plain.to_json()) == plain


def test_the_table_is_no_reason_to_call_two_runs_different(tmp_path: Path) -> None:
    runs = []
    for name, samples in (("a", SAMPLES), ("b", "20000000 kernel tcp_ack -\n")):
        (tmp_path / name).mkdir()
        directory, plan = _run(tmp_path / name, samples, {})
        _rows(directory, plan)
        runs.append(directory)
    assert store.equal(*runs) is None
