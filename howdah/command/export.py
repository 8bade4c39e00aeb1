# SPDX-License-Identifier: Apache-2.0
"""``howdah export``: write a run, or every run of an experiment, in the format of another tool."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import cast

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.errors import HowdahError, UsageError
from howdah.export.flent import write_flent
from howdah.export.pcapng import write_pcapng
from howdah.export.qlog import write_qlog
from howdah.export.xplot import write_xplot
from howdah.extension import extensions
from howdah.hooks import WriteRun
from howdah.layout import write_stderr, write_stdout
from howdah.library.data import Data
from howdah.library.files import Format, write_tables
from howdah.record.model import FilePart
from howdah.record.result import Run
from howdah.work.display import Display
from howdah.work.experiment import find
from howdah.work.results import read_results

# Formats with one or more files for each run.
_BY_RUN: dict[str, Callable[[Run, Path], list[Path]]] = {
    "flent": write_flent,
    "xplot": write_xplot,
    "pcapng": write_pcapng,
    "qlog": write_qlog,
}
_TABLES = ("csv", "parquet")
_HELP = """flent: a data file that flent plots (default);
csv, parquet: every table with the rows of all runs, axes as columns (csv with --only);
xplot: a time-sequence graph of each flow, as tcptrace draws it;
pcapng: the run's captures in one file, with comments that name path, flow and exit;
qlog: window, RTT and state of each flow as events of QUIC's recovery"""


class PassedOver(FilePart):
    what: str
    where: str | None


class Export(CommandAnswer, shape="export"):
    format: str
    written: list[str]
    passed_over: list[PassedOver]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="latest", help="a run or an experiment (default: latest)")
    parser.add_argument(
        "--format",
        choices=[*_TABLES, *_BY_RUN, *extensions("exports", (*_TABLES, *_BY_RUN))],
        help=_HELP,
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="TABLE",
        help="only this table (runs, metrics, exits, checks, tcp_probe …), as csv or parquet; may be repeated",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="directory to write to (default: ./NAME-FORMAT)",
    )
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    """Write every run that can be written and report the others. Raise HowdahError if none can."""
    path = find(options.runs, options.run)
    form = options.format or ("csv" if options.only else "flent")
    if options.only and form not in _TABLES:
        raise UsageError(f"--only names tables, and {form} has none", hint="Add --format csv or parquet.")
    directory: Path = options.output or Path(f"{path.name}-{form}")
    made = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    refused: list[HowdahError] = []
    if form in _TABLES:
        with Display(quiet=options.json) as display:
            written = write_tables(Data([path]), directory, cast("Format", form), options.only, display.build)
    else:
        written = _by_run(form, read_results(path).runs, directory, refused)
    if not written:
        if made:
            directory.rmdir()
        raise refused[0] if refused else HowdahError("the experiment has no runs", where=str(path))
    if options.json:
        passed_over = [PassedOver(what=error.what, where=error.where) for error in refused]
        answer(Export(format=form, written=[str(file) for file in written], passed_over=passed_over))
        return 0
    write_stdout("".join(f"{file}\n" for file in written))
    write_stderr("".join(f"howdah: skipped: {error}\n" for error in refused))
    return 0


def _extension_writer(form: str) -> WriteRun:
    extension = extensions("exports")[form]
    write: WriteRun = extension.load()
    return lambda run, directory: list(extension.guarded(lambda: write(run, directory)))


def _by_run(form: str, runs: list[Run], directory: Path, refused: list[HowdahError]) -> list[Path]:
    written: list[Path] = []
    write = _BY_RUN.get(form) or _extension_writer(form)
    for run in runs:
        try:
            written += write(run, directory)
        except HowdahError as error:
            refused.append(error)
    return written
