# SPDX-License-Identifier: Apache-2.0
"""A profile's figures (sweeps, bars, distributions, time lines) and the difference view, for print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from howdah.errors import HowdahError
from howdah.number import significant
from howdah.profile.experiment import sections_of_experiment
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment
from howdah.report.contrast import contrasts, headline_measures
from howdah.report.dotplot import side_styles
from howdah.report.ending import results
from howdah.report.paper.line import DASHES, MARKS
from howdah.report.paper.sheet import LIMIT_STYLE, FigureSheet, legend_columns, legend_entries, plain_logarithm, wrapped
from howdah.report.plot.draw import picture_of
from howdah.report.plot.limit import Curve, Frame, placed
from howdah.report.plot.model import Panel, Picture, PlotAxis, PlotLine
from howdah.report.plot.scale import Scale, Tick
from howdah.report.source import TableSource
from howdah.report.subject import subjects_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

PREFIX = "profile:"
# Kinds of a profile's figures that are pictures; a table is none.
DRAWN_KINDS = {
    "sweep": "a figure of the profile: a measure against an axis of the sweep",
    "bars": "a figure of the profile: the same in categories, side by side",
    "cdf": "a figure of the profile: a distribution over the connections of a group",
    "time": "a figure of the profile: curves of one repetition",
}
_PANEL_IN = 1.55
_HEAD_IN = 0.35
_MOST_ROWS = 40
_FIELD_IN, _MAP_MARGIN_IN = 0.17, 0.55
_NUMBER_IN = 0.36  # that the number of a field of the map needs
_LETTER_IN, _AXIS_SHARE = 0.062, 0.75
_NAME_SHARE = 0.36  # of the width that names of rows may have
_HOLLOW: dict[str, Any] = {"linestyle": "none", "marker": "D", "markerfacecolor": "white"}
_LIMIT_POINTS = 6.5  # of the names of limits
_PIXELS_OF_A_POINT = 1.75  # of a page: its letters, 6.8 pixels wide, are as wide as these
_SIDE_BY_SIDE = 0.8  # of the room of a place, for its bars or marks
_HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "++++", "oooo")


def declared_sections(experiments: list[Experiment]) -> dict[str, tuple[FigureSection, Experiment]]:
    """The drawable figures that profiles declare, by their names on the command line."""
    found: dict[str, tuple[FigureSection, Experiment]] = {}
    for experiment in experiments:
        try:
            sections = sections_of_experiment(experiment.path)
        except HowdahError:
            continue  # its report says so
        for section in sections.figures:
            if section.kind in DRAWN_KINDS:
                found.setdefault(f"{PREFIX}{section.id}", (section, experiment))
    return found


def declared_picture(section: FigureSection, experiment: Experiment) -> Picture:
    """A declared figure with its full caption. Raises HowdahError if there is nothing to draw."""
    picture = picture_of(section, experiment)
    words = [f"{picture.title}.", section.note, *picture.caption]
    words += [f"Hollow marks: {picture.paper}."] if picture.paper else []
    words += [f"Missing: {'; '.join(picture.missing)}."] if picture.missing else []
    picture.caption = list(filter(None, words))
    return picture


def difference_figure(experiments: list[Experiment]) -> Picture:
    """A dot for each side at each point: its ratio to the first side. Raises HowdahError if nothing is compared."""
    subjects, metrics = headline_measures(subjects_of(results(experiments, TableSource())))
    everything = contrasts(subjects, metrics)
    found = [each for each in everything if each.has_ratio]
    if not found:
        raise HowdahError("there are no two sides to compare")
    places = list(dict.fromkeys(each.place for each in found))[:_MOST_ROWS]
    looks = side_styles(subjects)
    panels = []
    for metric in dict.fromkeys(each.metric.name for each in found):
        mine = [each for each in found if each.metric.name == metric and each.place in places]
        lines = []
        for side in dict.fromkeys(each.side for each in mine):
            line = PlotLine(side, looks[side], [], [])
            for each in mine:
                if each.side == side and each.of.ratios:
                    about = None if each.of.is_alike else each.of.around
                    line.x.append(float(places.index(each.place)))
                    line.y.append(1.0 if each.of.is_alike else each.of.ratios.median)
                    line.low.append(about.low if about else float("nan"))
                    line.high.append(about.high if about else float("nan"))
            lines.append(line)
        across = PlotAxis("", ticks=[Tick(float(number), place or "all") for number, place in enumerate(places)])
        panels.append(Panel(mine[0].metric.words, across, PlotAxis(f"ratio to {found[0].other}"), lines, "dots"))
    caption = (
        f"Ratios to {found[0].other} at each point: medians over pairs of equal repetitions, with the least and the "
        "largest of few pairs, else the 95 % interval."
    )
    lacking = [f"{each.metric.words}, {each.placed}: {each.against}" for each in everything if not each.has_ratio]
    caption += f" Without a ratio: {'; '.join(lacking)}." if lacking else ""
    return Picture("Differences", panels, caption=[caption])


def draw_picture(picture: Picture, sheet: FigureSheet) -> Figure:
    """Draw the panels below each other with one legend above. Call it within ``sheet.styled()``."""
    figure = sheet.figure(_HEAD_IN + sum(_height_in(panel, sheet.width_in) for panel in picture.panels))
    for axes, panel in zip(figure.subplots(len(picture.panels), squeeze=False)[:, 0], picture.panels, strict=True):
        if panel.look == "map":
            _draw_map(axes, panel, sheet.width_in)
        elif panel.look == "dots":
            _draw_dots(axes, panel, sheet.width_in)
        else:
            draw_lines(axes, panel, sheet.width_in)
        axes.set_title(panel.title)
        axes.set_xlabel(panel.up.label if panel.look == "dots" else panel.across.label)
        axes.set_ylabel("" if panel.look == "dots" else wrapped(panel.up.label, _PANEL_IN - _HEAD_IN))
    keys = legend_keys(figure.axes)
    if picture.paper:
        keys[f"hollow: {picture.paper}"] = figure.axes[0].plot([], [], **_HOLLOW, color="#202020")[0]
    if len(keys) > 1:
        names = legend_entries(list(keys), sheet.width_in)
        figure.legend(list(keys.values()), names, loc="outside upper left", ncols=legend_columns(names, sheet.width_in))
    draw_limits(figure, dict(zip(figure.axes, (panel.limits for panel in picture.panels), strict=False)))
    return figure


def legend_keys(drawn: list[Axes]) -> dict[str, Any]:
    """The first sample of each label."""
    keys: dict[str, Any] = {}
    for axes in drawn:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            keys.setdefault(label, handle)
    return keys


def _height_in(panel: Panel, width_in: float) -> float:
    if panel.look == "map":
        return _MAP_MARGIN_IN + _FIELD_IN * len(panel.lines)
    if panel.look == "dots":
        places = sum(name.count("\n") + 1 for name in _row_names(panel, width_in))
        return _MAP_MARGIN_IN + _FIELD_IN * max(places, len(panel.across.ticks or ()) * len(panel.lines) // 2)
    return _PANEL_IN


def _row_names(panel: Panel, width_in: float) -> list[str]:
    return [wrapped(tick.text, _NAME_SHARE * width_in) for tick in panel.across.ticks or ()]


def _draw_dots(axes: Axes, panel: Panel, width_in: float) -> None:
    """Draw a row for each place, as on the page."""
    for number, line in enumerate(panel.lines):
        shift = (number - (len(panel.lines) - 1) / 2) * 0.8 / len(panel.lines)
        ratio, row = np.array(line.y), np.array(line.x) + shift
        mark = MARKS[number % len(MARKS)]
        low, high = np.array(line.low), np.array(line.high)
        there = ~np.isnan(low)
        colour = line.style.colour.light
        axes.hlines(row[there], low[there], high[there], color=colour, linewidth=0.8)
        axes.plot(ratio, row, linestyle="none", marker=mark, color=colour, label=line.label)
    axes.axvline(1, **LIMIT_STYLE)
    names = _row_names(panel, width_in)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _draw_map(axes: Axes, panel: Panel, width_in: float) -> None:
    """Draw fields that are darker for larger values, with numbers if they fit, else with a colour bar."""
    across = len(panel.across.ticks or ())
    cells = np.full((len(panel.lines), across), np.nan)
    for row, line in enumerate(panel.lines):
        cells[row, np.array(line.x, dtype=int)] = line.y
    least, most = float(np.nanmin(cells)), float(np.nanmax(cells))
    # The darkest field is halfway to the darkest shade, so that black numbers stand out from it.
    top = least + 2 * (most - least) or least + 1
    shades = axes.imshow(cells, cmap="Greys", aspect="auto", vmin=least, vmax=top)
    if across * _NUMBER_IN <= width_in:
        for row, column in np.argwhere(~np.isnan(cells)):
            text = significant(float(cells[row, column]), 3)
            axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color="black")
    else:
        axes.figure.colorbar(shades, ax=axes).ax.set_ylim(least, most if most > least else top)
    axes.set_yticks(range(len(panel.lines)), [line.label for line in panel.lines])
    _ticks(axes, panel, width_in)


def draw_lines(axes: Axes, panel: Panel, width_in: float) -> None:
    """Draw lines, bars or marks with the axes of the panel. Lines with the same label look alike; marks are set side by
    side only if they share a place."""
    labels = list(dict.fromkeys(line.label for line in panel.lines))
    count = len(labels)
    shared = max(Counter(x for line in panel.lines for x in set(line.x)).values(), default=0) > 1
    for line in panel.lines:
        number = labels.index(line.label)
        is_beside = panel.look == "bars" or (panel.look == "marks" and shared)
        shift = (number - (count - 1) / 2) * _SIDE_BY_SIDE / count if is_beside else 0.0
        x, y = np.array(line.x) + shift, np.array(line.y)
        mark = MARKS[number % len(MARKS)]
        look: dict[str, Any] = {"color": line.style.colour.light, "label": line.label}
        dashed = look | {"linestyle": DASHES[number % len(DASHES)]}
        match panel.look:
            case "bars":
                hatch = _HATCHES[number % len(_HATCHES)]
                axes.bar(x, y, width=0.9 * _SIDE_BY_SIDE / count, hatch=hatch, edgecolor="white", **look)
            case "steps":
                ends = [x[0], *x, panel.across.ends[1]], [0.0, *y, y[-1]]
                axes.step(*ends, where="post", clip_on=False, **dashed)
            case "marks":
                axes.plot(x, y, marker=mark, **look | {"linestyle": "none"})
            case "time":
                axes.plot(x, y, linewidth=0.5 if line.faint else 1.0, **dashed)
            case _:
                axes.plot(x, y, marker=mark, **dashed)
        for at, printed, _words in line.printed:
            axes.plot(at + shift, printed, **_HOLLOW | {"marker": mark}, color="#202020")
        if line.low:
            low, high = np.array(line.low), np.array(line.high)
            there = ~np.isnan(low)
            axes.vlines(x[there], low[there], high[there], color="#202020", linewidth=0.7)
    axes.set(xlim=panel.across.ends, ylim=panel.up.ends, xscale=_scale(panel.across), yscale=_scale(panel.up))
    if panel.across.ticks:
        _ticks(axes, panel, width_in)
    for axis, own in ((axes.xaxis, panel.across), (axes.yaxis, panel.up)):
        if own.logarithmic and not own.ticks:
            plain_logarithm(axis)


def _scale(axis: PlotAxis) -> str:
    return "log" if axis.logarithmic else "linear"


def draw_limits(figure: Figure, found: Mapping[Axes, list[tuple[str, float]]]) -> None:
    """Draw reference lines with names and numbers, which print has no other way to show. Call it last."""
    shown = {axes: limits for axes, limits in found.items() if limits}
    for axes, limits in shown.items():
        for _name, value in limits:
            axes.axhline(value, **LIMIT_STYLE, gid="limit")
    if shown:
        figure.draw_without_rendering()  # which lays the axes out
    for axes, limits in shown.items():
        box = axes.get_window_extent()
        each = figure.dpi / 72 / _PIXELS_OF_A_POINT
        right, bottom = box.width / each, box.height / each
        kinds = [kind == "log" for kind in (axes.get_xscale(), axes.get_yscale())]
        x, y = axes.get_xlim(), axes.get_ylim()
        drawn = [line for line in axes.lines if line.get_gid() != "limit"]
        marks = max((line.get_markersize() for line in drawn if line.get_marker() != "None"), default=0.0)
        scales = Scale(*x, 0.0, right, kinds[0]), Scale(*y, bottom, 0.0, kinds[1])
        frame = Frame(*scales, marks / 2 * _PIXELS_OF_A_POINT)
        curves = [_visible_curve(line, frame) for line in drawn]
        for words, at, base in placed(frame, limits, curves, numbered=True):
            axes.annotate(
                words,
                (at / right, 1 - base / bottom),
                xycoords="axes fraction",
                ha="right",
                va="baseline",
                fontsize=_LIMIT_POINTS,
                color="#404040",
            )


def _visible_curve(line: Line2D, frame: Frame) -> Curve:
    """The points of a line; a single mark becomes a segment as wide as the mark."""
    x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    if len(x) != 1:
        return x, y
    at = frame.x.at(float(x[0]))
    return np.array([frame.x.value(at - frame.marks), frame.x.value(at + frame.marks)]), np.repeat(y, 2)


def _ticks(axes: Axes, panel: Panel, width_in: float) -> None:
    """Label the ticks; slope the labels if they would overlap."""
    ticks = panel.across.ticks or []
    texts = [tick.text for tick in ticks]
    axes.set_xticks([tick.value for tick in ticks], texts)
    axes.minorticks_off()
    if sum(map(len, texts)) * _LETTER_IN > _AXIS_SHARE * width_in:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
