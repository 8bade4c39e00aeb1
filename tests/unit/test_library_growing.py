# SPDX-License-Identifier: Apache-2.0
"""Pieces of an index that a sweep leaves: its first reading finds rows there, and never one that no longer holds."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from howdah.command import run as command
from howdah.errors import HowdahError
from howdah.library import gathered, growing
from howdah.library.growing import IndexingListener
from howdah.library.index import Index
from howdah.library.result import Types
from howdah.record import directory as state
from howdah.record.digest import MismatchError, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.result import Run, load_experiment
from howdah.record.run import read_record
from howdah.work.batch import Outcome, Rest
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.job import Job, Past
from howdah.work.sweep_memory import database_of
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.indexed import assert_same, plain_tables, runs_read, tables

RUNS = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    axes = tuple({"path.rate": rate} for rate in (10_000_000, 20_000_000, 30_000_000))
    return make_experiment(
        tmp_path_factory.mktemp("made"), Scenario(repetitions=1, duration_s=1.0, second_flow_s=0.3, axes=axes)
    )


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Pieces of few runs."""
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(gathered, "LEAST_RUNS", 1)
    monkeypatch.setattr(state, "STEP_NS", -(10**12))  # what was written just now is old enough
    for name, number in (("WAITING", 2), ("PIECE", 2), ("WRITTEN", 4)):
        monkeypatch.setattr(growing, name, number)


@pytest.fixture
def swept(made: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """An experiment of six runs, which a sweep has just made: two pieces, of which one was read in two steps."""
    request.getfixturevalue("small")
    root = tmp_path / made.name
    _copy(made, root)
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, root, _runs(root))
    return root


def _copy(made: Path, root: Path) -> None:
    for file in made.rglob("*.json"):
        target = root / file.relative_to(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    for run in _runs(root):
        seal(run, read_record(run).replaced(analysis_sha256=analysis_sha256()))


def _runs(root: Path) -> list[RunDirectory]:
    found = [RunDirectory(path.parent) for path in sorted(root.glob("*/run.json"))]
    assert len(found) == RUNS
    return found


def _tell(listen: IndexingListener, root: Path, runs: list[RunDirectory], *, held: bool = True) -> None:
    """As a batch that holds on to its outcomes does, all of them each time; and as one that does not."""
    outcomes: list[Outcome] = []
    for number, run in enumerate(runs):
        plan = load_experiment(run.path).runs[0].plan
        assert plan is not None
        job = Job(ExperimentDirectory(root), PlannedRun(plan, run.name.rpartition("-")[2]))
        assert job.cell.directory_name == run.name
        outcomes.append(Outcome(job, verdict="pass"))
        if held:
            listen([], outcomes, Rest(RUNS))
        else:
            listen([], outcomes[-1:], Rest(RUNS, past=Past(count=number)))


def _pieces(root: Path) -> list[int]:
    found = Index.open(root)
    return found.pieces if found is not None else []


def _forget(root: Path) -> None:
    database_of(root).unlink()


def _same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read with the pieces, and then with the one that they become, is what is read from the runs' files."""
    plain = plain_tables(root, monkeypatch)
    for _ in range(2):
        assert_same(tables(root), plain)


def test_the_first_reading_of_a_sweep_opens_no_run(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(_pieces(swept)) == 2
    read = runs_read(monkeypatch)
    assert tables(swept)["metrics"].num_rows > 0
    assert read == []
    assert len(_pieces(swept)) == 1, "they are joined now"
    tables(swept)
    assert read == []
    _same(swept, monkeypatch)


def test_pieces_give_what_the_files_give(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _same(swept, monkeypatch)


def test_a_run_that_was_recorded_anew_is_read_anew(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _runs(swept)[1]
    metrics = read_json(run.metrics)
    metrics["rows"][0]["value"] = 4711
    write_json(run.metrics, metrics)
    seal(run, read_record(run))
    read = runs_read(monkeypatch)
    assert 4711 in tables(swept)["metrics"]["value"].to_pylist()
    assert read == [run.name]
    _same(swept, monkeypatch)


def test_a_changed_measure_of_equal_size_and_time_is_refused(swept: Path) -> None:
    file = _runs(swept)[0].metrics
    before = file.stat()
    content = file.read_bytes()
    with file.open("r+b") as opened:
        opened.write(content.replace(b"cubic", b"cubix"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(MismatchError, match="was changed after it was recorded"):
        tables(swept)


def test_runs_that_went_and_came_are_gone_and_there(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _runs(swept)[0]
    run.path.rename(swept.parent / "aside")
    assert tables(swept)["runs"].num_rows == RUNS - 1
    (swept.parent / "aside").rename(run.path)
    assert tables(swept)["runs"].num_rows == RUNS
    _same(swept, monkeypatch)


def test_a_run_that_is_made_later_is_in_the_next_piece(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest piece tells of a run that two have."""
    run = _runs(swept)[2]
    metrics = read_json(run.metrics)
    metrics["rows"][0]["value"] = 4711
    write_json(run.metrics, metrics)
    seal(run, read_record(run))
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, swept, [run])
    assert len(_pieces(swept)) == 3
    read = runs_read(monkeypatch)
    assert 4711 in tables(swept)["metrics"]["value"].to_pylist()
    assert read == []
    _same(swept, monkeypatch)


def test_a_piece_that_is_not_whole_costs_no_wrong_row(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(database_of(swept)) as database:
        database.execute("DELETE FROM piece_rows WHERE piece = ? AND name = 'exits'", (_pieces(swept)[1],))
    _same(swept, monkeypatch)


@pytest.mark.usefixtures("small")
def test_values_of_other_kinds_in_other_pieces_are_one_type(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers widen; of texts and numbers all rows are read again."""
    for value, kind in ((0.5, pa.float64()), ("fast", pa.string())):
        root = tmp_path / str(value) / made.name
        _copy(made, root)
        run = _runs(root)[-1]
        plan = read_json(run.plan)
        plan["axes"]["path.rate"] = value
        write_json(run.plan, plan)
        seal(run, read_record(run))
        with IndexingListener(lambda *_: None) as listen:
            _tell(listen, root, _runs(root))
        assert _pieces(root)
        assert tables(root)["runs"]["path.rate"].type == kind
        _same(root, monkeypatch)


@pytest.mark.usefixtures("small")
def test_an_error_leaves_what_was_read(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "again" / made.name
    _copy(made, root)

    def interrupted() -> None:
        with IndexingListener(lambda *_: None) as listen:
            _tell(listen, root, _runs(root)[:3])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    read = runs_read(monkeypatch)
    tables(root)
    assert len(read) == RUNS - 2
    _same(root, monkeypatch)


def test_outcomes_that_a_batch_does_not_hold_on_to_are_heard(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(swept)
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, swept, _runs(swept), held=False)
    assert len(_pieces(swept)) == 2
    read = runs_read(monkeypatch)
    tables(swept)
    assert read == []


def test_only_runs_that_were_made_are_read(swept: Path) -> None:
    pieces = _pieces(swept)
    heard: list[int] = []
    plan = load_experiment(_runs(swept)[0].path).runs[0].plan
    assert plan is not None
    job = Job(ExperimentDirectory(swept), PlannedRun(plan, "00000000"))
    outcomes = [Outcome(job, verdict="pass", reused=True), Outcome(job, error=HowdahError("no engine"))]
    with IndexingListener(lambda _active, told, _rest: heard.append(len(told))) as listen:
        listen([], outcomes, Rest(RUNS))
    assert heard == [2]
    assert _pieces(swept) == pieces


def test_a_piece_that_cannot_be_written_stops_no_sweep(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    _forget(swept)
    monkeypatch.setattr(growing, "write_index", full)
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, swept, _runs(swept))
    assert _pieces(swept) == []
    _same(swept, monkeypatch)


def test_rows_that_cannot_be_made_stop_no_sweep_and_are_in_no_piece(
    swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str, runs: list[Run], types: Types) -> pa.Table:
        if name == "exits" and runs[0].name == _runs(swept)[0].name:
            raise OverflowError("a number is too large")
        return gathered.rows_of(name, runs, types)

    _forget(swept)
    monkeypatch.setattr(growing, "rows_of", refused)
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, swept, _runs(swept))
    read = runs_read(monkeypatch)
    tables(swept)
    assert len(read) == 2
    _same(swept, monkeypatch)


def test_a_run_that_is_told_twice_has_its_rows_once(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _forget(swept)
    with IndexingListener(lambda *_: None) as listen:
        _tell(listen, swept, [*_runs(swept)[:2], *_runs(swept)[:1]])
    _same(swept, monkeypatch)


def test_few_runs_are_listened_to_by_nobody_else() -> None:
    def listen(*_: object) -> None: ...

    with command._with_rows_made_early(listen, command.INDEXED_RUNS - 1) as heard:
        assert heard is listen
    with command._with_rows_made_early(listen, command.INDEXED_RUNS) as heard:
        assert isinstance(heard, IndexingListener)
