# SPDX-License-Identifier: Apache-2.0
"""Cumulative distributions of a measure over a group's connections or a transfer's repetitions, as inline SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from howdah.number import significant
from howdah.plan.plan import BACKGROUND
from howdah.record.result import Experiment, Run
from howdah.record.table import swept
from howdah.report.plot.canvas import Size
from howdah.report.plot.cdf import shares
from howdah.report.plot.model import Panel, PlotAxis, PlotLine
from howdah.report.plot.scale import bounds
from howdah.report.plot.style import variant_styles
from howdah.report.plot.svg import panel_svg
from howdah.report.plot.swept import place_words
from howdah.report.variant import Variants

# (measure, axis label, factor to the unit shown, whether the axis is logarithmic)
MEASURES = (
    ("completion_time_s", "completion time (s)", 1.0, True),
    ("retransmission_ratio", "segments that were retransmissions (%)", 100.0, False),
)
_LEAST_DECADE = 10  # a logarithmic axis needs this ratio of its ends; else it looks linear with odd numbers
_LEAST_CONNECTIONS = 5
# As on a page, so that letters are not scaled.
_WIDE, _NARROW = Size(1232, 274, "wide"), Size(340, 274, "narrow")


@dataclass(frozen=True)
class Distribution:
    """One measure of one group at one sweep point: the sorted values of all repetitions that count, by variant.
    ``counted`` names what has the values; ``ends`` are the least and greatest value that the axis must show."""

    point: str
    group: str
    words: str
    logarithmic: bool
    curves: list[tuple[int, str, list[float]]]
    counted: str = "connections"
    ends: tuple[float, float] | None = None


def distributions(experiments: list[Experiment], variants: Variants) -> list[Distribution]:
    """The distributions of every group with at least 5 connections measured one by one, and of flows of a fixed size
    with as many repetitions. All distributions of a measure share one axis."""
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    of_flows: set[str] = set()
    for experiment in experiments:
        for run in experiment.runs:
            if not run.counts:
                continue
            measured = run.connections()
            for group in measured.groups:
                for metric, _words, factor, _logarithmic in MEASURES:
                    measures = measured.of(metric, group).values * factor
                    key = (place_words(swept(run.axes)), group, metric)
                    found.setdefault(key, {}).setdefault(variants.key(run), []).extend(
                        measures[~np.isnan(measures)].tolist()
                    )
            for name, measure, value in _of_flows(run):
                key = (place_words(swept(run.axes)), name, measure)
                found.setdefault(key, {}).setdefault(variants.key(run), []).append(value)
                of_flows.add(name)
    result = []
    for point, group in dict.fromkeys((point, group) for point, group, _ in found):
        for measure, words, _factor, logarithmic in MEASURES:
            values = found.get((point, group, measure), {})
            curves = [
                (index, variant.label, sorted(values[variant.key]))
                for index, variant in enumerate(variants.all)
                if len(values.get(variant.key, [])) >= _LEAST_CONNECTIONS
            ]
            if curves and max(curve[2][-1] for curve in curves) > 0:
                counted = "transfers" if group in of_flows else "connections"
                result.append(Distribution(point, group, words, logarithmic, curves, counted))
    of_measure: dict[str, list[float]] = {}
    for each in result:
        of_measure.setdefault(each.words, []).extend(_ends(each))
    return [replace(each, ends=(min(of_measure[each.words]), max(of_measure[each.words]))) for each in result]


def _of_flows(run: Run) -> Iterator[tuple[str, str, float]]:
    """Yield name, measure and value for the completion time of each single transfer."""
    flows = {flow.id: flow for flow in run.plan.flows if flow.group is None} if run.plan is not None else {}
    for row in run.metrics:
        flow = flows.get(row.flow or 0)
        if flow is None or flow.size_bytes is None or flow.role == BACKGROUND or row.metric != MEASURES[0][0]:
            continue
        if row.number is not None:
            yield flow.name, row.metric, float(row.number)


def _ends(shown: Distribution) -> tuple[float, float]:
    values = [curve[2] for curve in shown.curves]
    return shown.ends or (min(curve[0] for curve in values), max(curve[-1] for curve in values))


def _is_logarithmic(shown: Distribution) -> bool:
    """Whether the axis is logarithmic: the measure asks for it and the values span a decade."""
    least, most = _ends(shown)
    return shown.logarithmic and most >= _LEAST_DECADE * max(least, 1e-6)


def distribution_panel(shown: Distribution, variants: Variants) -> Panel:
    """A step curve for each variant; the curve's title has its median."""
    logarithmic = _is_logarithmic(shown)
    across = PlotAxis(
        f"{shown.words}{', logarithmic' if logarithmic else ''}",
        bounds(list(_ends(shown)), logarithmic=logarithmic, zero=True),
        logarithmic,
    )
    looks = variant_styles(variants)
    lines = []
    for index, label, curve in shown.curves:
        spoken = f"{label}: {len(curve)} {shown.counted}, median {significant(curve[len(curve) // 2])}"
        lines.append(PlotLine(label, looks[index], curve, shares(len(curve)), title=spoken, spoken=spoken))
    title = ", ".join(filter(None, (shown.point, shown.group))) if shown.point or shown.counted != "flows" else ""
    up = PlotAxis(f"{shown.counted} (%)", (0.0, 100.0))
    return Panel(title, across, up, lines, "steps", words=f"Distribution over the {shown.counted} of {shown.group}")


def distribution_drawing(shown: Distribution, variants: Variants, *, narrow: bool) -> str:
    """The distribution as inline SVG."""
    panel = distribution_panel(shown, variants)
    return panel_svg(panel, _NARROW if narrow else _WIDE, f"{panel.words}: {shown.words}")
