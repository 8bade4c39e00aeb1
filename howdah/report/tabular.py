# SPDX-License-Identifier: Apache-2.0
"""A table of texts as LaTeX (booktabs), Markdown, CSV or plain text with the same cells, and the result table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.errors import HowdahError
from howdah.layout import folded
from howdah.report.table import Table

_GAP = "  "
_SPACES = str.maketrans({"\u2009": "", "\u202f": "", "\xa0": " "})  # between digits and units
_PLAIN = str.maketrans({"\u2212": "-", "\u2009": "", "\u202f": ""})  # what a program takes for a number
_TEX = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\u2212": "$-$",
    "…": r"\,\ldots\,",
    "µ": r"\textmu{}",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "\xa0": "~",
    "—": "---",
    "’": "'",
    "∞": r"$\infty$",
    "×": r"$\times$",
}


@dataclass(frozen=True)
class Tabular:
    """``columns`` are headings; every row has as many cells. A column without a heading has the intervals of the column
    before it. ``used`` leaves out empty columns.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]

    def used(self) -> Tabular:
        """The table without empty columns."""
        kept = [number for number in range(len(self.columns)) if any(row[number] for row in self.rows)]
        rows = [[row[number] for number in kept] for row in self.rows]
        return Tabular(self.title, [self.columns[number] for number in kept], rows)

    def named(self) -> list[str]:
        """The headings, with a name for the interval columns that have none."""
        return [each or f"{before}, interval" for before, each in zip(["", *self.columns], self.columns, strict=False)]

    def is_number(self, column: int) -> bool:
        """Whether the column is right-aligned: all of its cells begin with a digit or a sign."""
        cells = [row[column] for row in self.rows if row[column] not in ("", "—")]
        return bool(cells) and all(cell[0].isdigit() or cell[0] in "+-\u2212∞" for cell in cells)


def latex(table: Tabular) -> str:
    r"""LaTeX for ``\usepackage{booktabs}``; the title is a comment."""
    ends = "".join("r" if table.is_number(number) else "l" for number in range(len(table.columns)))
    body = [_tex_row(row) for row in table.rows]
    head = [f"% {table.title}", r"% needs \usepackage{booktabs}", rf"\begin{{tabular}}{{{ends}}}", r"\toprule"]
    return "\n".join([*head, _tex_row(table.columns), r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _tex_row(cells: list[str]) -> str:
    return " & ".join("".join(_TEX.get(letter, letter) for letter in cell) for cell in cells) + r" \\"


def markdown(table: Tabular) -> str:
    """A GitHub Markdown table below its title."""
    dashes = ["---:" if table.is_number(number) else "---" for number in range(len(table.columns))]
    lines = [_bar(table.named()), _bar(dashes), *(_bar(row) for row in table.rows)]
    return "\n".join([f"**{table.title}**", "", *lines]) + "\n"


def _bar(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def comma_separated(table: Tabular) -> str:
    """CSV (RFC 4180, but with plain line ends); numbers have ASCII signs and no spaces."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.named())
    writer.writerows([cell.translate(_PLAIN) for cell in row] for row in table.rows)
    return written.getvalue()


def text(table: Tabular, width: int | None = None) -> str:
    """Aligned text for a terminal. If the terminal is too narrow, the columns follow in parts below each other.

    The leading columns without numbers identify a row. They are repeated in every part, or, if they leave no room,
    stand on a line above each row.
    """
    lines = [[cell.translate(_SPACES) for cell in line] for line in (table.columns, *table.rows)]
    numbers = [number for number in range(len(table.columns)) if table.is_number(number)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(table.columns))]
    labels = list(range(numbers[0] if numbers else len(widths)))
    together = _together(table.columns, len(labels))
    room = (width or _total([*range(len(widths))], widths)) - _total(labels, widths) - len(_GAP)
    above = bool(together) and max(_total(each, widths) for each in together) > room
    if above:
        room = (width or 0) - len(_GAP)
    text_lines = folded(table.title, width)
    for number, part in enumerate(_parts(together, widths, room) or [[]]):
        text_lines += [""] if number else []
        shown = part if above else [*labels, *part]
        for line in lines:
            if above and any(line[each] for each in labels):
                text_lines += folded(", ".join(filter(None, (line[each] for each in labels))), width)
            cells = [
                line[each].rjust(widths[each]) if each in numbers else line[each].ljust(widths[each]) for each in shown
            ]
            text_lines.append((_GAP if above else "") + _GAP.join(cells).rstrip())
    return "\n".join(text_lines) + "\n"


def _together(columns: list[str], first: int) -> list[list[int]]:
    """The columns from ``first`` on, grouped so that a column without a heading stays with the one before it."""
    found: list[list[int]] = []
    for number in range(first, len(columns)):
        if columns[number] or not found:
            found.append([])
        found[-1].append(number)
    return found


def _total(columns: list[int], widths: list[int]) -> int:
    return sum(widths[each] for each in columns) + len(_GAP) * (len(columns) - 1)


def _parts(together: list[list[int]], widths: list[int], room: int) -> list[list[int]]:
    """Distribute the groups of columns over parts that fit the room, at least one group in each."""
    parts: list[list[int]] = []
    for each in together:
        if not parts or _total([*parts[-1], *each], widths) > room:
            parts.append([])
        parts[-1] += each
    return parts


FORMS: dict[str, Callable[[Tabular], str]] = {
    "text": text,
    "latex": latex,
    "markdown": markdown,
    "csv": comma_separated,
}


def result_table(results: Table, title: str, names: Sequence[str] = ()) -> Tabular:
    """A table of the given measures, or of the main ones, each followed by a column for its spread. Raises HowdahError
    for a measure without a value."""
    place = {measure.name: number for number, measure in enumerate(results.measures)}
    lacking = next((name for name in names if name not in place), None)
    if lacking is not None:
        raise HowdahError(f"no run that counts has a value of {lacking} for a flow, a group or the whole run")
    shown = [place[name] for name in names]
    if not names:
        shown = [number for number, measure in enumerate(results.measures) if measure.main]
    columns = ["point", "algorithm", "n", "flow"]
    for number in shown:
        measure = results.measures[number]
        name = f"{measure.header} ({measure.unit})" if measure.unit else measure.header
        columns += [name, f"{name}, spread"]
    rows = []
    for point, blocks in results.points:
        for block in blocks:
            for row in block.rows:
                cells = [point, block.variant.label, str(block.count), row.flow]
                for number in shown:
                    cell = row.cells[number]
                    cells += [cell.text if cell else "", cell.interval if cell else ""]
                rows.append(cells)
    spread = f"; spread: {results.spread_words}" if results.spread_words else ""
    return Tabular(f"{title}: medians over n repetitions{spread}", columns, rows)
