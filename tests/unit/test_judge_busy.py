# SPDX-License-Identifier: Apache-2.0
"""How long a processor was idle while something was late, and whether that excuses it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.judge.engine import Idle, idle_of, is_excused
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory, write_json
from howdah.record.schema import CPU
from tests.unit.plan_factory import make_plan, on_engine

MS = 1_000_000
# Begin and length of an interval, and how long the kernel and the idle loop had the processor, in ms.
INTERVALS = [(100, 100, 70, 30), (200, 100, 100, 0), (300, 100, 120, 0), (400, 50, 40, 10)]


def plan(engine: str = "vm", cpu: bool = True) -> Plan:
    base = on_engine(make_plan(), engine)
    return dataclasses.replace(base, collect=dataclasses.replace(base.collect, cpu=cpu))


def idle(path: Path, of: Plan, account: Any = None, intervals: list[tuple[int, ...]] | None = None) -> Idle | None:
    directory = RunDirectory(path)
    directory.tables.mkdir(exist_ok=True)
    none = {"symbol": "", "inlined": ""}
    rows = [
        {"time_ns": begin * MS, "duration_ns": length * MS, "domain": domain, "cpu_ns": spent * MS, **none}
        for begin, length, *each in (INTERVALS if intervals is None else intervals)
        for domain, spent in zip(("kernel", "idle"), each, strict=True)
    ]
    store.write(directory, "cpu", store.table_of("cpu", {name: [row[name] for row in rows] for name in CPU.names}))
    counter = {"sources": {"cpu": {"counts": {"source": "counter"}}}}
    write_json(directory.tables / "ingest.json", counter if account is None else account)
    return idle_of(directory, of)


@pytest.mark.parametrize(
    ("begin_ms", "end_ms", "idle_ms"),
    [
        (100, 200, 30),
        (100, 300, 30),
        (110, 120, 10),  # all of the interval's idle time may have been then, but no more than there is
        (150, 250, 30),
        (200, 300, 0),  # what ends or begins at an edge is not part of it
        (300, 400, 0),  # busy for more than its length: no less than nothing was idle
        (100, 450, 40),
        (99, 200, 101),  # nobody looked before 100 ms, nor after 450
        (200, 451, 251),
    ],
)
def test_the_idle_time_is_an_upper_bound(tmp_path: Path, begin_ms: int, end_ms: int, idle_ms: int) -> None:
    found = idle(tmp_path, plan())
    assert found is not None
    assert found(begin_ms * MS, end_ms * MS) == idle_ms * MS


def test_a_counter_that_counted_nothing_excuses_nothing(tmp_path: Path) -> None:
    found = idle(tmp_path, plan(), intervals=[])
    assert found is not None
    assert found(5, 12) == 7


@pytest.mark.parametrize(
    ("of", "account"),
    [
        (plan(cpu=False), None),
        (plan("uml"), None),
        (plan(), {"sources": {"cpu": {"counts": {"source": "perf"}}}}),
        (plan(), {"sources": {"cpu": {"counts": {}}}}),
        (plan(), {"sources": {}}),
        (plan(), {}),
    ],
)
def test_without_an_exact_account_nothing_is_known(tmp_path: Path, of: Plan, account: Any) -> None:
    assert idle(tmp_path, of, account) is None


def test_an_account_that_is_missing_or_damaged_is_none(tmp_path: Path) -> None:
    assert idle_of(RunDirectory(tmp_path), plan()) is None
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "ingest.json").write_text("{")
    assert idle_of(RunDirectory(tmp_path), plan()) is None


@pytest.mark.parametrize(
    ("due_ns", "at_ns", "idle_ns", "ok"),
    [
        (1000, 1100, 5, True),
        (1000, 1100, 6, False),
        (1000, 1001, 0, True),
        (1000, 1000, 0, False),
        (1000, 900, 0, False),
    ],
)
def test_a_twentieth_of_the_delay_may_have_been_idle(due_ns: int, at_ns: int, idle_ns: int, ok: bool) -> None:
    asked: list[tuple[int, int]] = []

    def told(begin_ns: int, end_ns: int) -> int:
        asked.append((begin_ns, end_ns))
        return idle_ns

    assert is_excused(told, due_ns, at_ns) is ok
    assert asked in ([], [(due_ns, at_ns)])
    assert is_excused(None, due_ns, at_ns) is False
