# SPDX-License-Identifier: Apache-2.0
"""``howdah table``: results or differences for a paper, as LaTeX, Markdown, CSV or text."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.command.common import add_runs_option, cores
from howdah.errors import HowdahError
from howdah.layout import write_stdout
from howdah.record.directory import write_whole
from howdah.report.difference import difference_table
from howdah.report.ending import results
from howdah.report.resulttable import result_table
from howdah.report.source import TableSource
from howdah.report.subject import subjects
from howdah.report.tabular import FORMS
from howdah.work.experiment import find
from howdah.work.results import read_results

_KINDS = ("results", "differences")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("table")
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument("--format", choices=tuple(FORMS), default="text", help="latex needs booktabs (default: text)")
    parser.add_argument(
        "--of",
        choices=_KINDS,
        default=_KINDS[0],
        help="the main measures, or each side against the first at each point (default: results)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to this file (default: standard output)")
    add_runs_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    paths = [find(options.runs, name) for name in options.what]
    experiments = [read_results(path, workers=cores()) for path in paths]
    found = results(experiments, TableSource())
    names = ", ".join(dict.fromkeys(each.name for each in experiments))
    table = result_table(found, names) if options.of == _KINDS[0] else difference_table(subjects(found))
    if not table.rows:
        lacks = "no run that counts" if options.of == _KINDS[0] else "one side alone: there is nothing to compare"
        raise HowdahError(f"the table would be empty: there is {lacks}", where=str(paths[0]))
    text = FORMS[options.format](table.used())
    if options.output is None:
        write_stdout(text)
    else:
        write_whole(options.output, text)
        write_stdout(f"{options.output}\n")
    return 0
