# SPDX-License-Identifier: Apache-2.0
"""Text for the terminal it is printed on: aligned where it fits, else folded, never broken by the terminal."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

DEFAULT_WIDTH = 80


def terminal_width() -> int | None:
    """Columns of the terminal, or what $COLUMNS says; None where the output goes to a file or a program."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):
        return None


def folded(text: str, width: int | None, indent: str = "", first: str | None = None) -> list[str]:
    """A paragraph in lines of at most ``width``; the first one begins with ``first``. Words and paths stay whole."""
    begin = indent if first is None else first
    text = re.sub(r"[ \t\r\n]+", " ", text).strip(" ")  # a thin space within a number stays
    if width is None:
        return [begin + text]
    return textwrap.wrap(
        text,
        max(width, len(indent) + 20),
        initial_indent=begin,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [begin.rstrip()]


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows with their columns below each other, those in ``right`` aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def records(rows: Sequence[dict[str, Any]], width: int) -> list[str]:
    """A table where it fits; else each row as its first value with the others below it."""
    header = list(rows[0])
    lines = aligned([header, *([str(row[name]) for name in header] for row in rows)])
    if max(map(len, lines)) <= width:
        return lines
    lines = []
    for row in rows:
        lines.append(str(row[header[0]]))
        for name in header[1:]:
            if row[name] != "":
                lines += folded(str(row[name]), width, "    ", f"  {name}: ")
    return lines


def glossary(rows: Sequence[tuple[str, str]], width: int, widest: int = 30) -> list[str]:
    """Names with what they are beside them, or below a name of more than ``widest`` letters."""
    column = max([len(name) for name, _ in rows if len(name) <= widest], default=0) + 4
    lines = []
    for name, text in rows:
        if len(name) > widest:
            lines.append(f"  {name}")
            lines += folded(text, width, " " * column)
        else:
            lines += folded(text, width, " " * column, f"  {name}".ljust(column))
    return lines
