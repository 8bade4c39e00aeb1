# SPDX-License-Identifier: Apache-2.0
"""The end of a command: what was found in words, and the result table as text. No page is loaded for it."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

from howdah.layout import folded
from howdah.record.result import Experiment, without_controls
from howdah.report.fold import fold
from howdah.report.found import found
from howdah.report.many import are_many, is_many, with_main_measures
from howdah.report.plot.swept import place_words
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
    """What was found in words, as the report begins with, then the table: for the end of a command.

    Of many runs there are the words alone. ``told`` names runs of which the command itself says why they do not count.
    """
    columns = min(width or _WIDTH, _WIDTH)
    words = "\n".join(textwrap.fill(sentence, columns, break_on_hyphens=False) for sentence in found(results))
    if are_many(sum(block.total for _, blocks in results.points for block in blocks)):
        return f"{words}\n\nThe report has statistics of these runs, and each run by request."
    return f"{words}\n\n{text_table(results, width, told)}"


def text_table(results: Table, width: int | None = None, told: Collection[str] = ()) -> str:
    """The main measures as aligned text, a line for each flow of a variant, below it how far its repetitions lie apart
    where they do; what was left out follows, without those ``told``.

    Where the table is wider than ``width`` it is folded: the measures follow in parts, each with variants and flows.
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
