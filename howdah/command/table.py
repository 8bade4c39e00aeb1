# SPDX-License-Identifier: Apache-2.0
"""``howdah table``: results, differences or completion times for a paper, as LaTeX, Markdown, CSV or text."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.command.common import add_runs_option, cores
from howdah.errors import HowdahError
from howdah.layout import terminal_width, write_stdout
from howdah.record.directory import write_whole
from howdah.record.drawn import add_drawn
from howdah.record.result import Experiment
from howdah.report.difference import difference_table
from howdah.report.ending import results
from howdah.report.resulttable import result_table
from howdah.report.source import TableSource
from howdah.report.subject import subjects
from howdah.report.tabular import FORMS, Tabular, text
from howdah.report.transfer import completion_table
from howdah.work.experiment import find
from howdah.work.results import read_results

_RESULTS, _DIFFERENCES, _COMPLETION = _KINDS = ("results", "differences", "completion")
_LACKS = {
    _RESULTS: "no run that counts",
    _DIFFERENCES: "one side alone: there is nothing to compare",
    _COMPLETION: "no measured flow of a fixed size in a run that counts",
}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("table")
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument("--format", choices=tuple(FORMS), default="text", help="latex needs booktabs (default: text)")
    parser.add_argument(
        "--of",
        choices=_KINDS,
        default=_RESULTS,
        help="the main measures, each side against the first at each point, or how long transfers took by their size "
        "(default: results)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to this file (default: standard output)")
    add_runs_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    paths = [find(options.runs, name) for name in options.what]
    experiments = [read_results(path, workers=cores()) for path in paths]
    table = _table(options.of, experiments)
    if not table.rows:
        raise HowdahError(f"the table would be empty: there is {_LACKS[options.of]}", where=str(paths[0]))
    words = [f"--of={options.of}", f"--format={options.format}"]
    add_drawn(paths, "table", words + ([f"--output={options.output.name}"] if options.output is not None else []))
    if options.output is not None:
        write_whole(options.output, FORMS[options.format](table.used()))
        write_stdout(f"{options.output}\n")
    elif FORMS[options.format] is text:
        write_stdout(text(table.used(), terminal_width()))
    else:
        write_stdout(FORMS[options.format](table.used()))
    return 0


def _table(kind: str, experiments: list[Experiment]) -> Tabular:
    if kind == _COMPLETION:
        return completion_table(experiments)
    found = results(experiments, TableSource())
    if kind == _DIFFERENCES:
        return difference_table(subjects(found))
    return result_table(found, ", ".join(dict.fromkeys(each.name for each in experiments)))
