# SPDX-License-Identifier: Apache-2.0
"""``howdah compare``: show algorithms, kernels, experiments or runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option, cores
from howdah.command.shape import CommandAnswer
from howdah.layout import terminal_width, write_stdout
from howdah.report.compare import compare
from howdah.report.tidy import ResultData
from howdah.work.experiment import find
from howdah.work.results import bring_up_to_date, renew_claims


class Compare(ResultData, CommandAnswer, shape="compare"):
    report: str = Field(description="path of the page")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument("--algorithm", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="the HTML page to write (default: compare-….html in --runs)"
    )
    parser.add_argument("--without-prometheus", action="store_true", help="draw from the Parquet tables")
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    paths = [find(options.runs, name) for name in options.what]
    target = options.output or options.runs / f"compare-{'-'.join(dict.fromkeys(path.name for path in paths))}.html"
    prometheus = "off" if options.without_prometheus else "auto"
    for path in paths:
        bring_up_to_date(path, workers=cores())
        renew_claims(path)
    width = None if options.json else terminal_width()
    comparison = compare(paths, target, prometheus, options.algorithm, width)
    if options.json:
        answer(Compare.over(comparison.data, report=str(comparison.page)))
    else:
        write_stdout(f"{comparison.text}\nreport: {comparison.page}\n")
    return 0
