# SPDX-License-Identifier: Apache-2.0
"""A table of text that is wider than its terminal, folded between columns: every number stays, no line is broken."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.layout import folded

LABELS = 3  # columns that say what a row is; they are repeated in every part
_LEFT = (0, 2)  # of them, those aligned to the left
_GAP = "  "


def fold(lines: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The lines with their columns aligned; one with a single text stands as it is.

    The first two lines are headings. Where the lines are wider than ``width``, the columns follow in parts below each
    other; a variant whose name leaves no room for numbers stands on a line of its own.
    """
    widths = _widths(lines)
    numbers = range(LABELS, len(widths))
    if width is None or _total(widths) <= width or not numbers:
        return _part(lines, [*range(len(widths))], widths, width)
    alone = sum(widths[:LABELS]) + len(_GAP) * LABELS + max(widths[LABELS:]) > width or widths[0] > width // 2
    if alone:
        lines = _headed(lines)
        widths = _widths(lines)
    text: list[str] = []
    for columns in _parts(widths, width):
        text += [*([""] if text else []), *_part(lines, [*range(LABELS), *columns], widths, width)]
    return text


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line[index]) for line in lines if len(line) > 1) for index in range(len(lines[0]))]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _parts(widths: Sequence[int], width: int) -> list[list[int]]:
    """As many columns in each part as fit beside the labels, at least one."""
    parts: list[list[int]] = [[]]
    for index in range(LABELS, len(widths)):
        if parts[-1] and _total([*widths[:LABELS], *(widths[each] for each in parts[-1]), widths[index]]) > width:
            parts.append([])
        parts[-1].append(index)
    return parts


def _headed(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """The name of each variant on a line above its rows."""
    found: list[list[str]] = []
    for line in lines:
        if len(line) > 1 and line[0]:
            found.append([line[0]])
        found.append([" ", *line[1:]] if len(line) > 1 else list(line))
    return found


def _part(
    lines: Sequence[Sequence[str]], columns: Sequence[int], widths: Sequence[int], width: int | None
) -> list[str]:
    text: list[str] = []
    for line in lines:
        if len(line) == 1:
            text += folded(line[0], width, "  ", "")
            continue
        if not any(line[index].strip() for index in columns):
            continue  # its numbers are in other parts
        cells = [
            line[index].ljust(widths[index]) if index in _LEFT else line[index].rjust(widths[index])
            for index in columns
        ]
        text.append(_GAP.join(cells).rstrip())
    return text
