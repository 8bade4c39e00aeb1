# SPDX-License-Identifier: Apache-2.0
"""``howdah compare``: several experiments or runs side by side, as one page and as a text table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from howdah.errors import HowdahError, nearest
from howdah.number import counted
from howdah.record.result import Experiment
from howdah.report.build import source_for
from howdah.report.difference import difference_text
from howdah.report.ending import ending, results
from howdah.report.page import render, write
from howdah.report.results import read_all_shown
from howdah.report.subject import subjects_of
from howdah.report.tidy import ResultData, result_data


@dataclass(frozen=True)
class ComparisonPage:
    """The path of the page, the findings and the table as text, and the table as data."""

    page: Path
    text: str
    data: ResultData


def compare(
    paths: list[Path],
    target: Path,
    prometheus: str = "auto",
    algorithms: list[str] | None = None,
    width: int | None = None,
) -> ComparisonPage:
    """Compare experiments and runs. A variant is an algorithm, with kernel and experiment where those differ.

    ``paths`` are directories of experiments or runs; ``algorithms``, if given, are the only ones shown. The page is
    written to ``target``; the text is folded to ``width`` columns. Experiments with the same name are renamed after
    their directories and drawn from their tables, because Prometheus identifies an experiment by its name alone. Raises
    HowdahError if there is nothing to compare.
    """
    if not paths:
        raise HowdahError(
            "there is nothing to compare", hint="Name experiments or runs: 'howdah list runs' shows them."
        )
    merged = _merged(read_all_shown(paths))
    experiments = _with_algorithms(_with_distinct_names(merged), algorithms)
    same = len({experiment.name for experiment in merged}) < len(merged)
    with source_for(experiments, "off" if same else prometheus) as (source, note):
        names = " and ".join(dict.fromkeys(experiment.name for experiment in experiments))
        title = f"Comparison: {names}"
        page = render(title, "", experiments, source, note)
        found = results(experiments, source)
        parts = (ending(found, width), difference_text(subjects_of(found), width), _unfinished(experiments))
        text = "\n\n".join(filter(None, parts))
    return ComparisonPage(write(page, target), text, result_data(experiments))


def _unfinished(experiments: list[Experiment]) -> str:
    """A line for each experiment with unfinished runs, which the table would otherwise omit silently."""
    lacking = [(each.name, len(each.pending)) for each in experiments if each.pending]
    return "\n".join(f"not made: {counted(count, 'run')} of {name}" for name, count in lacking)


def _merged(experiments: list[Experiment]) -> list[Experiment]:
    """Merge runs of the same experiment that were named one by one into one experiment, and drop duplicates."""
    found: dict[tuple[str, Path], Experiment] = {}
    for experiment in experiments:
        # Runs outside an experiment have their own name and share a parent directory.
        key = (experiment.name, _experiment_directory(experiment))
        known = found.get(key)
        if known is None:
            found[key] = experiment
            continue
        names = {run.name for run in known.runs}
        runs = known.runs + [run for run in experiment.runs if run.name not in names]
        found[key] = replace(known, runs=runs)
    return list(found.values())


def _with_distinct_names(experiments: list[Experiment]) -> list[Experiment]:
    """Rename experiments with equal names after the shortest path end that differs: before/quick, after/quick."""
    alike = Counter(experiment.name for experiment in experiments)
    directories = {
        name: [_experiment_directory(experiment).parts for experiment in experiments if experiment.name == name]
        for name, number in alike.items()
        if number > 1
    }
    found = []
    for experiment in experiments:
        if experiment.name in directories:
            end = _distinct_suffix_length(directories[experiment.name])
            parts = _experiment_directory(experiment).parts[-end:]
            tail = "/".join(parts)
            name = tail if experiment.name in parts else f"{experiment.name} in {tail}"
            runs = [replace(run, experiment=name) for run in experiment.runs]
            experiment = replace(experiment, name=name, runs=runs)
        found.append(experiment)
    return found


def _distinct_suffix_length(paths: list[tuple[str, ...]]) -> int:
    """The smallest number of trailing path parts that makes all paths distinct."""
    longest = max(map(len, paths))
    return next(number for number in range(1, longest + 1) if len({path[-number:] for path in paths}) == len(paths))


def _experiment_directory(experiment: Experiment) -> Path:
    path = experiment.path.resolve()
    return path if (path / "experiment.json").exists() else path.parent


def _with_algorithms(experiments: list[Experiment], algorithms: list[str] | None) -> list[Experiment]:
    if algorithms is None:
        return experiments
    present = Counter(run.algorithm for experiment in experiments for run in experiment.runs)
    for name in algorithms:
        if not present[name]:
            close = nearest(name, present)
            known = f"{f'Did you mean {close}? ' if close else ''}The runs have: {', '.join(sorted(present))}."
            raise HowdahError(f"no run has the algorithm '{name}'", hint=known)
    return [
        replace(experiment, runs=[run for run in experiment.runs if run.algorithm in algorithms])
        for experiment in experiments
    ]
