# SPDX-License-Identifier: Apache-2.0
"""Sweeps: of many runs a plan is compiled when its run's turn comes, and once; what is there is found and not made."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from howdah.build.cache import Cache, cache_root
from howdah.errors import HowdahError, ProfileError
from howdah.profile import Profile, load
from howdah.record.directory import RunDirectory, write_json
from howdah.record.index import IndexedRun
from howdah.record.provenance import analysis_sha256
from howdah.work import sweep_memory
from howdah.work.batch import Rest, run_queue
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Job, Outcome, Work
from howdah.work.planned import Prepared, Runs
from howdah.work.prepared import find_existing_runs, make
from howdah.work.queue import RunQueue
from howdah.work.sweep_memory import SweepMemory, useless_memories

RUNS = 1200
SOME = 30 + 40 - 1  # plans that stand for all
PROFILE = f"""\
howdah: 1
name: wide
duration: 1 s
path:
  rate: [{", ".join(f"{each} Mbit/s" for each in range(5, 35))}]
  rtt: [{", ".join(f"{each} ms" for each in range(10, 50))}]
  buffer: 1 bdp
algorithm: standard
"""
# A flow that starts at 1 s or later and a run of 1 s are each right with the first value of the other.
WRONG = f"""\
howdah: 1
name: wide
duration: [{", ".join(f"{each} s" for each in range(3, 0, -1))}]
path: {{rate: 10 Mbit/s, rtt: [20 ms, 10 ms], buffer: 1 bdp}}
algorithm: standard
flows: [{{start: [0 ms, 300 ms, 600 ms, 900 ms, 1200 ms]}}]
"""

FEW = 30
WRONG_RUNS = ["1s-20ms-1200ms-r0", "1s-10ms-1200ms-r0"]


class _Place:
    """An executor that makes runs at once, two at a time; it stops as by Ctrl-C when it has made ``most``."""

    def __init__(self, most: int = RUNS) -> None:
        self.most = most
        self.made: list[str] = []
        self.ended: list[Outcome] = []
        self.total: int | None = None
        self.handed: list[Job] = []

    @property
    def active(self) -> list[Work]:
        return [Work(outcome.job) for outcome in self.ended]

    def open(self, _jobs: Sequence[Job], *, total: int | None = None) -> None:
        self.total = total

    def has_room(self) -> bool:
        return len(self.ended) < 2

    def give(self, job: Job) -> None:
        if len(self.made) == self.most:
            raise KeyboardInterrupt
        run = job.experiment.begin(job.cell)
        run.verdict.write_text(json.dumps({"verdict": "pass"}))
        run.metrics.write_text("{}")
        record = json.loads(run.provenance.read_text())
        write_json(run.provenance, {**record, "status": "finished", "analysis_sha256": analysis_sha256()})
        job.experiment.keep(job.cell, run)
        self.made.append(job.cell.plan.run)
        self.ended.append(Outcome(job, verdict="pass", wall_s=1.0))

    def wait(self, _timeout_s: float) -> list[Outcome]:
        ended, self.ended = self.ended, []
        return ended

    def show(self, _outcomes: Sequence[Outcome], _rest: Rest) -> None:
        """Nobody looks."""

    def kill(self) -> None:
        """Nothing is in progress."""

    def close(self) -> None:
        """It holds nothing."""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose plans were compiled."""
    module = sys.modules["howdah.work.compiled"]
    before, seen = module.compile_plan, []

    def counted(cell: object, *more: object) -> object:
        plan = before(cell, *more)
        seen.append(plan.run)
        return plan

    monkeypatch.setattr(module, "compile_plan", counted)
    return seen


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    file = tmp_path / "wide.yaml"
    file.write_text(PROFILE)
    return load(file, confirmed_runs=RUNS)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentDirectory:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    experiment = ExperimentDirectory(tmp_path / "runs" / "wide")
    experiment.create()
    return experiment


@pytest.fixture(params=["planned whole", "planned run by run"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A sweep of 30 runs, which is made to the end, is planned in both ways; the answer is whether run by run."""
    run_by_run: bool = request.param != "planned whole"
    monkeypatch.setattr(sys.modules["howdah.profile.load"], "MOST_CELLS", 20 if run_by_run else FEW)
    return run_by_run


class _Sweep:
    """A sweep whose engine is ready, and what is there of it."""

    def __init__(self, experiment: ExperimentDirectory, profile: Profile, kernel: str = "a") -> None:
        cells = Runs(compile_plans(profile), {"uml": {"kernel": kernel}, "vm": {"kernel": kernel}})
        memory = SweepMemory(experiment.path)
        self.prepared = Prepared(experiment, profile, cells, True, cells.places, memory)

    def begin(self) -> int:
        """Find what is there; the number of runs that the memory has."""
        self.prepared.open()
        found = find_existing_runs([self.prepared], 1, False, lambda _text: None)
        assert found.refused == []
        self.queue = RunQueue(found.waiting, found.there, known=found.known)
        return found.known

    def make(self, place: _Place, *, keep_going: bool = False) -> list[Outcome]:
        whole = self.prepared.cells.whole

        def listen(_active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
            assert whole or sum(not outcome.reused and outcome.error is None for outcome in outcomes) <= 2
            assert rest.total == self.queue.total

        try:
            return run_queue(self.queue, place, listen, keep_going=keep_going)
        finally:
            self.prepared.memory.close()

    @property
    def rows(self) -> list[IndexedRun]:
        return [run for _, run in self.prepared.memory.runs()]


def _stopped(experiment: ExperimentDirectory, profile: Profile, place: _Place) -> None:
    """Made until the place has made as many as it may."""
    sweep = _Sweep(experiment, profile)
    sweep.begin()
    with pytest.raises(KeyboardInterrupt):
        sweep.make(place)


def test_a_plan_is_compiled_as_its_turn_comes_and_once(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    sweep = _Sweep(experiment, profile)
    assert len(compiled) == SOME
    assert sweep.begin() == 0
    place = _Place(most=20)
    with pytest.raises(KeyboardInterrupt):
        sweep.make(place)
    assert place.total == RUNS
    assert compiled[SOME:-1] == place.made[1:]  # the first one is kept; at the last one it was stopped
    assert place.made[0] == "34mbit-10ms-r0"  # the longest first, and equal ones in their order
    assert {name.split("-")[0] for name in place.made} == {"34mbit"}


def test_what_is_there_is_resumed_without_a_plan_for_each(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    first, second = _Place(most=30), _Place(most=10)
    _stopped(experiment, profile, first)
    sweep = _Sweep(experiment, profile)
    compiled.clear()
    assert sweep.begin() == len(sweep.rows) == 30
    assert {run.verdict for run in sweep.rows} == {"pass"}
    assert len(sweep.queue) == RUNS - 30
    assert compiled == []
    with pytest.raises(KeyboardInterrupt):
        sweep.make(second)
    assert not set(first.made) & set(second.made)
    assert compiled == second.made  # the next one is chosen


def _database() -> Path:
    (file,) = (cache_root() / "sweep").glob("*.sqlite")
    return file


@pytest.mark.parametrize("lose", [Path.unlink, lambda file: file.write_bytes(b"SQLite format 3\0" + b"?" * 5000)])
def test_runs_are_found_without_the_database(
    experiment: ExperimentDirectory, profile: Profile, lose: Callable[[Path], object]
) -> None:
    first, second = _Place(most=10), _Place(most=3)
    _stopped(experiment, profile, first)
    lose(_database())
    sweep = _Sweep(experiment, profile)
    assert sweep.begin() == 0
    with pytest.raises(KeyboardInterrupt):
        sweep.make(second)
    assert not set(first.made) & set(second.made)
    assert sweep.queue.past.reused == 10


@pytest.mark.parametrize("name", ["run.json", "plan.json", "metrics.json", "verdict.json"])
def test_a_run_whose_file_was_changed_is_looked_at_anew(
    experiment: ExperimentDirectory, profile: Profile, name: str
) -> None:
    _stopped(experiment, profile, _Place(most=10))
    file = next(experiment.path.glob("*/run.json")).parent / name
    file.write_text("{}")
    sweep = _Sweep(experiment, profile)
    assert sweep.begin() == 9
    assert file.parent.name not in [row.run for row in sweep.rows]


def test_another_directory_of_runs_has_another_memory(
    experiment: ExperimentDirectory, profile: Profile, tmp_path: Path
) -> None:
    """Nothing that comes with a directory says which of its runs count."""
    _stopped(experiment, profile, _Place(most=10))
    experiment.path.rename(tmp_path / "taken")
    assert _Sweep(ExperimentDirectory(tmp_path / "taken"), profile).begin() == 0


def test_a_run_that_is_being_read_when_a_sweep_is_interrupted_is_kept(
    experiment: ExperimentDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.work.sweep_memory.stamp", lambda _run: b"stamp")
    monkeypatch.setattr("howdah.work.sweep_memory.is_settled", lambda _stamp: True)
    row = IndexedRun(run="r0", axes={}, algorithm="cubic", repetition=0, status="finished", verdict="pass")
    interrupts = [KeyboardInterrupt()]

    def read() -> IndexedRun:
        if interrupts:
            raise interrupts.pop()
        return row

    memory = SweepMemory(experiment.path)
    memory.open("recipe")
    with pytest.raises(KeyboardInterrupt):
        memory.add(7, RunDirectory(experiment.path / "r0"), read)
    memory.settle()
    assert [(number, run.run) for number, run in memory.runs()] == [(7, "r0")]
    memory.close()


def test_a_reader_that_writes_at_the_same_time_stops_no_sweep(
    experiment: ExperimentDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_memory, "_LOCKED_S", 0.0)
    monkeypatch.setattr(sweep_memory, "_TICK_S", -1e6)  # what was written just now is old enough
    (experiment.path / "r0").mkdir(parents=True)
    (experiment.path / "r0" / "run.json").write_text("{}")
    row = IndexedRun(run="r0", axes={}, algorithm="cubic", repetition=0, status="finished", verdict="pass")
    memory = SweepMemory(experiment.path)
    memory.open("recipe")
    with closing(sweep_memory.connect(memory.file, experiment.path)) as reader:
        reader.execute("BEGIN IMMEDIATE")
        memory.add(7, RunDirectory(experiment.path / "r0"), lambda: row)
        memory.flush()
        assert list(memory.runs()) == []
    memory.add(8, RunDirectory(experiment.path / "r0"), lambda: row)
    assert [number for number, _ in memory.runs()] == [7, 8], "the first is kept as soon as it can be"
    memory.close()


def test_the_memory_of_an_experiment_that_is_gone_can_go(experiment: ExperimentDirectory, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=1))
    assert list(useless_memories(Cache())) == []
    shutil.rmtree(experiment.path)
    assert list(useless_memories(Cache())) == [(_database(), f"there is no {experiment.path.resolve()}")]
    _database().write_bytes(b"?")
    assert list(useless_memories(Cache())) == [(_database(), "it cannot be read")]


def test_another_kernel_takes_nothing_from_the_memory(experiment: ExperimentDirectory, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=5))
    assert _Sweep(experiment, profile, kernel="b").begin() == 0


def test_what_is_told_before_the_first_run_needs_no_plan_more(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    sweep = _Sweep(experiment, profile)
    sweep.begin()
    sweep.prepared.write_index()
    sweep.prepared.memory.close()
    assert sweep.prepared.engines == ["uml"]
    assert json.loads(experiment.index.read_text())["total"] == RUNS
    assert len(compiled) == SOME


def test_the_last_run_ends_a_sweep_and_nothing_is_left_for_another_command(
    experiment: ExperimentDirectory, tmp_path: Path, compiled: list[str], few: bool
) -> None:
    file = tmp_path / "right.yaml"
    file.write_text(WRONG.replace(" 1 s]", " 1500 ms]"))
    profile = load(file, confirmed_runs=FEW)
    sweep, place = _Sweep(experiment, profile), _Place()
    assert len(compiled) == (3 + 2 + 5 - 2 if few else FEW)
    assert sweep.begin() == 0
    compiled.clear()
    outcomes = sweep.make(place)
    assert sorted(outcome.cell.plan.run for outcome in outcomes) == ([] if few else sorted(place.made))
    assert set(compiled) <= set(place.made)
    assert len(compiled) == len(set(compiled)) == (FEW - 8 if few else 0)
    assert len(set(place.made)) == len(place.made) == FEW
    assert (sweep.queue.past.count, sweep.queue.past.made) == ((FEW, FEW) if few else (0, 0))
    again, none = _Sweep(experiment, profile), _Place(most=0)
    assert (again.begin(), len(again.queue)) == (FEW if few else 0, 0)
    again.prepared.write_index()
    rows = json.loads(experiment.index.read_text())["cells"]
    assert {(row["status"], row["verdict"]) for row in rows} == {("finished", "pass")}
    assert {row["run"] for row in rows} == {path.parent.name for path in experiment.path.glob("*/run.json")}
    assert len(rows) == FEW
    assert [outcome.reused for outcome in again.make(none)] == ([] if few else FEW * [True])
    assert none.made == []


def test_an_interrupted_sweep_goes_on_where_it_was(experiment: ExperimentDirectory, tmp_path: Path, few: bool) -> None:
    file = tmp_path / "right.yaml"
    file.write_text(WRONG.replace(" 1 s]", " 1500 ms]"))
    profile = load(file, confirmed_runs=FEW)
    first, second = _Place(most=10), _Place()
    _stopped(experiment, profile, first)
    sweep = _Sweep(experiment, profile)
    assert sweep.begin() == (10 if few else 0)
    assert (sweep.queue.total, len(sweep.queue)) == (FEW, FEW - 10)
    outcomes = sweep.make(second)
    assert sum(outcome.reused for outcome in outcomes) + sweep.queue.past.reused == 10
    assert len({*first.made, *second.made}) == len(first.made) + len(second.made) == FEW


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("collect: {cpu: true}\n", "5mbit-10ms-r0 measures processor time, which is that of one machine"),
        ("engine: vm\n", "the engine vm makes 5mbit-10ms-r0 here"),
    ],
)
def test_a_larger_sweep_that_other_machines_cannot_make_is_refused_with_the_reason(
    experiment: ExperimentDirectory, tmp_path: Path, extra: str, why: str
) -> None:
    (tmp_path / "wide.yaml").write_text(PROFILE + extra)
    sweep = _Sweep(experiment, load(tmp_path / "wide.yaml", confirmed_runs=RUNS))
    place = _Place()
    with pytest.raises(HowdahError, match=f"can only be made on this machine: {why}") as caught:
        make([sweep.prepared], 1, False, lambda *_: None, tell=lambda _text: None, executor=place)
    assert "leave out --scheduler and --cluster" in (caught.value.hint or "")
    assert place.made == []


def test_a_point_that_is_wrong_is_told_before_a_sweep_that_is_planned_whole(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    with pytest.raises(ProfileError, match="the flow starts at or after the end of the run"):
        load(file)


@pytest.mark.parametrize("few", ["planned run by run"], indirect=True)
@pytest.mark.parametrize("keep_going", [True, False])
def test_a_point_that_is_wrong_fails_in_its_turn_and_by_its_name(
    experiment: ExperimentDirectory, tmp_path: Path, few: bool, keep_going: bool
) -> None:
    """It ends a sweep that is not to go on."""
    assert few
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    sweep, place = _Sweep(experiment, load(file, confirmed_runs=FEW)), _Place()
    sweep.begin()
    noted = sweep.make(place, keep_going=keep_going)
    failed = {outcome.cell.directory_name: str(outcome.error) for outcome in noted}
    assert len(place.made) == FEW - len(WRONG_RUNS)
    assert list(failed) == WRONG_RUNS[: len(WRONG_RUNS) if keep_going else 1]
    assert {error.splitlines()[0] for error in failed.values()} == {
        f"{file}:6: flows.1.start: the flow starts at or after the end of the run"
    }
    assert len(sweep.queue) == (0 if keep_going else 1)
