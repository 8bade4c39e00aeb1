# SPDX-License-Identifier: Apache-2.0
"""Compact plain values from which a figure can be drawn again: storing and loading.

Curves are thinned to what a figure shows, times are whole milliseconds between samples, values have five digits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from howdah.measure.statistics import Statistic
from howdah.number import rounded
from howdah.profile.figure import FigureSection, Take
from howdah.record.result import Experiment
from howdah.report.codec import extremes
from howdah.report.plot.cdf import CdfLine, Distributions, distributions
from howdah.report.plot.sample import NothingToDrawError, Selection, every_value, relative, sample
from howdah.report.plot.stored import Mean, StoredExperiment, StoredPoint
from howdah.report.plot.style import flow_dash, styles
from howdah.report.plot.timeline import TimelineCurve, TimeLines, time_lines

_MOST_OF_A_CURVE = 400
_MOST_OF_A_FIGURE = 3000
_FEWEST_OF_A_CURVE = 40
_DIGITS = 5
_MOST_STEPS = 200
_NOT_PUBLISHED = "no points of it are published"


def kept_figure(figure: FigureSection, experiment: Experiment) -> dict[str, Any]:
    """The curves or distributions of a figure; empty for a figure made of single numbers per point.

    Raises NothingToDrawError.
    """
    if figure.kind == "time":
        return _kept_lines(time_lines(figure, experiment))
    if figure.kind == "cdf":
        return _kept_distributions(distributions(figure, experiment))
    return {}


def _kept_lines(lines: TimeLines) -> dict[str, Any]:
    count = sum(len(traces) for _, _, traces in lines.panels)
    most = min(_MOST_OF_A_CURVE, max(_FEWEST_OF_A_CURVE, _MOST_OF_A_FIGURE // max(count, 1)))
    return {
        "ends": list(lines.ends),
        "repetitions": lines.repetitions,
        "missing": lines.missing,
        **({"goodput": lines.goodput} if lines.goodput else {}),
        "panels": [[title, names] for title, names, _ in lines.panels],
        "curves": [
            [panel, *_kept_trace(trace, most)] for panel, (*_, traces) in enumerate(lines.panels) for trace in traces
        ],
    }


def _kept_trace(each: TimelineCurve, most: int) -> list[Any]:
    thinned = extremes(each.value, most) if len(each.value) > most else np.arange(len(each.value))
    at_ms = [round(float(time) * 1000) for time in each.time_s[thinned]]
    steps = [after - before for before, after in zip([0, *at_ms], at_ms, strict=False)]
    values = [None if np.isnan(value) else rounded(float(value), _DIGITS) for value in each.value[thinned]]
    limits = {name: rounded(value, 6) for name, value in each.limits.items()}
    return [each.series, each.line, each.flow, each.flow_number, limits, steps, values]


def stored_lines(figure: FigureSection, experiment: StoredExperiment) -> TimeLines:
    """Load the curves of a figure. Raises NothingToDrawError if none are stored."""
    stored = experiment.stored(figure)
    if not stored:
        raise NothingToDrawError(_NOT_PUBLISHED)
    looks = styles(every_value(experiment, figure.lines))
    panels: list[tuple[str, list[str], list[TimelineCurve]]] = [(title, names, []) for title, names in stored["panels"]]
    for panel, series, line, flow, number, limits, steps, values in stored["curves"]:
        style = replace(looks[line], dash=flow_dash(number)) if flow else looks[line]
        time_s = np.cumsum(np.array(steps, dtype=np.float64)) / 1000
        value = np.array([np.nan if each is None else each for each in values], dtype=np.float64)
        panels[panel][2].append(TimelineCurve(series, line, flow, number, style, limits, time_s, value))
    begin, end = stored["ends"]
    goodput = str(stored.get("goodput", ""))
    return TimeLines(panels, (begin, end), list(stored["repetitions"]), list(stored["missing"]), goodput)


def _kept_distributions(found: Distributions) -> dict[str, Any]:
    return {
        "group": found.group,
        "base": found.base,
        "curves": [
            [place, each.label, each.count, each.without, each.runs, each.left_out, each.middle, _thinned(each.values)]
            for place, panel in found.panels.items()
            for each in panel
        ],
    }


def _thinned(values: list[float]) -> list[float | int]:
    """Evenly spaced values of a sorted list, its least and greatest included."""
    places = np.linspace(0, max(len(values) - 1, 0), min(len(values), _MOST_STEPS)).round().astype(int)
    return [rounded(values[place], _DIGITS) for place in places]


def stored_distributions(figure: FigureSection, experiment: StoredExperiment) -> Distributions:
    """Load the distributions of a figure. Raises NothingToDrawError if none are stored."""
    stored = experiment.stored(figure)
    if not stored:
        raise NothingToDrawError(_NOT_PUBLISHED)
    looks = styles(every_value(experiment, figure.lines))
    panels: dict[str, list[CdfLine]] = {}
    for place, label, count, without, runs, left_out, middle, values in stored["curves"]:
        mine = CdfLine(label, looks[label], list(values), without, runs, list(left_out), count, middle)
        panels.setdefault(place, []).append(mine)
    return Distributions(panels, stored["group"], stored["base"])


def measures_of(figure: FigureSection) -> list[tuple[str, int | str | None, Take | None, str]]:
    """The numbers that a figure takes from each point: measure, flow, take, and the line it is relative to ("" for
    none)."""
    if figure.kind in ("sweep", "bars") or (figure.kind == "table" and figure.y is not None):
        own = (str(figure.y), figure.flow, figure.take, "")
        return [own, *((*own[:3], str(line)) for line in figure.relative_to.values())]
    if figure.kind == "table" and not isinstance(figure.columns, str):
        flows = [figure.flow if each.flow is None else each.flow for each in figure.columns]
        takes = [each.take or (figure.take if each.flow is None else None) for each in figure.columns]
        return [(each.metric, flow, take, "") for each, flow, take in zip(figure.columns, flows, takes, strict=True)]
    return []


def kept_numbers(figure: FigureSection, experiment: Experiment, points: list[StoredPoint]) -> None:
    """Store what the figure takes from each point in ``points``, as far as its runs were made."""
    for point in points:
        runs = Selection(list(experiment.runs), 0).where({**point.axes, "algorithm": point.algorithm})
        occasional = {axis: "none" for axis in ("control", "unknown", "traffic") if axis not in point.axes}
        here = runs.where(occasional)
        for metric, flow, take, to in measures_of(figure):
            try:
                found = sample(here.runs, metric, flow, take)
                if to:
                    other = Selection(list(experiment.runs), 0).where(
                        {**point.axes, **occasional, "algorithm": point.algorithm, figure.lines: to}
                    )
                    found = relative(found, sample(other.runs, metric, flow, take))
            except NothingToDrawError:
                continue
            statistic = found.statistic
            key = point.key(metric, flow, take, to)
            if found.missing:
                point.missing[key] = list(found.missing)
            if isinstance(statistic, Statistic):
                spread = statistic.about_mean()
                ends = (spread.low, spread.high) if spread else (None, None)
                point.numbers[key] = Mean(statistic.count, statistic.mean, *ends)
            elif found.texts:
                point.numbers[key] = dict(Counter(found.texts))
