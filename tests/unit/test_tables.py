# SPDX-License-Identifier: Apache-2.0
"""Tables: version, damage, and the comparison of runs."""

from __future__ import annotations

import io
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.errors import HowdahError
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import SCHEMA_VERSION, TABLES
from howdah.record.table import FLOW_NAME, Axes, with_axes


def counters(values: list[int], nodes: list[str | None] | None = None) -> pa.Table:
    count = len(values)
    names = pa.array(nodes or ["s1"] * count, pa.string()).dictionary_encode()
    columns: dict[str, Any] = {
        "node": names,
        "source": pa.array(["snmp"] * count).dictionary_encode(),
        "name": pa.array([f"Tcp{index}" for index in range(count)]).dictionary_encode(),
        "time_ns": pa.array(range(count), pa.int64()),
        "value": pa.array(values, pa.int64()),
    }
    return store.table_of("counter", columns)


def run_with(path: Path, table: pa.Table) -> RunDirectory:
    directory = RunDirectory(path)
    store.write(directory, "counter", table)
    return directory


def test_what_is_written_is_read_with_version_and_units(tmp_path: Path) -> None:
    directory = run_with(tmp_path / "run", counters([5, -7]))
    assert store.read(directory, "counter")["value"].to_pylist() == [5, -7]
    metadata = pq.read_schema(directory.table("counter")).metadata
    assert metadata[b"howdah.schema"] == str(SCHEMA_VERSION).encode()
    assert metadata[b"howdah.run"] == b"run"
    assert metadata[b"howdah.units"] == b'{"time_ns": "ns"}'


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("cwnd_packets", "packets"),
        ("pacing_rate_bytes_per_second", "bytes_per_second"),
        ("rtt_us", "us"),
        ("end", None),
    ],
)
def test_units_are_in_the_names(column: str, unit: str | None) -> None:
    assert store.unit_of(column) == unit


def test_another_version_is_refused(tmp_path: Path) -> None:
    directory = run_with(tmp_path / "run", counters([1]))
    path = directory.table("counter")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"howdah.schema": b"999"}), path)
    with pytest.raises(HowdahError, match="schema version 999"):
        store.read(directory, "counter")


def test_missing_and_damaged_tables_are_named(tmp_path: Path) -> None:
    directory = run_with(tmp_path / "run", counters([1]))
    with pytest.raises(HowdahError, match=r"flow\.parquet: table flow is missing"):
        store.read(directory, "flow")
    directory.table("counter").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(HowdahError, match=r"counter\.parquet"):
        store.read(directory, "counter")


def test_a_table_is_read_in_the_thread_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of pyarrow that still holds a Python file when the program ends aborts it (SIGABRT, no exit code)."""
    run = run_with(tmp_path, counters(list(range(1000))))
    threads = set()

    class Watched(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            threads.add(threading.get_ident())
            return super().read(-1 if size is None else size)

    monkeypatch.setattr(store, "open_foreign", lambda path: Watched(str(path)))
    assert store.read(run, "counter").num_rows == 1000
    assert threads == {threading.get_ident()}


def test_a_table_with_other_columns_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="columns of its schema"):
        store.write(RunDirectory(tmp_path), "flow", counters([1]))
    assert not list(tmp_path.rglob("*.parquet"))


def test_rows_of_more_flows_than_16_bits_tell_have_their_names() -> None:
    """As in a run of 100 000 connections."""
    named = {
        number: {FLOW_NAME: f"web-{number}", "algorithm": "cubic", "receiver": "linux"} for number in range(1, 70_001)
    }
    rows = pa.table({"flow": pa.array([1, 40_000, 70_000], TABLES["flow"].field("flow").type)})
    found = with_axes(rows, Axes({"run": "r"}, named))
    assert found[FLOW_NAME].to_pylist() == ["web-1", "web-40000", "web-70000"]
    assert found["algorithm"].to_pylist() == ["cubic"] * 3


def test_every_schema_can_be_empty(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    for name, schema in TABLES.items():
        store.write(directory, name, schema.empty_table())
        assert store.read(directory, name).num_rows == 0


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    a = run_with(tmp_path / "a", counters([1, 2], ["s1", None]))
    b = run_with(tmp_path / "b", counters([1, 2], ["s1", None]))
    assert store.equal(a, b) is None


@pytest.mark.parametrize(
    ("values", "nodes", "expected"),
    [
        ([1, 9, 4], ["s1", "s1", "s1"], "counter.value row 1: 2 against 9"),
        ([1, 2, 3], ["s1", "s2", "s1"], "counter.node row 1: 's1' against 's2'"),
        ([1, 2, 3], ["s1", None, "s1"], "counter.node row 1: 's1' against None"),
        ([1, 2], ["s1", "s1"], "counter row 2: 3 rows against 2"),
    ],
)
def test_the_first_difference_is_named(
    values: list[int], nodes: list[str | None], expected: str, tmp_path: Path
) -> None:
    a = run_with(tmp_path / "a", counters([1, 2, 3]))
    b = run_with(tmp_path / "b", counters(values, nodes))
    assert str(store.equal(a, b)) == expected


def test_a_table_that_one_run_lacks_is_a_difference(tmp_path: Path) -> None:
    a = run_with(tmp_path / "a", counters([1]))
    b = RunDirectory(tmp_path / "b")
    assert str(store.equal(a, b)) == "counter: only a has this table"


def test_the_code_of_a_text_is_no_difference(tmp_path: Path) -> None:
    a = run_with(tmp_path / "a", counters([1, 2], ["s1", "s2"]))
    table = counters([1, 2], ["s1", "s2"])
    other = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int16()), pa.array(["s2", "s1"]))
    b = run_with(tmp_path / "b", table.set_column(0, table.schema.field("node"), other))
    assert store.equal(a, b) is None
