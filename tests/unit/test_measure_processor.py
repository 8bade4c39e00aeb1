# SPDX-License-Identifier: Apache-2.0
"""The load of a processor of finite speed, from a profile made by hand."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from howdah.measure.processor import processor_rows
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import TABLES
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, make_info, make_measured, make_queue, make_trace

Spent = tuple[str, str, str, int]
WORK: tuple[Spent, ...] = (  # domain, function, inlined in it, ms of each tenth of a second
    ("kernel", "tcp_ack", "", 6),
    ("module", "__softirq.cold", "tcp_sacktag_walk<tcp_something", 4),
    ("kernel", "tcp_data_queue.part.0", "", 15),
    ("kernel", "tcp_recv_skb", "", 5),
    ("user", "tcp_ack", "", 10),
)


def intervals(user_ms: int = 0) -> Iterator[dict[str, Any]]:
    """A tenth of a second before the flows, two seconds, and one behind; in the second one nothing is idle."""
    for number in range(-1, 21):
        busy = number in range(10, 20)
        more: tuple[Spent, ...] = (("user", "main", "", (60 if busy else 10) - user_ms),)
        idle: tuple[Spent, ...] = (("idle", "halt", "", (0 if busy else 50) + user_ms),)
        for domain, symbol, inlined, spent_ms in (*WORK, *more, *idle):
            yield {
                "time_ns": number * 100 * MS,
                "duration_ns": 100 * MS,
                "domain": domain,
                "symbol": symbol,
                "inlined": inlined,
                "cpu_ns": spent_ms * MS,
            }


def lossy() -> FlowTrace:
    """It leaves slow start at 142 ms, when the third duplicate comes; all is acknowledged at 200 ms."""
    return make_trace(
        [100, 140, 141, 142, 143, 144, 180, 200],
        una=[0, 20, 20, 20, 20, 20, 30, 60],
        nxt=[40, 60, 60, 60, 60, 60, 62, 64],
        cwnd=[40, 40, 40, 40, 28, 28, 28, 28],
        ssthresh=[math.inf, math.inf, math.inf, math.inf, 28, 28, 28, 28],
    )


def measured(directory: Path, trace: FlowTrace, perf_user_ms: int = 0, **account: Any) -> Sheet:
    run = RunDirectory(directory)
    run.tables.mkdir(parents=True)
    store.write(run, "cpu", pa.Table.from_pylist(list(intervals()), schema=TABLES["cpu"]))
    samples = list(intervals(perf_user_ms)) if "perf_period_ns" in account else []
    store.write(run, "cpu_sample", pa.Table.from_pylist(samples, schema=TABLES["cpu_sample"]))
    (run.tables / "ingest.json").write_text(json.dumps({"sources": {"cpu": {"counts": account}}}))
    plan = dataclasses.replace(make_plan(), duration_us=2_000_000, processor_shift=1, flows=[trace.flow])
    info = make_info([0, 100, 200, 300], total_retrans_packets=[0, 0, 7, 7])
    queue = make_queue([0, 50, 100, 200, 400], [0] * 5, drops=[0, 0, 5, 8, 99])
    sheet = Sheet({})
    processor_rows(sheet, run, make_measured([trace], plan=plan, info=info, queue=queue))
    return sheet


def test_the_load_of_the_run_and_of_a_recovery(tmp_path: Path) -> None:
    """Half of the first second is idle. At a shift of 1 an instruction takes 2 ns. The recovery is in one interval."""
    sheet = measured(tmp_path, lossy())
    assert {row.metric: (row.flow, row.value) for row in sheet.rows} == {
        "cpu_utilisation": (None, pytest.approx(0.75)),
        "cpu_peak_utilisation": (None, 1.0),
        "cpu_saturated_s": (None, 1.0),
        "cpu_instructions_per_second": (None, pytest.approx(0.75 * 5e8)),
        "cpu_sender_instructions_per_second": (None, pytest.approx(0.10 * 5e8)),
        "cpu_receiver_instructions_per_second": (None, pytest.approx(0.20 * 5e8)),
        "cpu_recovery_utilisation": (1, pytest.approx(0.5)),
        "cpu_recovery_sender_utilisation": (1, pytest.approx(0.10)),
        "cpu_recovery_receiver_utilisation": (1, pytest.approx(0.20)),
        "cpu_recovery_share_tcp_sacktag_write_queue": (1, pytest.approx(4 / 30)),
        "cpu_recovery_sender_share_tcp_sacktag_write_queue": (1, pytest.approx(4 / 10)),
        "cpu_recovery_receiver_share_tcp_data_queue": (1, pytest.approx(15 / 20)),
    }
    assert not [row for row in sheet.rows if row.unsupported]
    assert sheet.cross_checks == []


def test_without_a_loss_there_is_no_recovery_to_measure(tmp_path: Path) -> None:
    for name, trace, why in (
        ("clean", make_trace([100, 200], [0, 10], [10, 20]), "no loss episode"),
        ("silent", make_trace([], [], []), "no ACK"),
    ):
        sheet = measured(tmp_path / name, trace)
        of_flow = [row for row in sheet.rows if row.flow is not None]
        assert len(of_flow) == 6
        assert all(row.value is None and why in str(row.why) and not row.unsupported for row in of_flow)


def test_a_machine_that_has_no_profile_cannot_measure_it(tmp_path: Path) -> None:
    sheet = measured(tmp_path, lossy(), why="this kernel has no perf", stat=[[0, 0, 0], [1000 * MS, 0, 0]])
    assert len(sheet.rows) == 12
    assert {(row.value, row.why, row.unsupported) for row in sheet.rows} == {(None, "this kernel has no perf", True)}
    assert sheet.cross_checks == []


@pytest.mark.parametrize(("idle_ms", "agree"), [(500, True), (519, True), (521, False), (481, True), (479, False)])
def test_the_counter_is_compared_with_the_kernels_own_account(tmp_path: Path, idle_ms: int, agree: bool) -> None:
    """Half of the first second is idle; readings before and after the profile are none of its."""
    stat = [[-200 * MS, 0, 0], [0, 100 * MS, 0], [1000 * MS, (100 + idle_ms) * MS, 0], [9000 * MS, 0, 0]]
    (compared,) = measured(tmp_path, lossy(), stat=stat).cross_checks
    assert compared.sources == {"profile": pytest.approx(0.5), "stat": pytest.approx(1 - idle_ms / 1000)}
    assert compared.agree is agree


def test_one_reading_of_the_kernels_account_compares_nothing(tmp_path: Path) -> None:
    assert measured(tmp_path, lossy(), stat=[[0, 100 * MS, 0]]).cross_checks == []


@pytest.mark.parametrize(("user_ms", "agree"), [(0, True), (17, True), (18, False), (-16, True), (-18, False)])
def test_the_counter_is_compared_with_perf(tmp_path: Path, user_ms: int, agree: bool) -> None:
    """0.15 of 0.75, and three deviations of 1500 samples of a millisecond, 116 of them, over 2000: 0.1125 + 0.0581."""
    (compared,) = measured(tmp_path, lossy(), perf_user_ms=user_ms, perf_period_ns=MS).cross_checks
    assert compared.sources == {"counter": pytest.approx(0.75), "perf": pytest.approx(0.75 - user_ms / 100)}
    assert compared.agree is agree
