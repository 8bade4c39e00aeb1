# SPDX-License-Identifier: Apache-2.0
"""``howdah figure``: draw figures for papers from runs and experiments."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

from pydantic import Field

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option, cores
from howdah.command.shape import CommandAnswer
from howdah.errors import HowdahError, UsageError
from howdah.layout import folded, terminal_width, write_stderr, write_stdout
from howdah.record.directory import write_whole
from howdah.record.index import add_drawn
from howdah.record.model import FilePart
from howdah.record.result import Experiment
from howdah.report.paper import (
    FORMATS,
    NAMES,
    Choice,
    FigureSheet,
    available,
    caption_of,
    check_choice,
    data_of,
    description_of,
    draw,
    parse_length_inches,
)
from howdah.sourcedate import source_date
from howdah.work.experiment import find
from howdah.work.results import read_results

_COLUMN = "3.4in"


class Figure(CommandAnswer, shape="figure"):
    written: list[str]
    beside: list[str] = Field(description="captions, and with --data the data as CSV")
    passed_over: dict[str, str]


class FigureToDraw(FilePart):
    figure: str
    shows: str
    problem: str | None


class FigureList(CommandAnswer, shape="figure-list"):
    figures: list[FigureToDraw]


def arguments(parser: argparse.ArgumentParser) -> None:
    figures = "; ".join(f"{name} ({what})" for name, what in NAMES.items())
    parser.description = f"Draw figures for a paper: {figures}."
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument(
        "--figure",
        action="append",
        metavar="NAME",
        help="draw only this figure; may be repeated (default: all that can be drawn)",
    )
    parser.add_argument("--list", action="store_true", help="print the figures and which of them can be drawn")
    parser.add_argument(
        "--format", choices=FORMATS, help="format of the file (default: that of --output's name, or pdf)"
    )
    parser.add_argument(
        "--width", default=_COLUMN, metavar="LENGTH", help=f"width with its unit: in, cm, mm or pt (default: {_COLUMN})"
    )
    parser.add_argument("--height", metavar="LENGTH", help="height in the same units (default: what suits the figure)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="a file for one figure, a directory for several (default: WHAT-FIGURE.FORMAT in this directory)",
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--point",
        metavar="TEXT",
        help="only sweep points with this value, as in the profile (1 MB) or a run's name (1mb), or with this text",
    )
    parser.add_argument("--flow", metavar="NAME", help="draw this flow (default: the first)")
    parser.add_argument("--repetition", type=int, metavar="N", help="draw this repetition (default: the first)")
    parser.add_argument(
        "--measure", metavar="METRIC", help="measure of the map (default: the first of the result table)"
    )
    parser.add_argument("--data", action="store_true", help="also write what is drawn, as CSV beside each figure")
    parser.add_argument("--whole", action="store_true", help="draw the whole run, not only its start-up")
    add_runs_option(parser)
    add_json_option(parser)


def _find_results(runs: Path, name: str) -> Path:
    """Find an experiment or run. If the name is a figure's, the error explains ``--figure``."""
    try:
        return find(runs, name)
    except HowdahError as error:
        if name in NAMES or name.startswith("profile:"):
            error.hint = f"To draw this figure, use '--figure {name}'."
        raise


def execute(options: argparse.Namespace) -> int:
    source_date()  # check SOURCE_DATE_EPOCH first: matplotlib's error does not name the variable
    paths = [_find_results(options.runs, name) for name in options.what]
    experiments = [read_results(path, workers=cores()) for path in paths]
    choice = Choice(
        tuple(options.algorithm), options.point, options.flow, options.repetition, options.whole, options.measure
    )
    check_choice(experiments, choice)
    if options.list:
        possible = available(experiments, choice)
        return _list(possible, {name: description_of(name, experiments) for name in possible}, options.json)
    sheet = FigureSheet(
        parse_length_inches(options.width), None if options.height is None else parse_length_inches(options.height)
    )
    format_ = _format(options.format, options.output)
    refused: dict[str, str] = {}
    names = options.figure
    if names is None:
        possible = available(experiments, choice)
        names = [name for name, problem in possible.items() if problem is None]
        refused = {name: problem for name, problem in possible.items() if problem is not None}
        if not names:
            raise HowdahError(next(iter(refused.values())), where=str(paths[0]))
    targets = _targets(names, "-".join(dict.fromkeys(path.name for path in paths)), format_, options.output)
    written = [
        draw(name, experiments, choice, sheet, target, format_) for name, target in zip(names, targets, strict=True)
    ]
    add_drawn(paths, "figure", _options_to_repeat(options, names, written, format_))
    companions = _write_companions(dict(zip(names, written, strict=True)), experiments, choice, with_data=options.data)
    if options.json:
        answer(Figure(written=[*map(str, written)], beside=[*map(str, companions)], passed_over=refused))
        return 0
    write_stdout("".join(f"{file}\n" for file in written))
    write_stderr("".join(f"howdah: skipped {name}: {problem}\n" for name, problem in refused.items()))
    return 0


def _options_to_repeat(options: argparse.Namespace, names: list[str], written: list[Path], format_: str) -> list[str]:
    """Return the options that draw the same figures again into one directory."""
    lists = {"--figure": options.figure or [], "--algorithm": options.algorithm}
    values = {"--width": options.width, "--height": options.height, "--point": options.point, "--flow": options.flow}
    values |= {"--repetition": options.repetition, "--measure": options.measure, "--format": format_}
    flags = {"--whole": options.whole, "--data": options.data}
    if len(names) == 1 and options.output is not None:
        values["--output"] = written[0].name
    words = [f"{option}={value}" for option, given in lists.items() for value in given]
    words += [f"{option}={value}" for option, value in values.items() if value is not None]
    return words + [option for option, given in flags.items() if given]


def _write_companions(
    figures: dict[str, Path], experiments: list[Experiment], choice: Choice, *, with_data: bool
) -> list[Path]:
    """Write each figure's caption, and with ``with_data`` its data as CSV. Return the files written."""
    found = []
    for name, figure in figures.items():
        caption = figure.with_name(f"{figure.stem}.caption.txt")
        write_whole(caption, caption_of(name, experiments, choice))
        found.append(caption)
        if with_data:
            data = figure.with_suffix(".csv")
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(data_of(name, experiments, choice))
            write_whole(data, text.getvalue())
            found.append(data)
    return found


def _list(possible: dict[str, str | None], words: dict[str, str], as_json: bool) -> int:
    if as_json:
        rows = [FigureToDraw(figure=name, shows=words[name], problem=why) for name, why in possible.items()]
        answer(FigureList(figures=rows))
        return 0
    column = max(map(len, possible)) + 2
    for name, problem in possible.items():
        text = words[name] if problem is None else f"cannot be drawn: {problem}"
        write_stdout("\n".join(folded(text, terminal_width(), " " * column, name.ljust(column))) + "\n")
    return 0


def _format(requested: str | None, output: Path | None) -> str:
    """Return the requested format, or that of the output's name. Raise UsageError if the two differ."""
    named = output.suffix.removeprefix(".").lower() if output is not None and not output.is_dir() else ""
    if named in FORMATS and requested not in (None, named):
        raise UsageError(f"--format {requested} does not fit the name", where=str(output))
    return requested or (named if named in FORMATS else FORMATS[0])


def _targets(names: list[str], stem: str, format_: str, output: Path | None) -> list[Path]:
    if output is not None and len(names) == 1 and not output.is_dir():
        return [output]
    directory = output or Path()
    if output is not None:
        if output.suffix.removeprefix(".").lower() in FORMATS:
            raise UsageError(
                f"{len(names)} figures do not fit into one file",
                where=str(output),
                hint="Name one with --figure, or a directory with --output.",
            )
        output.mkdir(parents=True, exist_ok=True)
    return [directory / f"{stem}-{name.replace(':', '-')}.{format_}" for name in names]
