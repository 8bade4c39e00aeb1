# SPDX-License-Identifier: Apache-2.0
"""Measured numbers beside a paper's, as an HTML table."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from howdah.number import between, significant
from howdah.profile.figure import FigureSection, Take
from howdah.report.plot.grid import count_words
from howdah.report.plot.model import Picture
from howdah.report.plot.sample import (
    AnyExperiment,
    NothingToDrawError,
    PlotSample,
    Selection,
    base_unit,
    sample,
    select,
)
from howdah.report.plot.scale import Measure, measure_of, printed_number
from howdah.report.plot.swept import field_name
from howdah.report.table import cause_text


@dataclass(frozen=True)
class Column:
    """The contents of a column; ``key`` are the names under which the paper may list its numbers for it."""

    metric: str
    flow: int | str | None
    take: Take | None
    at: dict[str, Any]
    title: str | None
    key: tuple[str, ...]


def draw_table(figure: FigureSection, experiment: AnyExperiment) -> Picture:
    """Draw the mean and spread of each cell, and below them the paper's number. Raises NothingToDrawError."""
    across = figure.columns if isinstance(figure.columns, str) else None
    of_columns = [] if across else [axis for column in figure.columns for axis in column.at]  # type: ignore[union-attr]
    axes = list(dict.fromkeys([*figure.rows, *([across] if across else []), *of_columns]))
    selection = select(figure, experiment, *axes)
    columns = _columns(figure, selection, across)
    rows = list(itertools.product(*(selection.values(axis) for axis in figure.rows)))
    cells = _cells(figure, selection, rows, columns, of_columns)
    shown = [(row, samples) for row, samples in cells.items() if any(each.runs for each in samples)]
    measures = [
        _measure(column, selection, [samples[number] for _row, samples in shown])
        for number, column in enumerate(columns)
    ]
    html = [_head(figure, columns, measures)]
    counts: Counter[int] = Counter()
    missing = []
    for row, samples in shown:
        html.append("<tr>" + "".join(f'<th scope="row">{escape(value)}</th>' for value in row))
        for each, column, measure in zip(samples, columns, measures, strict=True):
            if (statistic := each.statistic) is not None:
                counts[statistic.count] += 1
            if each.missing or not each.runs:
                why = each.why if each.runs else each.absent
                missing.append(f"{', '.join(row)}, {column.title or measure.words}: {why}")
            html.append(f"<td>{_cell(each, measure)}{_paper(figure, row, column, measure)}</td>")
        html.append("</tr>")
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(figure.title)}">'
    drawn = Picture(html=f'{region}<table class="chart-table">{"".join(html)}</tbody></table></div>')
    drawn.caption = [count_words(counts).replace("; no whisker where", "; none where")]
    if figure.paper:
        drawn.caption.append(f"In italics: {figure.paper.label}.")
    drawn.missing = missing
    return drawn


def _cells(
    figure: FigureSection,
    selection: Selection,
    rows: list[tuple[str, ...]],
    columns: list[Column],
    column_axes: list[str],
) -> dict[tuple[str, ...], list[PlotSample]]:
    """The samples of each row, one for each column. Raises NothingToDrawError if there are none, or if a column leaves
    an axis open that other columns choose a value of."""
    found: dict[tuple[str, ...], list[PlotSample]] = {}
    for row in rows:
        here = selection.where(dict(zip(figure.rows, row, strict=True)))
        found[row] = []
        for column in columns:
            runs = here.where(column.at).runs
            free = [axis for axis in column_axes if axis not in column.at and len(here.values(axis)) > 1]
            if free and runs:
                raise NothingToDrawError(f"the column {column.key[0]} needs {free[0]} in its at")
            found[row].append(sample(runs, column.metric, column.flow, column.take))
    if not any(each.stored or each.texts or each.runs for samples in found.values() for each in samples):
        raise NothingToDrawError("it has no published number")
    return found


def _columns(figure: FigureSection, selection: Selection, across: str | None) -> list[Column]:
    if across is not None:
        return [
            Column(figure.y or "", figure.flow, figure.take, {across: value}, value, (value,))
            for value in selection.values(across)
        ]
    assert not isinstance(figure.columns, str)
    return [
        Column(
            each.metric,
            each.flow if each.flow is not None else figure.flow,
            each.take or (figure.take if each.flow is None else None),
            dict(each.at),
            each.title,
            (each.title, each.metric) if each.title else (each.metric,),
        )
        for each in figure.columns
    ]


def _measure(column: Column, selection: Selection, samples: list[PlotSample]) -> Measure:
    base = base_unit(selection.runs, column.metric)
    stored = [each.stored.mean for each in samples if each.stored is not None]
    return measure_of(column.metric, base, stored or [number for each in samples for number in each.numbers.values()])


def _head(figure: FigureSection, columns: list[Column], measures: list[Measure]) -> str:
    names = "".join(f'<th scope="col">{escape(field_name(axis))}</th>' for axis in figure.rows)
    heads = []
    for column, measure in zip(columns, measures, strict=True):
        of = f" of flow {column.flow}" if isinstance(column.flow, int) else ""
        of = of or (f" of {column.flow}" if column.flow not in (None, "all") else "")
        title = column.title or measure.words + of
        unit = f'<span class="unit">{escape(measure.unit)}</span>' if measure.unit else ""
        heads.append(f'<th scope="col">{escape(title)}{unit}</th>')
    over = ""
    if isinstance(figure.columns, str):
        label = f"{field_name(figure.columns)}: {measures[0].words}"
        across = f'<th scope="colgroup" colspan="{len(columns)}">{escape(label)}</th>'
        over = f'<tr><td colspan="{len(figure.rows)}"></td>{across}</tr>'
    return f"<thead>{over}<tr>{names}{''.join(heads)}</tr></thead><tbody>"


def _cell(each: PlotSample, measure: Measure) -> str:
    statistic = each.statistic
    if statistic is None and each.texts:
        counts = Counter(each.texts).most_common()
        if len(counts) == 1:
            return str(escape(cause_text(counts[0][0])))
        return str(escape(", ".join(f"{cause_text(text)} ×{count}" for text, count in counts)))
    if statistic is None:
        return f'<span class="absent" title="{escape(each.why)}">—</span>'
    text = significant(statistic.mean * measure.factor)
    spread = statistic.about_mean(measure.least)
    if spread is not None:
        text += f"<small> {between(spread.low * measure.factor, spread.high * measure.factor)}</small>"
    return text


def _paper(figure: FigureSection, row: tuple[str, ...], column: Column, measure: Measure) -> str:
    if figure.paper is None:
        return ""
    values = figure.paper.points.get(", ".join(row), {})
    for name in column.key:
        if name in values:
            text = _printed(values[name], measure)
            return f'<i class="printed" title="{escape(figure.paper.label)}">{escape(text)}</i>'
    return ""


def _printed(value: Any, measure: Measure) -> str:
    """The printed number in the unit of the column; a text (such as a cause) as it is."""
    if not measure.base and isinstance(value, str):
        return value
    return significant(printed_number(value, measure.name) * measure.factor, 6)
