# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.readme EXPERIMENT``: what the README prints of its experiment, from the runs of ``make figures``.

The block of the README and ``tests/golden/readme.json`` are written together. The file has the measures of every run
behind the block, so that a test can make the block again without running anything (tests/unit/test_docs.py), and
another can compare a run that present code makes with them (tests/guest/test_readme.py).
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.metric import known_metrics
from howdah.place import PROFILES
from howdah.profile import load
from howdah.record.directory import RunDirectory
from howdah.record.index import ProfileSource
from howdah.record.metrics import MetricRow
from howdah.record.result import Experiment, Run
from howdah.record.run import RunRecord
from howdah.record.verdict import Verdict
from howdah.report.ending import results, text_table
from howdah.report.findings import findings
from howdah.report.results import read_shown
from howdah.report.source import TableSource
from howdah.work.compiled import compile_plans

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GOLDEN = ROOT / "tests/golden/readme.json"
PROFILE = PROFILES / "long-fat-400mbit-240ms.yaml"
REMEDY = "run make figures"
_BEGIN, _END = "It ends with an HTML report, ", "```\n"
_WIDTH = 118
_SPREAD = re.compile(r" \([^()]* … [^()]*\)")
_MORE = ("goodput_bits_per_second",)  # which decides a sentence


def measures(run: Run) -> list[dict[str, Any]]:
    """The rows of a run that the block is made from."""
    names = {name for name, metric in known_metrics().items() if metric.table == "main"} | {*_MORE}
    said = [replace(row, unit=None, algorithm=None) for row in run.metrics if row.metric in names]
    return [{name: value for name, value in row.plain({}).items() if name != "unit"} for row in said]


def of_golden(data: dict[str, Any]) -> Experiment:
    """The experiment as the file has it, with the plans of today."""
    runs = [
        Run(
            directory=RunDirectory(ROOT / "var" / plan.run),
            experiment=plan.profile,
            algorithm=plan.algorithm,
            repetition=plan.repetition,
            axes=plan.axes,
            status="finished",
            plan=plan,
            metrics=[MetricRow(**row, unit=None) for row in data[plan.run]],
            cross_checks=[],
            verdict=Verdict(verdict="pass"),
            provenance=RunRecord(status="finished"),
        )
        for plan in compile_plans(load(PROFILE))
    ]
    return Experiment(ROOT / "var", PROFILE.stem, "", ProfileSource(), "", runs)


def block(experiment: Experiment) -> str:
    """What a command prints at its end, without the least and largest of repetitions."""
    table = results([experiment], TableSource())
    sentences = [_SPREAD.sub("", sentence) for sentence in findings(table) if not sentence.startswith("In brackets")]
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, _WIDTH, break_on_hyphens=False)]
    for row in (row for _, blocks in table.points for each in blocks for row in each.rows):
        row.cells[:] = [cell and replace(cell, interval="") for cell in row.cells]
    page = f"report: runs/{experiment.name}/report.html"
    return "\n".join([*lines, "", text_table(table), page]) + "\n"


def shown(readme: str) -> tuple[int, int]:
    """Where the block begins and ends in the README."""
    begin = readme.index("```console\n", readme.index(_BEGIN)) + len("```console\n")
    return begin, readme.index(_END, begin)


def write(experiment: Experiment) -> None:
    if any(not run.counts for run in experiment.runs):
        raise SystemExit("a run does not count: the README shows none of these numbers")
    data = {run.plan.run: measures(run) for run in experiment.runs if run.plan}
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in data.items())
    GOLDEN.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    begin, end = shown(text)
    README.write_text(text[:begin] + block(experiment) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    write(read_shown(Path(sys.argv[1])))
