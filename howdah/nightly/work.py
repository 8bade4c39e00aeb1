# SPDX-License-Identifier: Apache-2.0
"""The runs of a suite as one queue: missing kernels are built, what is there already is not made again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from howdah.claim.claims import judge_claims
from howdah.command.progress import Display
from howdah.engine.engine import engine as find_engine
from howdah.errors import EngineUnavailableError, HowdahError
from howdah.nightly.sheet import CellSheet, Repetition, Sheet, empty_sheet, read_experiment
from howdah.nightly.suite import Series, slug_of, slugs_of
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.report import report
from howdah.run.batch import WORKER, Job, Outcome, run_cells
from howdah.run.experiment import Cell, Experiment
from howdah.run.provenance import run_key
from howdah.run.retention import keeps_data
from howdah.run.stage import outdated, refresh

Wanted = dict[str, set[str] | None]  # experiment -> slugs of cells, None for all


@dataclass
class Made:
    """What the queue did: a sheet for each experiment, how many runs it made and found, and what went wrong."""

    sheets: dict[str, Sheet] = field(default_factory=dict)
    made: int = 0
    found: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass
class _Prepared:
    series: Series
    experiment: Experiment
    cells: list[Cell]

    def write_index(self) -> None:
        profile = self.series.profile
        about = (profile.text, str(profile.path), profile.description)
        self.experiment.write_index(*about, self.cells, quick=profile.is_quick, axes=profile.axes)


def make(series: Iterable[Series], wanted: Wanted, runs: Path, workers: int, again: bool, display: Display) -> Made:
    """Make every run that is not there yet. A kernel that does not build, or a run that fails, stops no other.

    On KeyboardInterrupt, or after a crash, what had finished is kept: the same command goes on there. Raises
    HowdahError for what is no fault of a kernel's (another night under way, a directory that cannot be written), and
    EngineUnavailableError where this machine lacks something.
    """
    done = Made()
    with ExitStack() as locks:
        prepared = []
        for one in series:
            if one.name not in wanted:
                continue
            experiment = Experiment(runs / one.name)
            experiment.create()
            locks.enter_context(experiment.locked())
            experiment.sweep_partial()
            try:
                prepared.append(_prepare(one, experiment, display))
            except EngineUnavailableError:
                raise
            except HowdahError as error:
                done.sheets[one.name] = empty_sheet(one, str(error).splitlines()[0])
                display.say(f"  ✕ {one.name}  {error.what}")
        jobs = [
            Job(each.experiment, cell) for each in prepared for cell in each.cells if _is_wanted(each, cell, wanted)
        ]
        display.say(f"nightly: {len(prepared)} experiments, {len(jobs)} runs, {workers} at a time")
        outcomes: list[Outcome] = []
        try:
            outcomes = _run(jobs, workers, again, display)
        finally:
            for each in prepared:
                each.write_index()
        done.found = sum(outcome.reused for outcome in outcomes)
        done.made = len(outcomes) - done.found
        done.problems = _problems(outcomes)
        for each in prepared:
            sheet = read_experiment(each.series, each.experiment.path, wanted[each.series.name])
            _mark_failed(sheet, [outcome for outcome in outcomes if outcome.job.experiment is each.experiment])
            done.sheets[each.series.name] = sheet
    return done


def _mark_failed(sheet: Sheet, outcomes: list[Outcome]) -> None:
    """A run that fails tonight does not count, though an earlier one of the same key is there."""
    for outcome in outcomes:
        if outcome.error is None:
            continue
        plan = outcome.cell.plan
        cell = sheet.cells.setdefault(slug_of(plan.run), CellSheet(plan.axes, plan.algorithm, ""))
        cell.repetitions[plan.repetition] = Repetition("failed", plan.seed, {}, outcome.error.what)


def _is_wanted(prepared: _Prepared, cell: Cell, wanted: Wanted) -> bool:
    slugs = wanted[prepared.series.name]
    return slugs is None or slug_of(cell.plan.run) in slugs


def _prepare(series: Series, experiment: Experiment, display: Display) -> _Prepared:
    profile = series.profile
    plans: list[Plan] = [compile_plan(cell, engine=None, kernel=series.kernel) for cell in profile.cells()]
    slugs = set(slugs_of(series))
    plans = [plan for plan in plans if slug_of(plan.run) in slugs]
    identity = find_engine(plans[0].engine).prepare(plans, display.build)
    (experiment.path / "profile.yaml").write_text(profile.text, encoding="utf-8")
    cells = [Cell(plan, run_key(plan.to_json(), identity), keeps_data(profile.keep, plan.repetition)) for plan in plans]
    return _Prepared(series, experiment, cells)


def _run(jobs: list[Job], workers: int, again: bool, display: Display) -> list[Outcome]:
    """Runs that are there are analysed again where the analysis has changed, or made again where their data are gone.

    The comparison would otherwise be one of our own code.
    """
    old: list[Job] = []
    for job in jobs if not again else ():
        finished = job.experiment.finished(job.cell)
        if finished is None:
            continue
        if outdated(finished):
            old.append(job)
        elif refresh(finished):
            display.say(f"  ~ {job.name}  analysed again")
    rest = [job for job in jobs if job not in old]
    outcomes = run_cells(rest, workers, again, display.batch, WORKER, keep_going=True)
    return outcomes + (run_cells(old, workers, True, display.batch, WORKER, keep_going=True) if old else [])


def _problems(outcomes: list[Outcome]) -> list[str]:
    """What made runs fail, each text once with the number of runs it stopped."""
    count: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            count.setdefault(outcome.error.what, []).append(outcome.job.name)
    return [f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {what}" for what, names in count.items()]


def explain(experiment: Path) -> str | None:
    """Claims and report of an experiment, for those who look into a regression; why not, where it cannot be."""
    try:
        judge_claims(experiment)
        report(experiment, prometheus="off")
    except HowdahError as error:
        return f"{experiment.name} has no report: {error.what}"
    return None
