# SPDX-License-Identifier: Apache-2.0
"""Layout of terminal output: columns if they fit, otherwise folded lines, so that the terminal never breaks a line."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from howdah.foreign import escape_controls

DEFAULT_WIDTH = 80


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal, or of $COLUMNS; None if the output goes to a file or a program.

    ``stream`` is the output (default: stdout).
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
    except (OSError, ValueError):
        return None


def folded(text: str, width: int | None, indent: str = "", first: str | None = None) -> list[str]:
    """Fold a paragraph into lines of at most ``width``; the first begins with ``first``. Words stay whole."""
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


def fitted(text: str, whole: str | None = None) -> str:
    """Fold lines that are wider than the terminal; continuation lines are indented further.

    Lines that begin with ``whole`` after their indentation are commands to copy and stay unchanged.
    """
    width = terminal_width()
    return text if width is None else _fitted(text, width, re.compile(f" *{re.escape(whole)}") if whole else None)


def _fitted(text: str, width: int, stays: re.Pattern[str] | None) -> str:
    lines = []
    for line in text.split("\n"):
        content = line.lstrip(" ")
        indent = line[: len(line) - len(content)]
        if len(line) <= width or (stays and stays.match(line)):
            lines.append(line)
        else:
            lines += folded(content, width, f"{indent}  ", indent)
    return "\n".join(lines)


# A line of a hint that contains a command to copy. Hints are indented; an error can begin with "howdah list:".
_TO_COPY = re.compile(r" +(?:(?:apt|dnf) install |pacman -S |apk add |howdah |sh |run: )")


def write_stdout(text: str) -> None:
    """Write to standard output. Control characters, which a foreign name may contain, are escaped."""
    sys.stdout.write(escape_controls(text))


def write_stderr(text: str) -> None:
    """Write lines to standard error, folded to the terminal's width. Commands to copy stay whole.

    If standard error is a file that cannot grow, the text goes to the terminal from which the command was started.
    """
    width = terminal_width(sys.stderr)
    text = escape_controls(text)
    try:
        sys.stderr.write(text if width is None else _fitted(text, width, _TO_COPY))
        sys.stderr.flush()
    except OSError:
        with suppress(OSError), Path("/dev/tty").open("w", encoding="utf-8") as terminal:
            terminal.write(text)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Pad the rows into columns; those in ``right`` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def records(rows: Sequence[dict[str, Any]], width: int) -> list[str]:
    """Lay out rows as a table if it fits into ``width``; otherwise as blocks headed by their first value."""
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


def headed(rows: Sequence[Sequence[str]], labels: int, right: Sequence[int] = ()) -> list[str]:
    """Lay out a table. If it does not fit the terminal, its first ``labels`` columns become headings above their rows.

    An empty label repeats the one in the row above. Columns in ``right`` are aligned to the right.
    """
    width = terminal_width()
    lines = aligned(rows, right)
    if width is None or max(map(len, lines)) <= width:
        return lines
    body = aligned([row[labels:] for row in rows], [number - labels for number in right])
    lines, shown = [], [""] * labels
    for row, line in zip(rows, body, strict=True):
        here = [new or old for new, old in zip(row[:labels], shown, strict=True)]
        if here != shown:
            lines.append("  ".join(filter(None, here)))
        lines.append(f"  {line}".rstrip())
        shown = here
    return lines


def glossary(rows: Sequence[tuple[str, str]], width: int, widest: int = 30) -> list[str]:
    """Lay out names with their descriptions beside them, or below a name of more than ``widest`` letters."""
    column = max([len(name) for name, _ in rows if len(name) <= widest], default=0) + 4
    lines = []
    for name, text in rows:
        if len(name) > widest:
            lines.append(f"  {name}")
            lines += folded(text, width, " " * column)
        else:
            lines += folded(text, width, " " * column, f"  {name}".ljust(column))
    return lines
