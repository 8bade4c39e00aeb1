# SPDX-License-Identifier: Apache-2.0
"""The index of an experiment: true after every change of the files, and never needed."""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import howdah
from howdah.library import gathered, index
from howdah.record import directory as state
from howdah.record.digest import MismatchError, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.run import read_record
from howdah.work import results
from howdah.work.sweep_memory import database_of
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.indexed import NAMES, assert_same, plain_tables, runs_read, tables


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(gathered, "LEAST_RUNS", 1)
    monkeypatch.setattr(state, "STEP_NS", -(10**12))  # what was written just now is old enough
    axes = ({"path.rate": 10_000_000}, {"path.rate": 20_000_000})
    scenario = Scenario(repetitions=1, duration_s=2.0, second_flow_s=1.0, axes=axes, invalid=(("reno", 0),))
    made = make_experiment(tmp_path, scenario)
    for run in _runs(made):
        seal(run, read_record(run).replaced(analysis_sha256=analysis_sha256()))
    return made


def _runs(root: Path) -> list[RunDirectory]:
    return [RunDirectory(path.parent) for path in sorted(root.glob("*/run.json"))]


def _same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same(tables(root), plain_tables(root, monkeypatch))


def test_the_second_reading_reads_no_run_and_gives_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tables(root)
    read = runs_read(monkeypatch)
    second = tables(root)
    assert read == []
    assert {name: table.to_pylist() for name, table in first.items()} == {
        name: table.to_pylist() for name, table in second.items()
    }
    assert first["metrics"].num_rows > 0
    _same(root, monkeypatch)


def test_a_run_that_was_recorded_anew_is_read_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(root)
    run = next(each for each in _runs(root) if each.name.startswith("cubic"))
    metrics = read_json(run.metrics)
    metrics["rows"][0]["value"] = 4711
    write_json(run.metrics, metrics)
    seal(run, read_record(run))
    read = runs_read(monkeypatch)
    assert 4711 in tables(root)["metrics"]["value"].to_pylist()
    assert read == [run.name]
    _same(root, monkeypatch)


def test_a_change_of_equal_size_and_time_is_refused(root: Path) -> None:
    tables(root)
    file = _runs(root)[0].metrics
    before = file.stat()
    content = file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(content.replace(b"cubic", b"cubix"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_ino, file.stat().st_size) == (before.st_ino, before.st_size)
    with pytest.raises(MismatchError, match="was changed after it was recorded"):
        tables(root)


def test_runs_that_went_and_came_are_gone_and_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tables(root)["runs"].num_rows
    run = _runs(root)[0]
    run.path.rename(root.parent / "aside")
    assert tables(root)["runs"].num_rows == whole - 1
    _same(root, monkeypatch)
    (root.parent / "aside").rename(run.path)
    assert tables(root)["runs"].num_rows == whole
    _same(root, monkeypatch)
    run.metrics.unlink()
    with pytest.raises(MismatchError, match="is missing"):
        tables(root)


def test_an_axis_of_another_type_is_one_type_in_all_rows(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(root)
    run = _runs(root)[0]
    plan = read_json(run.plan)
    plan["axes"]["path.rate"] = "fast"
    write_json(run.plan, plan)
    seal(run, read_record(run))
    assert "fast" in tables(root)["metrics"]["path.rate"].to_pylist()
    _same(root, monkeypatch)


def test_results_of_another_analysis_are_not_taken_from_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(root)
    monkeypatch.setattr(index, "analysis_sha256", lambda: "another")
    read = runs_read(monkeypatch)
    tables(root)
    assert sorted(read) == sorted(run.name for run in _runs(root))


def _one_column(content: bytes) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(content)).select([0]), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [lambda _content: b"PAR1", _one_column], ids=["garbage", "one column"])
def test_rows_that_are_not_what_they_should_be_are_as_good_as_none(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[bytes], bytes]
) -> None:
    tables(root)
    with sqlite3.connect(database_of(root)) as database:
        (content,) = database.execute("SELECT parquet FROM piece_rows WHERE name = ?", (name,)).fetchone()
        database.execute("UPDATE piece_rows SET parquet = ? WHERE name = ?", (change(content), name))
    _same(root, monkeypatch)


@pytest.mark.parametrize("axes", ["no JSON", "[]", '{"path.rate": []}', None])
def test_axes_that_are_none_are_as_good_as_no_index(
    root: Path, monkeypatch: pytest.MonkeyPatch, axes: str | None
) -> None:
    tables(root)
    with sqlite3.connect(database_of(root)) as database:
        database.execute("UPDATE piece_run SET axes = ?", (axes,))
    _same(root, monkeypatch)


def test_a_reader_whose_index_another_one_replaces_reads_the_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plain_tables(root, monkeypatch)
    tables(root)
    mine = howdah.load(root)
    assert mine.runs.to_arrow().num_rows > 0
    opened = index.Index.open(root)
    assert opened is not None
    index.write_index(root, opened.known, opened.table, opened.pieces)
    assert mine.metrics.to_arrow().to_pylist() == plain["metrics"].to_pylist()
    read = runs_read(monkeypatch)
    assert_same(tables(root), plain)
    assert read == []


def test_one_that_is_cut_short_is_as_good_as_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(root)
    file = database_of(root)
    file.write_bytes(file.read_bytes()[:-5000])
    _same(root, monkeypatch)
    file.write_bytes(b"no database")
    _same(root, monkeypatch)
    read = runs_read(monkeypatch)
    tables(root)
    assert read == [], "a damaged one was replaced"


def test_a_copy_has_an_index_of_its_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables(root)
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    read = runs_read(monkeypatch)
    tables(copy)
    assert sorted(read) == sorted(run.name for run in _runs(copy))


def test_another_directory_in_the_place_of_the_first_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy has other inodes and times of change, which nobody can forge from afar."""
    tables(root)
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    shutil.rmtree(root)
    copy.rename(root)
    read = runs_read(monkeypatch)
    tables(root)
    assert sorted(read) == sorted(run.name for run in _runs(root))


def test_without_a_cache_everything_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("/nowhere/with a space", "/proc/nowhere"):
        monkeypatch.setenv("HOWDAH_CACHE", place)
        _same(root, monkeypatch)


def test_where_none_can_be_written_everything_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(gathered, "write_index", refused)
    _same(root, monkeypatch)
    assert index.Index.open(root) is None


def test_what_was_written_just_now_is_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "STEP_NS", 10**12)
    tables(root)
    assert index.Index.open(root) is None


def test_many_runs_are_read_in_pieces_and_give_what_one_reading_gives(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = plain_tables(root, monkeypatch)
    monkeypatch.setattr(results, "PIECE", 1)
    _same(root, monkeypatch)
    assert {name: table.to_pylist() for name, table in tables(root).items()} == {
        name: table.to_pylist() for name, table in whole.items()
    }


def test_an_axis_with_other_kinds_in_other_pieces_is_one_type(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _runs(root)[0]
    plan = read_json(run.plan)
    plan["axes"]["path.rate"] = 0.5
    write_json(run.plan, plan)
    seal(run, read_record(run))
    whole = plain_tables(root, monkeypatch)
    monkeypatch.setattr(results, "PIECE", 1)
    found = tables(root)
    assert found["runs"]["path.rate"].type == pa.float64()
    assert {name: table.to_pylist() for name, table in found.items()} == {
        name: table.to_pylist() for name, table in whole.items()
    }
