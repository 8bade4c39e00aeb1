# SPDX-License-Identifier: Apache-2.0
"""The night as a plain text to mail.

It has a subject, a line for each regression, and of the experiments of cells that fail what was found, and B − A at
each point.
Then come the table of cells with a summary as of ``git diff --stat``, kernels and paths, and how to see it again.

Lines are in order of their names and hold no times, so that ``git diff`` of two nights shows what has changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from howdah.errors import HowdahError
from howdah.nightly.cell import CellResult, label, one_line
from howdah.nightly.change import Outcome, change_text
from howdah.nightly.night import Night, settings
from howdah.number import counted
from howdah.report.difference import difference_text
from howdah.report.ending import results
from howdah.report.found import found
from howdah.report.results import read_shown
from howdah.report.source import TableSource
from howdah.report.subject import subjects
from howdah.report.table import Table

_WORSE: tuple[Outcome, ...] = ("regression", "vanished", "not repeatable", "howdah changed")
_TOLD: tuple[Outcome, ...] = (*_WORSE, "unproven")
_BETTER: tuple[Outcome, ...] = ("improvement",)
_SIGNS = (("-", "worse", _WORSE), ("?", "not proven", ("unproven",)), ("+", "better", _BETTER))
_STAT_COLUMNS = 40  # of signs in the summary


def mail(night: Night) -> str:
    """Headers, an empty line, the text: as ``sendmail`` takes it."""
    failing = night.failing
    lines = [f"Subject: [howdah] {night.suite.name}: {headline(night)}", ""]
    if night.suite.description:
        lines += [night.suite.description, ""]
    lines += _section("Regressions", regression_lines(night))
    lines += _section("Improvements", sorted(_lines(night, _BETTER, night.cells)))
    for experiment in dict.fromkeys(cell.experiment for cell in sorted(failing, key=_order)):
        table = _results(night, experiment)
        if table is not None:
            lines += _section(f"What was found in {experiment}", [_plain(sentence) for sentence in found(table)])
            lines += _section(f"Sides of {experiment}", difference_text(subjects(table)).splitlines())
    lines += _section("Problems", sorted(_plain(each) for each in night.problems))
    lines += [*_heading("Cells"), *_table(night), "", *_stat(night), ""]
    lines += _section("Kernels and paths", [_plain(f"{name}  {text}") for name, text in settings(night).items()])
    commands = [f"{cell.id}\n  {night.command(cell)}" for cell in sorted(failing, key=_order) if cell.state != "gone"]
    lines += _section("Again", commands)
    lines.append(f"The baseline is {night.baseline_name}.")
    return "\n".join(lines) + "\n"


def headline(night: Night) -> str:
    """``2 of 19 cells fail: regression``; ``nothing of 19 cells fails``."""
    failing = night.failing
    if not failing:
        return f"nothing of {len(night.cells)} cells fails"
    states = ", ".join(sorted({label(cell.state) for cell in failing}))
    return f"{len(failing)} of {len(night.cells)} cells fail{'' if failing[1:] else 's'}: {states}"


def regression_lines(night: Night) -> list[str]:
    """One for each measure that speaks against a cell that fails, for each other reason, and for what to know of both
    nights, such as other settings; in order."""
    failing = night.failing
    lines = list(_lines(night, _TOLD, failing))
    for cell in failing:
        others = [*cell.broken, *([cell.problem] if cell.problem else []), *([cell.untold] if cell.untold else [])]
        if not others and not cell.of(*_TOLD):
            others = night.reasons(cell)
        lines += [f"{cell.id}  {label(cell.state)}: {_plain(text)}" for text in others]
        lines += [f"{cell.id}  note: {_plain(text)}" for text in cell.notes]
    return sorted(lines)


def _lines(night: Night, outcomes: tuple[Outcome, ...], cells: list[CellResult]) -> Iterator[str]:
    for cell in cells:
        for each in cell.of(*outcomes):
            if each.outcome != "unproven" or (each.is_primary and not night.allow_unproven):
                word = "" if each.outcome == "unproven" else f"  {label(each.outcome)}"  # its text has it
                yield _plain(f"{cell.id}  {change_text(each)}{word}")


def _results(night: Night, experiment: str) -> Table | None:
    """Those of tonight; None where there are no runs that can be read."""
    path = night.runs / experiment
    if not (path / "experiment.json").exists():
        return None
    try:
        return results([read_shown(path)], TableSource())
    except HowdahError:
        return None  # the problems have it


def _plain(text: str) -> str:
    """In one line, without what a terminal takes for a command."""
    return one_line(text).strip()


def _table(night: Night) -> list[str]:
    rows = [
        ("fails" if night.fails(cell) else "", label(cell.state), cell.id) for cell in sorted(night.cells, key=_order)
    ]
    width = max((len(state) for _sign, state, _id in rows), default=0)
    return [f"{sign:<5}  {state:<{width}}  {name}" for sign, state, name in rows]


def _stat(night: Night) -> list[str]:
    """As ``git diff --stat``: of each cell how many measures are worse, not proven and better, and their sum."""
    cells = sorted(night.cells, key=_order)
    counts = [tuple(len(cell.of(*outcomes)) for _sign, _word, outcomes in _SIGNS) for cell in cells]
    scale = min(1.0, _STAT_COLUMNS / max((*map(sum, counts), 1)))
    width = max((len(cell.id) for cell in cells), default=0)
    lines = []
    for cell, numbers in zip(cells, counts, strict=True):
        signs = "".join(sign * math.ceil(count * scale) for (sign, *_), count in zip(_SIGNS, numbers, strict=True))
        if signs:
            lines.append(f" {cell.id:<{width}} | {sum(numbers):>3} of {len(cell.comparisons)} {signs}")
    compared = sum(len(cell.comparisons) for cell in cells)
    sums = [f"{sum(each[at] for each in counts)} {word} ({sign})" for at, (sign, word, _) in enumerate(_SIGNS)]
    return [*lines, f" {', '.join([counted(len(cells), 'cell'), f'{compared} comparisons', *sums])}"]


def _section(title: str, lines: list[str]) -> list[str]:
    return [*_heading(title), *lines, ""] if lines else []


def _heading(title: str) -> list[str]:
    return [title, "-" * len(title)]


def _order(cell: CellResult) -> str:
    return cell.id
