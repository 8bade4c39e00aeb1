# SPDX-License-Identifier: Apache-2.0
"""``howdah compare``: several experiments or runs side by side, as one page and as a table of text."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from howdah.errors import HowdahError
from howdah.publish.experiment import Experiment, load_experiment, without_controls
from howdah.report.build import source_for
from howdah.report.page import render, write
from howdah.report.source import Source
from howdah.report.table import Table, table
from howdah.report.variant import Variants


@dataclass(frozen=True)
class Comparison:
    """The page that was written and the same table as text."""

    page: Path
    text: str


def compare(
    paths: list[Path],
    target: Path,
    prometheus: str = "auto",
    algorithms: list[str] | None = None,
) -> Comparison:
    """Compare experiments and runs; a variant is an algorithm, with kernel and experiment where those differ.

    ``paths`` are directories of experiments or runs; ``algorithms``, when given, are the only ones shown. The page is
    written to ``target``. Raises HowdahError when there is nothing to compare.
    """
    if not paths:
        raise HowdahError(
            "there is nothing to compare", hint="Name experiments or runs: 'howdah list runs' shows them."
        )
    experiments = _only(_merged([load_experiment(path) for path in paths]), algorithms)
    with source_for(experiments, prometheus) as (source, note):
        names = " and ".join(dict.fromkeys(experiment.name for experiment in experiments))
        title = f"Comparison: {names}"
        page = render(title, "", experiments, source, note)
        text = text_table(results(experiments, source))
    return Comparison(write(page, target), text)


def results(experiments: list[Experiment], source: Source) -> Table:
    """The result table of some experiments."""
    summaries = [source.summary(experiment) for experiment in experiments]
    return table(without_controls(experiments), summaries, Variants(experiments))


def _merged(experiments: list[Experiment]) -> list[Experiment]:
    """Runs of one experiment that were named one by one become one experiment; nothing is there twice.

    Raises HowdahError when two different experiments have one name: their series could not be told apart.
    """
    found: dict[str, Experiment] = {}
    for experiment in experiments:
        if experiment.name not in found:
            found[experiment.name] = experiment
            continue
        known = found[experiment.name]
        if _home(known) != _home(experiment):
            raise HowdahError(
                f"two experiments are called '{experiment.name}'",
                where=f"{known.path} and {experiment.path}",
                hint="Rename one of the directories and the name in its experiment.json.",
            )
        names = {run.name for run in known.runs}
        runs = known.runs + [run for run in experiment.runs if run.name not in names]
        found[experiment.name] = replace(known, runs=runs)
    return list(found.values())


def _home(experiment: Experiment) -> Path:
    path = experiment.path.resolve()
    return path if (path / "experiment.json").exists() else path.parent


def _only(experiments: list[Experiment], algorithms: list[str] | None) -> list[Experiment]:
    if algorithms is None:
        return experiments
    present = Counter(run.algorithm for experiment in experiments for run in experiment.runs)
    for name in algorithms:
        if not present[name]:
            known = ", ".join(sorted(present))
            raise HowdahError(f"no run has the algorithm '{name}'", hint=f"The runs have: {known}.")
    return [
        replace(experiment, runs=[run for run in experiment.runs if run.algorithm in algorithms])
        for experiment in experiments
    ]


def text_table(results: Table) -> str:
    """The main measures as aligned text, one line for each flow of a variant; what was left out follows it."""
    columns = [index for index, measure in enumerate(results.measures) if measure.main]
    header = ["", "n", "flow"] + [results.measures[index].header for index in columns]
    units = ["", "", ""] + [results.measures[index].unit for index in columns]
    lines: list[list[str]] = []
    for point, blocks in results.points:
        if point:
            lines.append([f"[{point}]"])
        for block in blocks:
            for number, row in enumerate(block.rows):
                first = [block.variant.label, str(block.count)] if number == 0 else ["", ""]
                cells = [row.cells[index] for index in columns]
                lines.append([*first, row.flow, *(cell.text if cell else "" for cell in cells)])
    lines = [header, units, *lines]
    widths = [max(len(line[index]) for line in lines if len(line) > 1) for index in range(len(header))]
    text = [_aligned(line, widths) for line in lines]
    if results.repeated:
        text.append("medians over n repetitions; their 95 % confidence intervals are in the report")
    text += [f"left out: {name} ({verdict}{': ' + why if why else ''})" for name, verdict, why in results.left_out]
    return "\n".join(text)


def _aligned(line: list[str], widths: list[int]) -> str:
    if len(line) == 1:
        return line[0]
    cells = [
        cell.ljust(width) if number in (0, 2) else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
