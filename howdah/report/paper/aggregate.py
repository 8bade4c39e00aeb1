# SPDX-License-Identifier: Apache-2.0
"""Print figures over all runs of a page: distributions over connections and runs, the map of a sweep, and the
receivers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

from howdah.errors import HowdahError, UsageError
from howdah.metric import Metric, known_metrics
from howdah.record.result import Experiment, Run
from howdah.report.axis import RunAxis, axes
from howdah.report.distribution import distribution_panel, distributions
from howdah.report.overview import exit_distribution, flows_of
from howdah.report.plot.model import Panel, Picture, PlotAxis, PlotLine
from howdah.report.plot.scale import Tick
from howdah.report.plot.style import INK, variant_styles
from howdah.report.plot.swept import swept
from howdah.report.receiverstrip import receiver_strips
from howdah.report.variant import Variants

MOST_FIELDS = 20  # along an axis of the map, as on the page; beyond it neighbouring values share one


def completion_figure(experiments: list[Experiment]) -> Picture:
    """Completion time and retransmissions of each group, and completion time of transfers. Raises HowdahError if none
    has enough values."""
    variants = Variants(experiments)
    found = distributions(experiments, variants)
    if not found:
        raise HowdahError("no run that counts has a group with data of each connection, nor five of a transfer")
    caption = "Share of the connections or transfers of all repetitions that have at most so much."
    return Picture("Transfers", [distribution_panel(each, variants) for each in found], caption=[caption])


def exits_figure(experiments: list[Experiment]) -> Picture:
    """The exits of all flows of the runs that count. Raises HowdahError if no flow left slow start."""
    variants = Variants(experiments)
    found = exit_distribution(experiments, variants)
    if found is None:
        raise HowdahError("no run that counts reports a slow-start exit")
    caption = "Share of the flows that left slow start at most so far, over all runs that count."
    return Picture("Exits", [distribution_panel(found, variants)], caption=[caption])


def receivers_figure(experiments: list[Experiment]) -> Picture:
    """A panel for each measure of the receivers, a mark for each flow of each run. Raises HowdahError without a
    capture."""
    variants = Variants(experiments)
    runs = [run for experiment in experiments for run in experiment.runs if run.plan]
    across = axes(experiments, variants)
    axis = next((each for each in across if each.name == "receiver"), None) or (across[0] if across else None)
    strips = receiver_strips(runs, variants, axis.value_of if axis else variants.key)
    if not strips:
        raise HowdahError("no run has a capture at the receiver")
    panels = []
    for strip in strips:
        lines = []
        for number, (variant, look) in enumerate(zip(variants.all, variant_styles(variants), strict=True)):
            line = PlotLine(variant.label, look, [], [])
            for place, marks in enumerate(strip.rows.values()):
                for mark in marks:
                    if mark.variant == number:
                        line.x.append(float(place))
                        line.y.append(mark.value)
            lines.append(line)
        ticks = [Tick(float(place), label) for place, label in enumerate(strip.rows)]
        places, up = (
            PlotAxis("", (-0.5, len(ticks) - 0.5), ticks=ticks),
            PlotAxis(strip.metric.title, (0.0, strip.most)),
        )
        panels.append(Panel("", places, up, [line for line in lines if line.x], "marks"))
    return Picture("Receivers", panels, caption=["What the receivers did; a mark is a flow of a run."])


@dataclass(frozen=True)
class _Fields:
    """The fields along one side of the map: their labels, and a function that returns the index of a run's field."""

    label: str
    names: list[str]
    of: Callable[[Run], int]


def map_figure(experiments: list[Experiment], measure: str | None) -> Picture:
    """The median of a measure over two axes of the sweep, a panel for each variant; with one swept axis, the variants
    are the rows. Raises HowdahError without a sweep or a number, UsageError for a measure that no run has."""
    variants = Variants(experiments)
    sides = [axis for axis in axes(experiments, variants) if not axis.of_variants]
    if not sides:
        raise HowdahError("the runs differ in no swept field")
    metric, values = _values(experiments, measure)
    across = _fields(sides[0])
    keys = [variant.key for variant in variants.all]
    by_variant = len(sides) == 1
    down = _Fields("", keys, lambda run: keys.index(variants.key(run))) if by_variant else _fields(sides[1])
    panels = []
    for key in [""] if by_variant else keys:
        cells: dict[tuple[int, int], list[float]] = {}
        for run, value in values:
            if not key or variants.key(run) == key:
                cells.setdefault((down.of(run), across.of(run)), []).append(value)
        lines = []
        for row, name in enumerate(down.names):
            there = [column for column in range(len(across.names)) if (row, column) in cells]
            lines.append(PlotLine(name, INK, [float(x) for x in there], [median(cells[row, x]) for x in there]))
        ticks = [Tick(float(number), text) for number, text in enumerate(across.names)]
        side = PlotAxis(across.label, ticks=ticks)
        panels.append(Panel(key if len(keys) > 1 else "", side, PlotAxis(down.label), lines, "map"))
    others = [axis.label for axis in sides[2:]]
    over = f", over all values of {', '.join(others)}" if others else ""
    return Picture(metric.title, panels, caption=[f"{metric.title}: median over the runs that count{over}."])


def _values(experiments: list[Experiment], measure: str | None) -> tuple[Metric, list[tuple[Run, float]]]:
    """The metric, and its value in each run that counts: of the whole run, or of its first flow or group."""
    runs = [run for experiment in experiments for run in experiment.runs if run.counts]
    firsts = [(run, found) for run in runs for _name, found in [*flows_of(run)][:1]]
    known = known_metrics()
    numbers = {name for _run, found in firsts for name, value in found.items() if isinstance(value, int | float)}
    there = [name for name in known if name in numbers]
    if measure is not None and measure not in there:
        raise UsageError.unknown(f"no run that counts has the measure {measure!r}", measure, there, "they have")
    main = [name for name in there if known[name].table in ("main", "instead")]
    if not there:
        raise HowdahError("no run that counts has a number")
    metric = known[measure or (main or there)[0]]
    found = [
        (run, float(value) * metric.factor)
        for run, row in firsts
        if isinstance(value := row.get(metric.name), int | float) and not isinstance(value, bool)
    ]
    return metric, found


def _fields(axis: RunAxis) -> _Fields:
    scale = swept(axis.name, axis.values)
    order = sorted(axis.values, key=scale.position.__getitem__)
    size = math.ceil(len(order) / MOST_FIELDS)
    texts = [scale.texts[value] for value in order]
    names = [
        texts[first] if size == 1 else f"{texts[first]} … {texts[min(len(order), first + size) - 1]}"
        for first in range(0, len(order), size)
    ]
    place = {value: number // size for number, value in enumerate(order)}
    return _Fields(scale.label, names, partial(_place, axis, place))


def _place(axis: RunAxis, place: dict[str, int], run: Run) -> int:
    return place[axis.value_of(run)]
