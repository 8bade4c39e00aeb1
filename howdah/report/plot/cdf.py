# SPDX-License-Identifier: Apache-2.0
"""The cumulative distribution of a measure over the connections of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.number import significant
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment, Run
from howdah.report.plot.model import LegendItem, Panel, Picture, PlotAxis, PlotLine
from howdah.report.plot.sample import NothingToDrawError, Selection, base_unit, every_value, select
from howdah.report.plot.scale import Measure, bounds, measure_of
from howdah.report.plot.style import Style, key, styles
from howdah.report.plot.swept import place_title

SHARES_OF_CONNECTIONS = PlotAxis("connections (%)", (0.0, 100.0))


@dataclass
class CdfLine:
    """One line. ``values`` are sorted and in the unit of metrics.json; ``without`` counts connections without a value,
    which keep the curve below 100 %; ``runs`` is the number of runs, and ``left_out`` says what is missing."""

    label: str
    style: Style
    values: list[float]
    without: int
    runs: int
    left_out: list[str]
    count: int  # connections with a value; ``values`` may be an even selection of theirs
    middle: float | None  # the median over all connections


@dataclass
class Distributions:
    """The distributions of a figure by panel; values are in the unit ``base`` of metrics.json."""

    panels: dict[str, list[CdfLine]]
    group: str
    base: str


def distributions(figure: FigureSection, experiment: Experiment) -> Distributions:
    """Collect the connections of all repetitions that count, one distribution for each value of ``lines``."""
    assert figure.metric is not None
    axes = [figure.lines, *([figure.panels] if figure.panels else [])]
    selection = select(figure, experiment, *axes)
    group = _group(figure, selection.made)
    every = styles(every_value(experiment, figure.lines))
    looks = {label: every[label] for label in selection.values(figure.lines)}
    places = selection.values(figure.panels) if figure.panels else [""]
    panels: dict[str, list[CdfLine]] = {}
    for place in places:
        here = selection.where({figure.panels: place}) if figure.panels else selection
        panels[place] = [
            _distribution(figure.metric, group, here.where({figure.lines: label}), label, looks[label])
            for label in looks
        ]
    if not any(each.values for panel in panels.values() for each in panel):
        raise NothingToDrawError(f"no connection of {group} has {figure.metric} in a run that counts")
    return Distributions(panels, group, base_unit(selection.made, figure.metric))


def draw_cdf(figure: FigureSection, found: Distributions) -> Picture:
    """Draw a step curve for each value of ``lines``."""
    assert figure.metric is not None
    panels, group = found.panels, found.group
    shown = [each for panel in panels.values() for each in panel if each.values]
    measure = measure_of(figure.metric, found.base, [each.values[-1] for each in shown])
    edges = [measure.factor * edge for each in shown for edge in (each.values[0], each.values[-1])]
    log = "x" in (figure.log or "")
    across = PlotAxis(measure.label, bounds(edges, logarithmic=log, zero=True), log)
    picture = Picture()
    for place, panel in panels.items():
        title = place_title(figure.panels, place) if figure.panels and len(panels) > 1 else ""
        lines = [_line(each, measure) for each in panel if each.values]
        words = f"{measure.label} of the connections of {group}"
        picture.panels.append(Panel(title, across, SHARES_OF_CONNECTIONS, lines, "steps", words=words))
        for each in panel:
            where = ", ".join(filter(None, (each.label, place)))
            picture.missing += [f"{where}: {why}" for why in each.left_out]
            if not each.values and not each.left_out:
                picture.missing.append(f"{where}: not run")
    picture.legend = [
        LegendItem(key(style, "line"), label)
        for label, style in {each.label: each.style for panel in panels.values() for each in panel}.items()
    ]
    least, most = (pick(each.count + each.without for each in shown) for pick in (min, max))
    runs = sorted({each.runs for each in shown})
    picture.caption = [
        f"Share of the connections of {group} with at most this value; "
        f"{least if least == most else f'{least} … {most}'} connections a line, "
        f"of {' … '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} "
        f"repetition{'s' if runs[-1] > 1 else ''} together."
    ]
    return picture


def _line(each: CdfLine, measure: Measure) -> PlotLine:
    median = "" if each.middle is None else f"median {significant(each.middle * measure.factor)} {measure.unit}"
    spoken = f"{each.label}: {each.count} connections, {median}".strip()
    whole = 100 * each.count / (each.count + each.without)
    return PlotLine(
        each.label,
        each.style,
        [value * measure.factor for value in each.values],
        shares(len(each.values), whole),
        title=spoken,
        spoken=spoken,
    )


def shares(count: int, whole: float = 100.0) -> list[float]:
    """The cumulative shares of sorted values in per cent; the last one is ``whole``."""
    return [whole * (number + 1) / count for number in range(count)]


def _group(figure: FigureSection, runs: list[Run]) -> str:
    groups = list(dict.fromkeys(name for run in runs for name in run.connections().groups))
    if not groups:
        raise NothingToDrawError("no run has a group of connections")
    if figure.group is not None:
        if figure.group not in groups:
            raise NothingToDrawError(f"no run has the group {figure.group}; there are {', '.join(groups)}")
        return figure.group
    if len(groups) > 1:
        raise NothingToDrawError(f"there are several groups ({', '.join(groups)}); say which with group")
    return groups[0]


def _distribution(metric: str, group: str, here: Selection, label: str, style: Style) -> CdfLine:
    values: list[float] = []
    without = counted = 0
    left_out = []
    for run in here.made:
        if not run.counts:
            left_out.append(f"{run.name} is {run.verdict_name}")
            continue
        counted += 1
        found = run.connections().of(metric, group).values
        known = found[~np.isnan(found)].tolist()
        values += known
        without += found.size - len(known)
    if without:
        left_out.append(f"{without} of {without + len(values)} connections have no {metric.replace('_', ' ')}")
    values.sort()
    middle = values[len(values) // 2] if values else None
    return CdfLine(label, style, values, without, counted, left_out, len(values), middle)
