# SPDX-License-Identifier: Apache-2.0
"""Figures of a profile (sweeps, bars, distributions, time lines) and the difference view, for print: their numbers and
how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from howdah.errors import HowdahError
from howdah.profile.experiment import sections_of_experiment
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment
from howdah.report.contrast import contrasts, leading
from howdah.report.ending import results
from howdah.report.paper.line import DASHES, MARKS
from howdah.report.paper.sheet import FigureSheet
from howdah.report.plot.cdf import distributions
from howdah.report.plot.draw import title_of
from howdah.report.plot.grid import gather
from howdah.report.plot.measure import measure_of
from howdah.report.plot.style import styles
from howdah.report.plot.timeline import time_lines
from howdah.report.source import TableSource
from howdah.report.subject import sides, subjects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PREFIX = "profile:"
_PANEL_IN = 1.55
_HEAD_IN = 0.35
_MOST_ROWS = 40


@dataclass
class PlottedLine:
    """``low`` and ``high`` are ends of whiskers, NaN where it is missing."""

    label: str
    colour: str
    x: list[float]
    y: list[float]
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)


@dataclass
class PlottedPanel:
    """``ticks`` are (place, text) of an axis that has its own; ``look`` is line, steps, bars or dots."""

    title: str
    across: str
    up: str
    lines: list[PlottedLine]
    look: str = "line"
    ticks: list[tuple[float, str]] = field(default_factory=list)
    log: str = ""


@dataclass
class Plotted:
    """A figure with its caption."""

    title: str
    panels: list[PlottedPanel]
    caption: str = ""

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
            if section.kind != "table":
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
    for title, series in grid.panels.items():
        lines = []
        for each in series:
            line = PlottedLine(each.label, each.style.colour.light, [], [])
            for x in places:
                statistic = each.samples[x].statistic if x in each.samples else None
                if statistic is None:
                    continue
                low, high = grid.spread(statistic) or (float("nan"), float("nan"))
                at = grid.x.position[x] if section.kind == "sweep" else float(places.index(x))
                line.x.append(at)
                line.y.append(grid.shown(statistic.mean))
                line.low.append(low)
                line.high.append(high)
            lines.append(line)
        ticks = [
            (grid.x.position[x] if section.kind == "sweep" else float(number), grid.x.texts[x])
            for number, x in enumerate(places)
        ]
        look = "bars" if section.kind == "bars" else "line"
        panels.append(PlottedPanel(title, grid.x.label, grid.y_label, lines, look, ticks, section.log or ""))
    caption = "Means; whiskers are the least and the largest of few repetitions, else the 95 % interval of the mean."
    return Plotted("", panels, caption)


def _cdf(section: FigureSection, experiment: Experiment) -> Plotted:
    assert section.metric is not None
    found = distributions(section, experiment)
    shown = [each for panel in found.panels.values() for each in panel if each.values]
    measure = measure_of(section.metric, found.base, [each.values[-1] for each in shown])
    panels = []
    for title, panel in found.panels.items():
        lines = []
        for each in panel:
            whole = len(each.values) * (each.count + each.without) / max(each.count, 1)
            shares = [100 * (number + 1) / whole for number in range(len(each.values))]
            values = [value * measure.factor for value in each.values]
            lines.append(PlottedLine(each.label, each.style.colour.light, values, shares))
        panels.append(PlottedPanel(title, measure.label, "connections (%)", lines, "steps", log=section.log or ""))
    return Plotted("", panels, f"Share of the connections of {found.group} that have at most so much.")


def _time(section: FigureSection, experiment: Experiment) -> Plotted:
    found = time_lines(section, experiment)
    panels = []
    for title, names, traces in found.panels:
        lines = [
            PlottedLine(
                each.words, each.style.colour.light, [float(x) for x in each.time_s], [float(y) for y in each.value]
            )
            for each in traces
        ]
        panels.append(PlottedPanel(title, "time (s)", " and ".join(names), lines, log=section.log or ""))
    return Plotted("", panels, f"One repetition of each line ({', '.join(f'r{each}' for each in found.repetitions)}).")


def difference_figure(experiments: list[Experiment]) -> Plotted:
    """A dot for each side at each point: its ratio to the first one. Raises HowdahError where nothing is compared."""
    said, metrics = leading(subjects(results(experiments, TableSource())))
    found = [each for each in contrasts(said, metrics) if each.of.ratios]
    if not found:
        raise HowdahError("there are no two sides to compare")
    places = list(dict.fromkeys(each.place for each in found))[:_MOST_ROWS]
    looks = styles(sides(said))
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
    return Plotted("Differences", panels, caption)


def draw_plotted(plotted: Plotted, sheet: FigureSheet) -> Figure:
    """Panels below each other, one legend above; call it in ``sheet.styled()``."""
    figure = sheet.figure(_HEAD_IN + _PANEL_IN * len(plotted.panels))
    for axes, panel in zip(figure.subplots(len(plotted.panels), squeeze=False)[:, 0], plotted.panels, strict=True):
        _draw_panel(axes, panel)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if len(labels) > 1:
        longest = max(map(len, labels))
        across = max(1, min(len(labels), int(sheet.width_in / (0.5 + 0.056 * longest))))
        figure.legend(handles, labels, loc="outside upper left", ncols=across)
    return figure


def _draw_panel(axes: Axes, panel: PlottedPanel) -> None:
    count = len(panel.lines)
    width = 0.8 / max(count, 1)
    for number, line in enumerate(panel.lines):
        shift = (number - (count - 1) / 2) * width if panel.look in ("bars", "dots") else 0.0
        x, y = np.array(line.x) + shift, np.array(line.y)
        dash, mark = DASHES[number % len(DASHES)], MARKS[number % len(MARKS)]
        if panel.look == "bars":
            axes.bar(x, y, width=0.9 * width, color=line.colour, label=line.label)
        elif panel.look == "steps":
            axes.step(x, y, where="post", color=line.colour, linestyle=dash, label=line.label)
        elif panel.look == "dots":
            axes.plot(x, y, linestyle="none", marker=mark, color=line.colour, label=line.label)
        else:
            marked = mark if len(x) <= _MOST_ROWS else "none"
            axes.plot(x, y, color=line.colour, linestyle=dash, marker=marked, markerfacecolor="white", label=line.label)
        if line.low:
            low, high = np.array(line.low), np.array(line.high)
            there = ~np.isnan(low)
            axes.vlines(x[there], low[there], high[there], color="#202020", linewidth=0.7)
    if panel.look == "dots":
        axes.axhline(1, color="#808080", linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
    if "x" in panel.log and all(min(line.x, default=1.0) > 0 for line in panel.lines):
        axes.set_xscale("log")
    if "y" in panel.log:
        axes.set_yscale("log")
    if panel.ticks:
        axes.set_xticks([place for place, _text in panel.ticks], [text for _place, text in panel.ticks])
        axes.minorticks_off()
    axes.set_title(panel.title)
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
