# SPDX-License-Identifier: Apache-2.0
"""Figures of a profile (sweeps, bars, distributions, time lines) and the difference view, for print: their numbers and
how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from howdah.errors import HowdahError
from howdah.number import significant
from howdah.profile.experiment import sections_of_experiment
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment
from howdah.report.contrast import contrasts, leading
from howdah.report.dotplot import side_styles
from howdah.report.ending import results
from howdah.report.paper.line import DASHES, MARKS
from howdah.report.paper.sheet import FigureSheet, broken, columns, entries, plain_logarithm
from howdah.report.plot.cdf import distributions
from howdah.report.plot.draw import title_of
from howdah.report.plot.grid import counts_of, gather
from howdah.report.plot.scale import measure_of
from howdah.report.plot.swept import place_title
from howdah.report.plot.timeline import drawn_ends, grounds, time_lines
from howdah.report.source import TableSource
from howdah.report.subject import subjects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_FIELD_IN, _AROUND_MAP_IN = 0.17, 0.55
_NUMBER_IN = 0.36  # that the number of a field of the map needs
_LETTER_IN, _AXIS_SHARE = 0.062, 0.75
_NAME_SHARE = 0.36  # of the width that names of rows may have
_HOLLOW: dict[str, Any] = {"linestyle": "none", "marker": "D", "markerfacecolor": "white"}
_HATCHES = ("", "////", "....", "xxxx", "----", "\\\\\\\\", "++++", "oooo")


@dataclass
class PlottedLine:
    """``low`` and ``high`` are ends of whiskers, NaN where it is missing; ``printed`` are places and numbers that a
    paper prints. A line that is ``beside`` another is thin."""

    label: str
    colour: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    printed: list[tuple[float, float]] = field(default_factory=list)
    beside: bool = False


@dataclass
class PlottedPanel:
    """``ticks`` are (place, text) of an axis that has its own; ``look`` is line, time, steps, bars, dots, marks or map.

    Dots stand around a ratio of 1. In a map each line is a row, and ``y`` has what its fields hold. ``ends`` are those
    of the vertical axis, ``ends_across`` of the horizontal one; ``limits`` are names and values of reference lines."""

    title: str
    across: str
    up: str
    lines: list[PlottedLine]
    look: str = "line"
    ticks: list[tuple[float, str]] = field(default_factory=list)
    log: str = ""
    ends: tuple[float, float] | None = None
    ends_across: tuple[float, float] | None = None
    limits: list[tuple[str, float]] = field(default_factory=list)


@dataclass
class Plotted:
    """A figure with its caption; ``paper`` names where printed numbers are from."""

    title: str
    panels: list[PlottedPanel]
    caption: str = ""
    paper: str = ""

    def rows(self) -> list[list[str]]:
        """What is drawn, below a row of headings."""
        found = [["panel", "line", "x", "y", "low", "high", "x_name", "y_name"]]
        for panel in self.panels:
            names = dict(panel.ticks)
            for line in panel.lines:
                for number, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
                    ends = [repr(side[number]) if number < len(side) else "" for side in (line.low, line.high)]
                    ends = ["" if end == "nan" else end for end in ends]
                    place = names.get(x, repr(x))
                    found.append([panel.title, line.label, place, repr(y), *ends, panel.across, panel.up])
                label = f"{line.label} ({self.paper})"
                for x, y in line.printed:
                    found.append([panel.title, label, names.get(x, repr(x)), repr(y), "", "", panel.across, panel.up])
        return found


def declared_sections(experiments: list[Experiment]) -> dict[str, tuple[FigureSection, Experiment]]:
    """The figures that profiles ask for and that are pictures, by their names on the command line."""
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


def declared(section: FigureSection, experiment: Experiment) -> Plotted:
    """Raises HowdahError where there is nothing to draw."""
    made = {"sweep": _grid, "bars": _grid, "cdf": _cdf, "time": _time}[section.kind](section, experiment)
    made.title = title_of(section, experiment)
    made.caption = " ".join(filter(None, (f"{made.title}.", section.note, made.caption)))
    return made


def _grid(section: FigureSection, experiment: Experiment) -> Plotted:
    grid = gather(section, experiment)
    panels = []
    places = sorted(grid.x.position, key=grid.x.position.__getitem__)
    at = {x: grid.x.position[x] if section.kind == "sweep" else float(number) for number, x in enumerate(places)}
    for place, series in grid.panels.items():
        lines = []
        for each in series:
            line = PlottedLine(each.label, each.style.colour.light, [], [])
            for x in places:
                statistic = each.samples[x].statistic if x in each.samples else None
                if statistic is None:
                    continue
                low, high = grid.spread(statistic) or (float("nan"), float("nan"))
                line.x.append(at[x])
                line.y.append(grid.shown(statistic.mean))
                line.low.append(low)
                line.high.append(high)
            line.printed = [(at[x], each.printed[x]) for x in places if x in each.printed]
            lines.append(line)
        ticks = [(at[x], grid.x.texts[x]) for x in places]
        look = "bars" if section.kind == "bars" else "line"
        title = place_title(section.panels, place) if section.panels and len(grid.panels) > 1 else ""
        log = section.log or ""
        panel = PlottedPanel(title, grid.x.label, grid.y_label, lines, look, ticks, log)
        panel.ends = grid.up(logarithmic="y" in log, from_zero=look == "bars" and "y" not in log)
        panels.append(panel)
    words, missing = counts_of(grid)
    hollow = any(line.printed for panel in panels for line in panel.lines)
    paper = section.paper.label if hollow and section.paper else ""
    words += [f"Hollow marks: {paper}."] if paper else []
    words += [f"Missing: {'; '.join(missing)}."] if missing else []
    return Plotted("", panels, " ".join(words), paper)


def _cdf(section: FigureSection, experiment: Experiment) -> Plotted:
    assert section.metric is not None
    found = distributions(section, experiment)
    shown = [each for panel in found.panels.values() for each in panel if each.values]
    measure = measure_of(section.metric, found.base, [each.values[-1] for each in shown])
    panels = []
    for place, panel in found.panels.items():
        lines = []
        for each in (each for each in panel if each.values):
            whole = len(each.values) * (each.count + each.without) / max(each.count, 1)
            shares = [100 * (number + 1) / whole for number in range(len(each.values))]
            values = [value * measure.factor for value in each.values]
            lines.append(PlottedLine(each.label, each.style.colour.light, values, shares))
        title = place_title(section.panels, place) if section.panels and len(found.panels) > 1 else ""
        panels.append(PlottedPanel(title, measure.label, "connections (%)", lines, "steps", log=section.log or ""))
    return Plotted("", panels, f"Share of the connections of {found.group} that have at most so much.")


def _time(section: FigureSection, experiment: Experiment) -> Plotted:
    found = time_lines(section, experiment)
    panels = []
    for (title, names, traces), ground in zip(found.panels, grounds(section, found), strict=True):
        lines = []
        for each in traces:
            # A threshold above the axis is no bound yet.
            y = np.where(each.value * ground.factor <= ground.ends[1], each.value * ground.factor, np.nan)
            beside = each.series == "ssthresh" and "cwnd" in names
            line = PlottedLine(each.words, each.style.colour.light, each.time_s.tolist(), y.tolist(), beside=beside)
            lines.append(line)
        up = f"{ground.words} ({ground.unit})"
        panel = PlottedPanel(title, "time (s)", up, lines, "time", log=section.log or "", limits=ground.limits)
        panel.ends, panel.ends_across = ground.ends, drawn_ends(section, found)
        panels.append(panel)
    words = [f"One repetition of each line ({', '.join(f'r{each}' for each in found.repetitions)})."]
    words += [found.goodput] if found.goodput else []
    return Plotted("", panels, " ".join(words))


def difference_figure(experiments: list[Experiment]) -> Plotted:
    """A dot for each side at each point: its ratio to the first one. Raises HowdahError where nothing is compared."""
    said, metrics = leading(subjects(results(experiments, TableSource())))
    everything = contrasts(said, metrics)
    found = [each for each in everything if each.has_ratio]
    if not found:
        raise HowdahError("there are no two sides to compare")
    places = list(dict.fromkeys(each.place for each in found))[:_MOST_ROWS]
    looks = side_styles(said)
    panels = []
    for metric in dict.fromkeys(each.metric.name for each in found):
        mine = [each for each in found if each.metric.name == metric and each.place in places]
        lines = []
        for side in dict.fromkeys(each.side for each in mine):
            line = PlottedLine(side, looks[side].colour.light, [], [])
            for each in mine:
                if each.side == side and each.of.ratios:
                    about = None if each.of.is_alike else each.of.around
                    line.x.append(float(places.index(each.place)))
                    line.y.append(1.0 if each.of.is_alike else each.of.ratios.median)
                    line.low.append(about.low if about else float("nan"))
                    line.high.append(about.high if about else float("nan"))
            lines.append(line)
        ticks = [(float(number), place or "all") for number, place in enumerate(places)]
        name = mine[0].metric.label or mine[0].metric.header
        panels.append(PlottedPanel(name, "", f"ratio to {found[0].other}", lines, "dots", ticks))
    caption = (
        f"Ratios to {found[0].other} at each point: medians over pairs of equal repetitions, with the least and the "
        "largest of few pairs, else the 95 % interval."
    )
    lacking = [
        f"{each.metric.label or each.metric.header}, {each.placed}: {each.against}"
        for each in everything
        if not each.has_ratio
    ]
    caption += f" Without a ratio: {'; '.join(lacking)}." if lacking else ""
    return Plotted("Differences", panels, caption)


def draw_plotted(plotted: Plotted, sheet: FigureSheet) -> Figure:
    """Panels below each other, one legend above; call it in ``sheet.styled()``."""
    figure = sheet.figure(_HEAD_IN + sum(_height_in(panel, sheet.width_in) for panel in plotted.panels))
    for axes, panel in zip(figure.subplots(len(plotted.panels), squeeze=False)[:, 0], plotted.panels, strict=True):
        if panel.look == "map":
            _draw_map(axes, panel, sheet.width_in)
        elif panel.look == "dots":
            _draw_dots(axes, panel, sheet.width_in)
        else:
            _draw_lines(axes, panel, sheet.width_in)
        axes.set_title(panel.title)
        axes.set_xlabel(panel.up if panel.look == "dots" else panel.across)
        axes.set_ylabel("" if panel.look == "dots" else broken(panel.up, _PANEL_IN - _HEAD_IN))
    keys: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            keys.setdefault(label, handle)
    if plotted.paper:
        keys[f"hollow: {plotted.paper}"] = figure.axes[0].plot([], [], **_HOLLOW, color="#202020")[0]
    if len(keys) > 1:
        names = entries(list(keys), sheet.width_in)
        figure.legend(list(keys.values()), names, loc="outside upper left", ncols=columns(names, sheet.width_in))
    return figure


def _height_in(panel: PlottedPanel, width_in: float) -> float:
    if panel.look == "map":
        return _AROUND_MAP_IN + _FIELD_IN * len(panel.lines)
    if panel.look == "dots":
        places = sum(name.count("\n") + 1 for name in _place_names(panel, width_in))
        return _AROUND_MAP_IN + _FIELD_IN * max(places, len(panel.ticks) * len(panel.lines) // 2)
    return _PANEL_IN


def _place_names(panel: PlottedPanel, width_in: float) -> list[str]:
    return [broken(text, _NAME_SHARE * width_in) for _place, text in panel.ticks]


def _draw_dots(axes: Axes, panel: PlottedPanel, width_in: float) -> None:
    """A row for each place, as on the page."""
    for number, line in enumerate(panel.lines):
        shift = (number - (len(panel.lines) - 1) / 2) * 0.8 / len(panel.lines)
        ratio, row = np.array(line.y), np.array(line.x) + shift
        mark = MARKS[number % len(MARKS)]
        low, high = np.array(line.low), np.array(line.high)
        there = ~np.isnan(low)
        axes.hlines(row[there], low[there], high[there], color=line.colour, linewidth=0.8)
        axes.plot(ratio, row, linestyle="none", marker=mark, color=line.colour, label=line.label)
    axes.axvline(1, color="#808080", linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
    axes.set_yticks([place for place, _text in panel.ticks], _place_names(panel, width_in))
    axes.set_ylim(len(panel.ticks) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _draw_map(axes: Axes, panel: PlottedPanel, width_in: float) -> None:
    """Fields that are darker the more they hold, with their numbers where these fit, else with a bar of shades."""
    cells = np.full((len(panel.lines), len(panel.ticks)), np.nan)
    for row, line in enumerate(panel.lines):
        cells[row, np.array(line.x, dtype=int)] = line.y
    least, most = float(np.nanmin(cells)), float(np.nanmax(cells))
    # The darkest field is halfway to the darkest shade, so that black numbers stand out from it.
    top = least + 2 * (most - least) or least + 1
    shades = axes.imshow(cells, cmap="Greys", aspect="auto", vmin=least, vmax=top)
    if len(panel.ticks) * _NUMBER_IN <= width_in:
        for row, column in np.argwhere(~np.isnan(cells)):
            text = significant(float(cells[row, column]), 3)
            axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color="black")
    else:
        axes.figure.colorbar(shades, ax=axes).ax.set_ylim(least, most if most > least else top)
    axes.set_yticks(range(len(panel.lines)), [line.label for line in panel.lines])
    _ticks(axes, panel, width_in)


def _draw_lines(axes: Axes, panel: PlottedPanel, width_in: float) -> None:
    count = len(panel.lines)
    width = 0.8 / max(count, 1)
    for number, line in enumerate(panel.lines):
        shift = (number - (count - 1) / 2) * width if panel.look in ("bars", "marks") else 0.0
        x, y = np.array(line.x) + shift, np.array(line.y)
        dash, mark = DASHES[number % len(DASHES)], MARKS[number % len(MARKS)]
        if panel.look == "bars":
            hatch = _HATCHES[number % len(_HATCHES)]
            axes.bar(x, y, width=0.9 * width, color=line.colour, hatch=hatch, edgecolor="white", label=line.label)
        elif panel.look == "steps":
            axes.step(x, y, where="post", color=line.colour, linestyle=dash, label=line.label)
        elif panel.look == "marks":
            axes.plot(x, y, linestyle="none", marker=mark, color=line.colour, label=line.label)
        elif panel.look == "time":
            width = 0.5 if line.beside else 1.0
            axes.plot(x, y, color=line.colour, linestyle=dash, linewidth=width, label=line.label)
        else:
            axes.plot(x, y, color=line.colour, linestyle=dash, marker=mark, label=line.label)
        for at, printed in line.printed:
            axes.plot(at + shift, printed, **_HOLLOW | {"marker": mark}, color="#202020")
        if line.low:
            low, high = np.array(line.low), np.array(line.high)
            there = ~np.isnan(low)
            axes.vlines(x[there], low[there], high[there], color="#202020", linewidth=0.7)
    if "x" in panel.log and all(min(line.x, default=1.0) > 0 for line in panel.lines):
        axes.set_xscale("log")
    if "y" in panel.log:
        axes.set_yscale("log")
    if panel.look in ("steps", "marks"):
        axes.set_ylim(0, 1.06 * max((max(line.y) for line in panel.lines), default=0.0) or 1.0)
    if panel.ticks:
        _ticks(axes, panel, width_in)
        axes.minorticks_off()
    if panel.ends:
        axes.set_ylim(*panel.ends)
    if panel.ends_across:
        axes.set_xlim(*panel.ends_across)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log" and not (panel.ticks and axis is axes.xaxis):
            plain_logarithm(axis)
    draw_limits(axes, panel.limits)


def draw_limits(axes: Axes, limits: list[tuple[str, float]]) -> None:
    """Reference lines, named where a start-up has drawn nothing yet."""
    for name, value in limits:
        axes.axhline(value, color="#808080", linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
        axes.annotate(
            f"{name} {significant(value)}",
            (0, value),
            xycoords=("axes fraction", "data"),
            xytext=(3, 1.5),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=6.5,
            color="#404040",
        )


def _ticks(axes: Axes, panel: PlottedPanel, width_in: float) -> None:
    """The places that have names, which slope where they would touch."""
    texts = [text for _place, text in panel.ticks]
    axes.set_xticks([place for place, _text in panel.ticks], texts)
    if sum(map(len, texts)) * _LETTER_IN > _AXIS_SHARE * width_in:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
