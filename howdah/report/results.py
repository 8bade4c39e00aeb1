# SPDX-License-Identifier: Apache-2.0
"""The results in directories, as a page or the end of a command shows them.

If there are too many runs to read one by one, a page draws a few of them and has the main measures of all.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from howdah.metric import known_metrics
from howdah.record.result import Experiment, Run, brief
from howdah.work.results import read_results, runs_of

MOST_RUNS = 500  # of more, a page has statistics, and single runs when somebody asks for them
MOST_DRAWN = 24  # of such a page's runs, those that have curves


def are_many(runs: int) -> bool:
    return runs > MOST_RUNS


def is_many(experiments: list[Experiment]) -> bool:
    return are_many(sum(len(experiment.runs) for experiment in experiments))


def sample(experiments: list[Experiment]) -> list[Experiment]:
    """The experiments reduced to the runs that are drawn: first repetitions, evenly spaced from the first run to the
    last."""
    there = [run for experiment in experiments for run in experiment.runs if run.plan and run.data_kept]
    first = min((run.repetition for run in there), default=0)
    there = [run for run in there if run.repetition == first]
    count = min(MOST_DRAWN, len(there))
    chosen = {id(there[number * (len(there) - 1) // max(1, count - 1)]) for number in range(count)}
    return [replace(each, runs=[run for run in each.runs if id(run) in chosen]) for each in experiments]


def with_main_measures(experiments: list[Experiment]) -> list[Experiment]:
    """The experiments reduced to the measures of the first result table."""
    main = {name for name, metric in known_metrics().items() if metric.table in ("main", "instead")}
    return [replace(each, runs=[_with(run, main) for run in each.runs]) for each in experiments]


def _with(run: Run, names: set[str]) -> Run:
    return replace(run, metrics=[row for row in run.metrics if row.metric in names])


def read_shown(path: Path) -> Experiment:
    """Read the results in a directory, as far as a page shows them."""
    return read_all_shown([path])[0]


def read_all_shown(paths: list[Path]) -> list[Experiment]:
    """Read the results of several directories for one page."""
    many = are_many(sum(len(runs_of(path)) for path in paths))
    return [read_results(path, kept=brief if many else None) for path in paths]
