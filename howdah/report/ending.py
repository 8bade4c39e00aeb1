# SPDX-License-Identifier: Apache-2.0
"""The text at the end of a command: the findings in sentences and the result table. No page is loaded for it.

A table wider than the terminal is folded between columns, so no number is lost and no line wraps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from howdah.layout import folded
from howdah.record.result import Experiment, without_controls
from howdah.report.findings import findings
from howdah.report.plot.swept import place_words
from howdah.report.results import are_many, is_many, with_main_measures
from howdah.report.source import Source
from howdah.report.table import Table, table
from howdah.report.variant import Variants

_WIDTH = 100


def results(experiments: list[Experiment], source: Source) -> Table:
    """The result table of some experiments."""
    summed = with_main_measures(experiments) if is_many(experiments) else experiments
    summaries = [source.summary(experiment) for experiment in summed]
    return table(without_controls(experiments), summaries, Variants(experiments))


def ending(results: Table, width: int | None = None, told: Collection[str] = ()) -> str:
    """The text that ends a command: the findings in sentences, as at the top of the report, then the table.

    For many runs it has the sentences alone. ``told`` names runs whose failure the command itself already explained.
    """
    columns = min(width or _WIDTH, _WIDTH)
    words = "\n".join(textwrap.fill(sentence, columns, break_on_hyphens=False) for sentence in findings(results))
    if are_many(sum(block.total for _, blocks in results.points for block in blocks)):
        return f"{words}\n\nThe report has statistics of these runs, and each run by request."
    return f"{words}\n\n{text_table(results, width, told)}"


def text_table(results: Table, width: int | None = None, told: Collection[str] = ()) -> str:
    """The main measures as aligned text, one line per flow of a variant. Where repetitions differ, the next line has
    their spread. Excluded runs follow, except those in ``told``.

    A table wider than ``width`` is folded: the measures follow in parts that repeat the variants and flows.
    """
    columns = [index for index, measure in enumerate(results.measures) if measure.main]
    header = ["", "n", "flow"] + [results.measures[index].header for index in columns]
    units = ["", "", ""] + [results.measures[index].unit for index in columns]
    lines: list[list[str]] = []
    for point, blocks in results.points:
        if point:
            lines.append([f"[{place_words(blocks[0].axes)}]"])
        for block in blocks:
            for number, row in enumerate(block.rows):
                first = [block.variant.label, str(block.count)] if number == 0 else ["", ""]
                cells = [row.cells[index] for index in columns]
                lines.append([*first, row.flow, *(cell.text if cell else "" for cell in cells)])
                apart = [cell.interval if cell else "" for cell in cells]
                if any(apart):
                    lines.append(["", "", "", *apart])
    text = fold([header, units, *lines], width)
    if results.spread_words:
        text += folded(f"medians over n repetitions; below them, where they differ, {results.spread_words}", width)
    for name, verdict, why in results.left_out:
        if name not in told:
            text += folded(f"left out: {name} ({verdict}{': ' + why if why else ''})", width, "  ", "")
    return "\n".join(text)


LABELS = 3  # columns that say what a row is; they are repeated in every part
_LEFT_ALIGNED = (0, 2)  # of them, those aligned to the left
_GAP = "  "


def fold(lines: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Align the columns of the lines; a line with a single text stays as it is.

    The first two lines are headings. If the lines are wider than ``width``, the columns follow in parts below each
    other; a variant's name that leaves no room for numbers gets its own line.
    """
    widths = _widths(lines)
    numbers = range(LABELS, len(widths))
    if width is None or _total(widths) <= width or not numbers:
        return _part(lines, [*range(len(widths))], widths, width)
    alone = sum(widths[:LABELS]) + len(_GAP) * LABELS + max(widths[LABELS:]) > width or widths[0] > width // 2
    if alone:
        lines = _names_above(lines)
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
    """Split the columns into parts that fit beside the labels; each part has at least one column."""
    parts: list[list[int]] = [[]]
    for index in range(LABELS, len(widths)):
        if parts[-1] and _total([*widths[:LABELS], *(widths[each] for each in parts[-1]), widths[index]]) > width:
            parts.append([])
        parts[-1].append(index)
    return parts


def _names_above(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """Move the name of each variant to its own line above its rows."""
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
            line[index].ljust(widths[index]) if index in _LEFT_ALIGNED else line[index].rjust(widths[index])
            for index in columns
        ]
        text.append(_GAP.join(cells).rstrip())
    return text
