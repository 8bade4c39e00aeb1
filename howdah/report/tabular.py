# SPDX-License-Identifier: Apache-2.0
"""A table of texts as LaTeX (booktabs), Markdown, CSV or plain text: the same cells in each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass

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
    """``columns`` are headings; every row has as many cells. A column that is empty throughout is not written."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def used(self) -> Tabular:
        """Without columns that have no text."""
        kept = [number for number in range(len(self.columns)) if any(row[number] for row in self.rows)]
        rows = [[row[number] for number in kept] for row in self.rows]
        return Tabular(self.title, [self.columns[number] for number in kept], rows)

    def is_number(self, column: int) -> bool:
        """Whether the column is aligned to the right: all of its cells begin with a digit or a sign."""
        cells = [row[column] for row in self.rows if row[column] not in ("", "—")]
        return bool(cells) and all(cell[0].isdigit() or cell[0] in "+-\u2212∞" for cell in cells)


def latex(table: Tabular) -> str:
    r"""For ``\usepackage{booktabs}``; the title is a comment."""
    ends = "".join("r" if table.is_number(number) else "l" for number in range(len(table.columns)))
    body = [_tex_row(row) for row in table.rows]
    head = [f"% {table.title}", r"% needs \usepackage{booktabs}", rf"\begin{{tabular}}{{{ends}}}", r"\toprule"]
    return "\n".join([*head, _tex_row(table.columns), r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _tex_row(cells: list[str]) -> str:
    return " & ".join("".join(_TEX.get(letter, letter) for letter in cell) for cell in cells) + r" \\"


def markdown(table: Tabular) -> str:
    """A table of GitHub's Markdown below its title."""
    dashes = ["---:" if table.is_number(number) else "---" for number in range(len(table.columns))]
    lines = [_bar(table.columns), _bar(dashes), *(_bar(row) for row in table.rows)]
    return "\n".join([f"**{table.title}**", "", *lines]) + "\n"


def _bar(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def comma_separated(table: Tabular) -> str:
    """CSV (RFC 4180, but with plain line ends); numbers have ASCII signs and no spaces in them."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([cell.translate(_PLAIN) for cell in row] for row in table.rows)
    return written.getvalue()


def text(table: Tabular) -> str:
    """Aligned, for a terminal."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[number]) for line in lines) for number in range(len(table.columns))]
    right = [table.is_number(number) for number in range(len(table.columns))]
    rows = [
        "  ".join(
            cell.translate(_SPACES).rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join([table.title, *rows]) + "\n"


FORMS: dict[str, Callable[[Tabular], str]] = {
    "text": text,
    "latex": latex,
    "markdown": markdown,
    "csv": comma_separated,
}
