# SPDX-License-Identifier: Apache-2.0
"""The exit strip in print: a row for each algorithm and sweep point, a mark for each flow of each repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from howdah.errors import HowdahError
from howdah.record.result import Run
from howdah.record.table import swept
from howdah.report.exitstrip import ExitMark, ExitRow, exit_row, strip_ends
from howdah.report.paper.sheet import LIMIT_STYLE, FigureSheet, plain_logarithm, wrapped
from howdah.report.plot.swept import place_words
from howdah.report.variant import Variants

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_IN, _MARGIN_IN = 0.2, 0.62
_KINDS = {"first flow": ("o", True), "later flows": ("s", False), "run does not count": ("x", True)}
_NAME_SHARE, _LINE_IN = 0.36, 0.125  # of the width that names of rows may have, and the height of their lines
_ROOM = 0.7  # of the width: a name that begins further right would be cut off
_SPREAD = 0.5  # of a row, over which the repetitions lie


def draw_strip(runs: list[Run], variants: Variants, sheet: FigureSheet) -> Figure:
    """Draw the exit strip. Raises HowdahError if no run reports an exit."""
    rows = rows_of(runs, variants)
    if not rows:
        raise HowdahError("no run reports a slow-start exit", hint="'howdah report' says why for each flow.")
    return draw_rows(rows, [variant.colour.light for variant in variants.all], sheet)


def draw_rows(rows: list[ExitRow], colours: list[str], sheet: FigureSheet) -> Figure:
    """Draw the rows; ``colours`` has one colour for each variant."""
    names = [wrapped(row.label, _NAME_SHARE * sheet.width_in) for row in rows]
    figure = sheet.figure(_MARGIN_IN + sum(max(_ROW_IN, _LINE_IN * (name.count("\n") + 1)) for name in names))
    axes = figure.subplots()
    _shade_background(axes, rows)
    for number, row in enumerate(rows):
        _marks(axes, row, number, colours)
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    shares = [mark.share for row in rows for mark in row.marks]
    least, most, logarithmic = strip_ends(shares, max(row.full for row in rows))
    axes.set_xscale("log" if logarithmic else "linear")
    axes.set_xlim(least, most)
    if logarithmic:
        plain_logarithm(axes.xaxis)
    _label_limits(axes, rows[0].full)
    axes.set_xlabel("Window at the slow-start exit / BDP")
    _legend(figure, [mark for row in rows for mark in row.marks])
    return figure


def rows_of(runs: list[Run], variants: Variants) -> list[ExitRow]:
    """A row for each variant at each sweep point that has exits."""
    points = list(dict.fromkeys(run.point for run in runs))
    rows = []
    for point in points:
        for variant in variants.all:
            mine = [run for run in runs if run.point == point and variants.key(run) == variant.key]
            place = (place_words(swept(mine[0].axes)) or point) if mine and len(points) > 1 else ""
            rows.append(exit_row(", ".join(filter(None, (variant.label, place))), mine, variants))
    return [row for row in rows if row.marks]


def _kind(mark: ExitMark) -> str:
    if not mark.counts:
        return "run does not count"
    return "first flow" if mark.first_flow else "later flows"


def _legend(figure: Figure, marks: list[ExitMark]) -> None:
    """Add a legend in black only, because a mark's colour shows its variant."""
    from matplotlib.lines import Line2D

    present = {_kind(mark) for mark in marks}
    if len(present) < 2:
        return
    handles = [
        Line2D([], [], color="black", marker=marker, markerfacecolor="black" if full else "white", linestyle="none")
        for kind, (marker, full) in _KINDS.items()
        if kind in present
    ]
    figure.legend(handles, [kind for kind in _KINDS if kind in present], loc="outside upper left", ncols=3)


def _shade_background(axes: Axes, rows: list[ExitRow]) -> None:
    """Shade what fits the path, and draw a line at the end of each row's buffer."""
    axes.axvspan(0, 1, color="#ebebeb", linewidth=0, zorder=0)
    axes.axvline(1, **LIMIT_STYLE)
    for number, row in enumerate(rows):
        ends = ([row.full, row.full], [number - 0.5, number + 0.5])
        axes.plot(*ends, **LIMIT_STYLE | {"linestyle": "-"})
        axes.axhline(number, color="#c8c8c8", linewidth=0.4, zorder=0)


def _label_limits(axes: Axes, full: float) -> None:
    """Put the names of both limits above the rows; that of the buffer to the right of its line if there is room."""
    one, far = (axes.transLimits.transform(axes.transScale.transform((share, 0)))[0] for share in (1, full))
    right = far < _ROOM
    raised = not right and far - one < 1 - _ROOM  # too close to the other name
    for share, words, align in ((1.0, "BDP", "right"), (full, "BDP + buffer", "left" if right else "right")):
        axes.annotate(
            words,
            (share, 1),
            xycoords=("data", "axes fraction"),
            xytext=(1.5 if align == "left" else -1.5, 9 if raised and share == full else 1),
            textcoords="offset points",
            ha=align,
            va="bottom",
            fontsize=6.5,
            color="#404040",
        )


def _marks(axes: Axes, row: ExitRow, number: int, colours: list[str]) -> None:
    """Draw the marks; repetitions are shifted vertically so that equal exits can be counted by eye."""
    repetitions = sorted({mark.repetition for mark in row.marks})
    for mark in row.marks:
        place = repetitions.index(mark.repetition) - (len(repetitions) - 1) / 2
        y = number + _SPREAD * place / max(1, len(repetitions) - 1)
        marker, full = _KINDS[_kind(mark)]
        axes.plot(
            *([mark.share], [y]),
            marker=marker,
            color=colours[mark.variant],
            markerfacecolor=colours[mark.variant] if full else "white",
            linestyle="none",
            gid=f"exit-{mark.run}-{mark.flow}",
        )
