# SPDX-License-Identifier: Apache-2.0
"""A sweep of more runs than are planned at once: a plan is compiled when its run's turn comes, and once."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from howdah.build.cache import Cache, cache_root
from howdah.profile import Profile, load
from howdah.record.directory import write_json
from howdah.record.provenance import analysis_sha256
from howdah.work.batch import Rest, run_queue
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Job, Outcome, Work
from howdah.work.long import LongPlans, LongQueue
from howdah.work.prepared import Prepared
from howdah.work.sweep_memory import useless_memories

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
    module = sys.modules["howdah.work.long"]
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


@pytest.fixture
def _short_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of 30 runs is long: those that are made to the end."""
    monkeypatch.setattr(sys.modules["howdah.profile.load"], "MOST_CELLS", 20)


def _sweep(experiment: ExperimentDirectory, profile: Profile) -> LongQueue:
    plans = compile_plans(profile)
    assert isinstance(plans, LongPlans)
    return LongQueue(experiment, plans, {"uml": {"kernel": "a"}})


def _stopped(experiment: ExperimentDirectory, profile: Profile, place: _Place) -> None:
    """Made until the place has made as many as it may."""
    sweep = _sweep(experiment, profile)
    sweep.begin(again=False)
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, place)


def _made(sweep: LongQueue, place: _Place, *, keep_going: bool = False) -> list[Outcome]:
    def listen(_active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        assert sum(not outcome.reused for outcome in outcomes) <= 2  # they are not kept
        assert rest.total == sweep.total

    try:
        return run_queue(sweep, place, listen, keep_going=keep_going)
    finally:
        sweep.memory.close()


def test_a_plan_is_compiled_as_its_turn_comes_and_once(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    sweep = _sweep(experiment, profile)
    assert len(compiled) == SOME
    assert sweep.begin(again=False) == 0
    place = _Place(most=20)
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, place)
    assert place.total == RUNS
    assert compiled[SOME:-1] == place.made  # and that of the run at which it was stopped
    assert place.made[0] == "34mbit-10ms-r0"  # the longest first, and equal ones in their order
    assert {name.split("-")[0] for name in place.made} == {"34mbit"}


def test_what_is_there_is_resumed_without_a_plan_for_each(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    first, second = _Place(most=30), _Place(most=10)
    _stopped(experiment, profile, first)
    sweep = _sweep(experiment, profile)
    compiled.clear()
    assert sweep.begin(again=False) == len(list(sweep.rows())) == 30
    assert sweep.verdicts == {"pass": 30}
    assert len(sweep) == RUNS - 30
    assert compiled == []
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, second)
    assert not set(first.made) & set(second.made)
    assert compiled[:-1] == second.made


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
    sweep = _sweep(experiment, profile)
    assert sweep.begin(again=False) == 0
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, second)
    assert not set(first.made) & set(second.made)
    assert sweep.past.reused == 10


@pytest.mark.parametrize("name", ["run.json", "plan.json", "metrics.json", "verdict.json"])
def test_a_run_whose_file_was_changed_is_looked_at_anew(
    experiment: ExperimentDirectory, profile: Profile, name: str
) -> None:
    _stopped(experiment, profile, _Place(most=10))
    file = next(experiment.path.glob("*/run.json")).parent / name
    file.write_text("{}")
    sweep = _sweep(experiment, profile)
    assert sweep.begin(again=False) == 9
    assert file.parent.name not in [row.run for row in sweep.rows()]


def test_another_directory_of_runs_has_another_memory(
    experiment: ExperimentDirectory, profile: Profile, tmp_path: Path
) -> None:
    """Nothing that comes with a directory says which of its runs count."""
    _stopped(experiment, profile, _Place(most=10))
    experiment.path.rename(tmp_path / "taken")
    assert _sweep(ExperimentDirectory(tmp_path / "taken"), profile).begin(again=False) == 0


def test_the_memory_of_an_experiment_that_is_gone_can_go(experiment: ExperimentDirectory, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=1))
    assert list(useless_memories(Cache())) == []
    shutil.rmtree(experiment.path)
    assert list(useless_memories(Cache())) == [(_database(), f"there is no {experiment.path.resolve()}")]
    _database().write_bytes(b"?")
    assert list(useless_memories(Cache())) == [(_database(), "it cannot be read")]


def test_another_kernel_takes_nothing_from_the_memory(experiment: ExperimentDirectory, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=5))
    plans = compile_plans(profile)
    assert isinstance(plans, LongPlans)
    assert LongQueue(experiment, plans, {"uml": {"kernel": "b"}}).begin(again=False) == 0


def test_what_is_told_before_the_first_run_needs_no_plan_more(
    experiment: ExperimentDirectory, profile: Profile, compiled: list[str]
) -> None:
    sweep = _sweep(experiment, profile)
    sweep.begin(again=False)
    prepared = Prepared(experiment, profile, [], True, sweep)
    prepared.write_index()
    sweep.memory.close()
    assert prepared.engines == ["uml"]
    assert json.loads(experiment.index.read_text())["total"] == RUNS
    assert len(compiled) == SOME


@pytest.mark.usefixtures("_short_are_long")
def test_the_last_run_ends_a_sweep_and_nothing_is_left_for_another_command(
    experiment: ExperimentDirectory, tmp_path: Path, compiled: list[str]
) -> None:
    file = tmp_path / "right.yaml"
    file.write_text(WRONG.replace(" 1 s]", " 1500 ms]"))
    profile = load(file, confirmed_runs=FEW)
    sweep, place = _sweep(experiment, profile), _Place()
    sweep.begin(again=False)
    compiled.clear()
    assert _made(sweep, place) == []
    assert compiled == place.made
    assert len(set(place.made)) == len(place.made) == FEW
    assert (sweep.past.count, sweep.past.made, sweep.verdicts) == (FEW, FEW, {"pass": FEW})
    again, none = _sweep(experiment, profile), _Place(most=0)
    assert (again.begin(again=False), len(again)) == (FEW, 0)
    prepared = Prepared(experiment, profile, [], True, again)
    prepared.write_index()
    rows = json.loads(experiment.index.read_text())["cells"]
    assert {(row["status"], row["verdict"]) for row in rows} == {("finished", "pass")}
    assert {row["run"] for row in rows} == {path.parent.name for path in experiment.path.glob("*/run.json")}
    assert len(rows) == FEW
    assert (_made(again, none), none.made) == ([], [])


@pytest.mark.usefixtures("_short_are_long")
def test_a_point_that_is_wrong_fails_in_its_turn_and_by_its_name(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    sweep, place = _sweep(experiment, load(file, confirmed_runs=FEW)), _Place()
    sweep.begin(again=False)
    assert _made(sweep, place, keep_going=True) == []
    failed = {outcome.cell.directory_name: str(outcome.error) for outcome in sweep.noted}
    assert len(place.made) == FEW - len(WRONG_RUNS)
    assert list(failed) == WRONG_RUNS
    assert {error.splitlines()[0] for error in failed.values()} == {
        f"{file}:6: flows.1.start: the flow starts at or after the end of the run"
    }
    assert sweep.past.failed == len(WRONG_RUNS)


@pytest.mark.usefixtures("_short_are_long")
def test_a_point_that_is_wrong_ends_a_sweep_that_is_not_to_go_on(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    sweep, place = _sweep(experiment, load(file, confirmed_runs=FEW)), _Place()
    sweep.begin(again=False)
    _made(sweep, place)
    assert len(sweep.noted) == 1
    assert len(place.made) == FEW - len(WRONG_RUNS)
    assert len(sweep) == 1
