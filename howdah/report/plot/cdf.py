# SPDX-License-Identifier: Apache-2.0
"""How a measure is distributed over the connections of a group: the share of them that have at most so much."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from howdah.number import significant
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment, Run
from howdah.report.plot.canvas import NARROW, PANEL, WIDE, Canvas, Drawn, LegendItem, Panel, Size
from howdah.report.plot.sample import NothingToDrawError, Selection, base_unit, every_value, select
from howdah.report.plot.scale import Measure, bounds, measure_of
from howdah.report.plot.style import Style, key, styles
from howdah.report.plot.swept import place_title

_MOST_STEPS = 500


@dataclass
class CdfLine:
    """Sorted values of one line, in the unit shown; connections ``without`` one, which the curve never reaches; of how
    many runs; and what there is to say of connections and runs that are not in it."""

    label: str
    style: Style
    values: list[float]
    without: int
    runs: int
    left_out: list[str]
    count: int  # connections with a value; ``values`` may be fewer of them, evenly spaced
    middle: float | None  # the median of all


@dataclass
class Distributions:
    """Those of a figure, by panel; values are in the unit ``base`` of metrics.json."""

    panels: dict[str, list[CdfLine]]
    group: str
    base: str


def distributions(figure: FigureSection, experiment: Experiment) -> Distributions:
    """Of the connections of all repetitions that count, one for each value of ``lines``."""
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


def draw_cdf(figure: FigureSection, found: Distributions) -> Drawn:
    """A step curve for each value of ``lines``."""
    assert figure.metric is not None
    panels, group = found.panels, found.group
    shown = [each for panel in panels.values() for each in panel if each.values]
    measure = measure_of(figure.metric, found.base, [each.values[-1] for each in shown])
    for each in shown:
        each.values = [value * measure.factor for value in each.values]
        each.middle = None if each.middle is None else each.middle * measure.factor
    drawn = Drawn()
    ends = bounds([edge for each in shown for edge in _ends(each)], logarithmic="x" in (figure.log or ""), zero=True)
    for place, panel in panels.items():
        title = place_title(figure.panels, place) if figure.panels and len(panels) > 1 else ""
        sizes = (PANEL,) if len(panels) > 1 else (WIDE, NARROW)
        some = [each for each in panel if each.values]
        drawn.panels.append(Panel(title, [_panel(figure, measure, group, some, ends, size) for size in sizes]))
        for each in panel:
            where = ", ".join(filter(None, (each.label, place)))
            drawn.missing += [f"{where}: {why}" for why in each.left_out]
            if not each.values and not each.left_out:
                drawn.missing.append(f"{where}: not run")
    drawn.legend = [
        LegendItem(key(style, line=True, shape=False), label)
        for label, style in {each.label: each.style for panel in panels.values() for each in panel}.items()
    ]
    least, most = (pick(each.count + each.without for each in shown) for pick in (min, max))
    runs = sorted({each.runs for each in shown})
    drawn.caption = [
        f"Share of the connections of {group} that have at most so much; "
        f"{least if least == most else f'{least} … {most}'} connections a line, "
        f"of {' … '.join(map(str, dict.fromkeys((runs[0], runs[-1]))))} "
        f"repetition{'s' if runs[-1] > 1 else ''} together."
    ]
    return drawn


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


def _ends(each: CdfLine) -> tuple[float, float]:
    return each.values[0], each.values[-1]


def _panel(
    figure: FigureSection,
    measure: Measure,
    group: str,
    panel: list[CdfLine],
    ends: tuple[float, float],
    size: Size,
) -> str:
    across = (*ends, "x" in (figure.log or ""))
    canvas = Canvas(size, across, (0.0, 100.0, False), (measure.label, "connections (%)"))
    canvas.ground()
    words = []
    for each in panel:
        median = "" if each.middle is None else f"median {significant(each.middle)} {measure.unit}"
        title = f"{each.label}: {each.count} connections, {median}".strip()
        words.append(title)
        share = 100 * each.count / (each.count + each.without)
        path = (
            f'<path d="{steps(canvas, each.values, share)}" class="curve"{each.style.dashed}>'
            f"<title>{escape(title)}</title></path>"
        )
        canvas.parts.append(f"<g {each.style.attributes}>{path}</g>")
    return canvas.svg(figure.title, f"{measure.label} of the connections of {group}. {'; '.join(words)}.")


def steps(canvas: Canvas, values: list[float], share: float) -> str:
    """The path of a step curve over sorted values that ends at so many per cent."""
    count = len(values)
    every = max(1, count // _MOST_STEPS)
    path = f"M{canvas.x.at(values[0]):.1f} {canvas.bottom:.1f}"
    for number in [*range(every - 1, count - 1, every), count - 1]:
        path += f"H{canvas.x.at(values[number]):.1f}V{canvas.y.at(share * (number + 1) / count):.1f}"
    return path + f"H{canvas.right:g}"
