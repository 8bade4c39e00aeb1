# SPDX-License-Identifier: Apache-2.0
"""The runs of a suite as one queue: build missing kernels, and make missing runs."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from howdah.errors import EngineUnavailableError, HowdahError
from howdah.nightly.comparison import read_claims
from howdah.nightly.sheet import CellSheet, NightSheet, Repetition, empty_sheet, read_experiment
from howdah.nightly.suite import SuiteExperiment, Wanted, slug_of, slugs_of
from howdah.number import counted
from howdah.report.build import report
from howdah.work.batch import Outcome
from howdah.work.compiled import compile_plans
from howdah.work.display import Display
from howdah.work.experiment import ExperimentDirectory
from howdah.work.job import Executor
from howdah.work.planned import Prepared
from howdah.work.prepared import hold, prepare
from howdah.work.prepared import make as make_runs
from howdah.work.results import judged_claims


@dataclass
class MadeSheets:
    """The queue's result: a sheet for each experiment, the numbers of runs made and found, and problems."""

    sheets: dict[str, NightSheet] = field(default_factory=dict)
    made: int = 0
    found: int = 0
    problems: list[str] = field(default_factory=list)


def make(
    series: Iterable[SuiteExperiment],
    wanted: Wanted,
    runs: Path,
    workers: int,
    again: bool,
    display: Display,
    executor: Executor | None = None,
) -> MadeSheets:
    """Make every missing run. A kernel that does not build, or a run that fails, does not stop the others.

    After KeyboardInterrupt or a crash, finished runs are kept, and the same command continues. Raises HowdahError for
    problems outside the kernel (another night in progress, a directory that cannot be written), and
    EngineUnavailableError if this machine lacks something.
    """
    done = MadeSheets()
    with ExitStack() as locks:
        prepared: dict[str, Prepared] = {}
        kept = [one for one in series if one.name in wanted]
        for one in kept:
            experiment = hold(runs / one.name, locks)
            begun = time.monotonic()
            try:
                prepared[one.name] = _prepare(one, experiment, display)
            except EngineUnavailableError:
                raise
            except HowdahError as error:
                done.sheets[one.name] = empty_sheet(one, str(error).splitlines()[0])
                done.sheets[one.name].prepare_s = time.monotonic() - begun
                display.say(f"  ✕ {one.name}  {error.what}")
        several = [_wanted(prepared[one.name], one, wanted[one.name]) for one in kept if one.name in prepared]
        number = sum(len(each.wanted) for each in several)
        many = f"{counted(len(prepared), 'experiment')}, {counted(number, 'run')}"
        display.say(f"nightly: {many}" + ("" if executor else f", {workers} at a time"))
        outcomes = make_runs(
            several,
            workers,
            again,
            display.batch,
            keep_going=True,
            tell=display.say,
            executor=executor,
        )
        done.found = sum(outcome.reused for outcome in outcomes)
        done.made = len(outcomes) - done.found
        done.problems = _problems(outcomes)
        for one in kept:
            if one.name not in prepared:
                continue
            experiment = prepared[one.name].experiment
            if one.claims is not None:
                done.sheets[one.name] = read_claims(one, experiment.path)
                continue
            sheet = read_experiment(one, experiment.path, wanted[one.name])
            _mark_failed(sheet, [outcome for outcome in outcomes if outcome.job.experiment is experiment])
            done.sheets[one.name] = sheet
    return done


def _mark_failed(sheet: NightSheet, outcomes: list[Outcome]) -> None:
    """Mark runs that failed tonight as failed, even if an earlier run of the same key exists."""
    for outcome in outcomes:
        if outcome.error is None:
            continue
        plan = outcome.cell.plan
        cell = sheet.cells.setdefault(slug_of(plan.run), CellSheet(plan.axes, plan.algorithm, ""))
        cell.repetitions[plan.repetition] = Repetition(
            "failed", plan.seed, {}, outcome.error.what, wall_s=outcome.wall_s
        )


def _wanted(prepared: Prepared, series: SuiteExperiment, slugs: set[str] | None) -> Prepared:
    """Select the runs of these cells; claims need all runs of their experiment."""
    if slugs is None or series.claims is not None:
        return prepared
    return prepared.only(lambda run, _axes: slug_of(run) in slugs)


def _prepare(series: SuiteExperiment, experiment: ExperimentDirectory, display: Display) -> Prepared:
    plans = compile_plans(series.profile, kernel=series.kernel)
    if series.claims is None:  # claims also need controls and cross-checks
        slugs = set(slugs_of(series))
        plans = plans.only(lambda run, _axes: slug_of(run) in slugs)
    return prepare(experiment, series.profile, plans, display.build)


def _problems(outcomes: list[Outcome]) -> list[str]:
    """Describe why runs failed, each reason once with the number of runs."""
    count: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            count.setdefault(outcome.error.what, []).append(outcome.job.name)
    return [f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: {what}" for what, names in count.items()]


def explain(experiment: Path) -> str | None:
    """Judge the claims and write the report of an experiment; return why not if that fails."""
    try:
        judged_claims(experiment)
        report(experiment, prometheus="off")
    except HowdahError as error:
        return f"{experiment.name} has no report: {error.what}"
    return None
