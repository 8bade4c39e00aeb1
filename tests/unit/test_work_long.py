# SPDX-License-Identifier: Apache-2.0
"""A sweep of more runs than are planned at once: a plan is compiled when its run's turn comes, and once."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from howdah.profile import Profile, load
from howdah.record.directory import write_json
from howdah.record.provenance import analysis_sha256
from howdah.work.batch import Rest, run_queue
from howdah.work.experiment import Experiment
from howdah.work.job import Job, Outcome, Work
from howdah.work.long import LongPlans, LongSweep
from howdah.work.prepared import Prepared, compile_plans

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
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    experiment = Experiment(tmp_path / "runs" / "wide")
    experiment.create()
    return experiment


def _sweep(experiment: Experiment, profile: Profile) -> LongSweep:
    plans = compile_plans(profile)
    assert isinstance(plans, LongPlans)
    return LongSweep(experiment, plans, {"uml": {"kernel": "a"}})


def _stopped(experiment: Experiment, profile: Profile, place: _Place) -> None:
    """Made until the place has made as many as it may."""
    sweep = _sweep(experiment, profile)
    sweep.begin(again=False)
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, place)


def _made(sweep: LongSweep, place: _Place) -> list[Outcome]:
    def listen(_active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        assert sum(not outcome.reused for outcome in outcomes) <= 2  # they are not kept
        assert rest.total == RUNS

    try:
        return run_queue(sweep, place, listen)
    finally:
        sweep.ledger.close()


def test_a_plan_is_compiled_as_its_turn_comes_and_once(
    experiment: Experiment, profile: Profile, compiled: list[str]
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
    experiment: Experiment, profile: Profile, compiled: list[str]
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


def test_runs_are_found_without_a_ledger(experiment: Experiment, profile: Profile) -> None:
    first, second = _Place(most=10), _Place(most=3)
    _stopped(experiment, profile, first)
    (experiment.path / ".ledger").unlink()
    sweep = _sweep(experiment, profile)
    assert sweep.begin(again=False) == 0
    with pytest.raises(KeyboardInterrupt):
        _made(sweep, second)
    assert not set(first.made) & set(second.made)
    assert sweep.past.reused == 10


def test_a_run_whose_file_was_changed_is_looked_at_anew(experiment: Experiment, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=10))
    next(experiment.path.glob("*/verdict.json")).write_text('{"verdict": "fail"} ')
    assert _sweep(experiment, profile).begin(again=False) == 9


def test_a_line_that_another_wrote_does_not_count(experiment: Experiment, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=10))
    ledger = experiment.path / ".ledger"
    ledger.write_text(ledger.read_text().replace('"pass"', '"fail"', 1))
    assert _sweep(experiment, profile).begin(again=False) == 9


def test_another_kernel_takes_nothing_from_the_ledger(experiment: Experiment, profile: Profile) -> None:
    _stopped(experiment, profile, _Place(most=5))
    plans = compile_plans(profile)
    assert isinstance(plans, LongPlans)
    assert LongSweep(experiment, plans, {"uml": {"kernel": "b"}}).begin(again=False) == 0


def test_what_is_told_before_the_first_run_needs_no_plan_more(
    experiment: Experiment, profile: Profile, compiled: list[str]
) -> None:
    sweep = _sweep(experiment, profile)
    sweep.begin(again=False)
    prepared = Prepared(experiment, profile, [], True, sweep)
    prepared.write_index()
    sweep.ledger.close()
    assert prepared.engines == ["uml"]
    assert json.loads(experiment.index.read_text())["total"] == RUNS
    assert len(compiled) == SOME
