# SPDX-License-Identifier: Apache-2.0
"""``howdah table``: print results, differences or completion times for a paper as LaTeX, Markdown, CSV or text."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.command.common import add_runs_option, cores
from howdah.errors import HowdahError, UsageError
from howdah.layout import terminal_width, write_stdout
from howdah.metric import known_metrics
from howdah.quantity import QuantityError, parse_size
from howdah.record.directory import write_whole
from howdah.record.index import add_drawn
from howdah.record.result import Experiment
from howdah.report.difference import difference_table
from howdah.report.ending import results
from howdah.report.source import TableSource
from howdah.report.subject import subjects_of
from howdah.report.tabular import FORMS, Tabular, result_table, text
from howdah.report.transfer import completion_table
from howdah.work.experiment import find
from howdah.work.results import read_results

_RESULTS, _DIFFERENCES, _COMPLETION = _KINDS = ("results", "differences", "completion")
_LACKS = {
    _RESULTS: "no run that counts",
    _DIFFERENCES: "one side alone: there is nothing to compare",
    _COMPLETION: "no measured flow of a fixed size in a run that counts",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument("--format", choices=tuple(FORMS), default="text", help="latex needs booktabs (default: text)")
    parser.add_argument(
        "--of",
        choices=_KINDS,
        default=_RESULTS,
        help="the main measures, each side against the first at each point, or how long transfers took by their size "
        "(default: results)",
    )
    parser.add_argument(
        "--measure",
        action="append",
        default=[],
        metavar="METRIC",
        help="with --of results or differences: show this measure instead of the main ones; may be repeated",
    )
    parser.add_argument(
        "--limits",
        metavar="SIZE,...",
        help="with --of completion: where size classes begin, such as '100 kB, 1 MB'",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to this file (default: standard output)")
    add_runs_option(parser)


def execute(options: argparse.Namespace) -> int:
    _check(options)
    limits_bytes = _limits(options.limits) if options.limits is not None else []
    paths = [find(options.runs, name) for name in options.what]
    experiments = [read_results(path, workers=cores()) for path in paths]
    table = _table(options.of, experiments, options.measure, limits_bytes)
    if not table.rows:
        raise HowdahError(f"the table would be empty: there is {_LACKS[options.of]}", where=str(paths[0]))
    words = [f"--of={options.of}", f"--format={options.format}", *(f"--measure={name}" for name in options.measure)]
    words += [f"--limits={options.limits}"] if limits_bytes else []
    add_drawn(paths, "table", words + ([f"--output={options.output.name}"] if options.output is not None else []))
    if options.output is not None:
        write_whole(options.output, FORMS[options.format](table.used()))
        write_stdout(f"{options.output}\n")
    elif FORMS[options.format] is text:
        write_stdout(text(table.used(), terminal_width()))
    else:
        write_stdout(FORMS[options.format](table.used()))
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.measure and options.of == _COMPLETION:
        raise UsageError("--measure applies to results and differences, not to completion", hint="leave it out")
    if options.limits is not None and options.of != _COMPLETION:
        raise UsageError("--limits applies to completion times", hint="add --of completion, or leave it out")
    known = known_metrics()
    for name in options.measure:
        if name not in known:
            raise UsageError.unknown(f"there is no measure {name!r}", name, known, "'howdah list metrics' has all:")
        if known[name].is_text and options.of == _DIFFERENCES:
            raise UsageError("its values are words, which have no difference", where=f"--measure {name}")


def _limits(text: str) -> list[int]:
    """Parse the limits of size classes, in bytes. Raise UsageError unless they are positive and distinct."""
    try:
        found = [parse_size(part) for part in text.split(",")]
    except QuantityError as error:
        raise UsageError(str(error), where=f"--limits {text}", hint="for example --limits '100 kB, 1 MB'") from None
    if min(found) < 1 or len(set(found)) < len(found):
        raise UsageError("expected different sizes above 0", where=f"--limits {text}")
    return found


def _table(kind: str, experiments: list[Experiment], measures: list[str], limits_bytes: list[int]) -> Tabular:
    if kind == _COMPLETION:
        return completion_table(experiments, limits_bytes=limits_bytes)
    found = results(experiments, TableSource())
    if kind == _DIFFERENCES:
        return difference_table(subjects_of(found), measures)
    return result_table(found, ", ".join(dict.fromkeys(each.name for each in experiments)), measures)
