# SPDX-License-Identifier: Apache-2.0
"""The paper figures by name: which points each takes from the tables, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from howdah.errors import HowdahError, UsageError, nearest
from howdah.plan.plan import Flow
from howdah.record.result import Experiment, Run, without_controls
from howdah.record.sample import Float64, shown_flows
from howdah.record.table import swept
from howdah.report.ackwindow import exit_of, flow_start_ns
from howdah.report.band import Band
from howdah.report.paper.aggregate import completion_figure, exits_figure, map_figure, receivers_figure
from howdah.report.paper.band import band_legend, bands_of, draw_bands
from howdah.report.paper.choice import Choice, chosen_runs
from howdah.report.paper.line import MOST_LINES, PaperLine, Points, axis_end_s, end_s, shown_part, span_decades, thinned
from howdah.report.paper.panels import (
    PREFIX,
    declared_picture,
    declared_sections,
    difference_figure,
    draw_limits,
    draw_picture,
)
from howdah.report.paper.points import acknowledged, cwnd, goodput, queue, rtt
from howdah.report.paper.sheet import FigureSheet, legend_columns, legend_entries, legend_lines, plain_logarithm, write
from howdah.report.paper.strip import draw_strip
from howdah.report.pathlimit import common_limits, limits_of
from howdah.report.plot.model import Picture
from howdah.report.plot.swept import place_words
from howdah.report.sequence import ACKED, RETRANSMITTED, SERIES, sequence_curves
from howdah.report.source import Curve
from howdah.report.table import cause_text
from howdah.report.variant import Variants
from howdah.series import drawn_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ASPECT = 0.5  # height of the axes over their width
_SHORTEST_IN = 1.95  # least height of the axes, so that the longest label of a vertical axis fits
_LEGEND_ROW_IN = 0.145
_SPARE_COLOUR = "#404040"  # for further lines of a variant


@dataclass(frozen=True)
class TimeFigure:
    """A figure of a series over time. ``points`` returns seconds since the flow's start and values, or None; ``title``
    overrides that of the series; ``beside`` returns the curves added to a line that is alone.
    """

    series: str
    points: Points
    needs: str
    title: str = ""
    exits: bool = False
    extra: Callable[[Run, Flow], dict[str, Curve]] | None = None

    @property
    def label(self) -> str:
        """The label of the vertical axis."""
        drawn = drawn_series()[self.series]
        return f"{self.title or drawn.title} ({drawn.unit})"


def sequence_extras(run: Run, flow: Flow) -> dict[str, Curve]:
    """All curves of the report's time-sequence picture except the acknowledged bytes."""
    return {name: curve for name, curve in sequence_curves(run, flow).items() if name != ACKED}


_PROBE = "tcp_probe or tcp_info records of the flow"
TIME_FIGURES: dict[str, TimeFigure] = {
    "start-up": TimeFigure("cwnd", cwnd, _PROBE, exits=True),
    "time-sequence": TimeFigure("sequence", acknowledged, _PROBE, "Sequence", extra=sequence_extras),
    "rtt": TimeFigure("rtt", rtt, _PROBE, "Smoothed RTT"),
    "queue": TimeFigure("queue", queue, "qdisc records of the bottleneck"),
    "goodput": TimeFigure("goodput", goodput, _PROBE),
}
NAMES: dict[str, str] = {
    "exit-strip": "where each flow left slow start, as a share of the BDP, with a mark for every repetition",
    "start-up": "the congestion window at every ACK of the start-up, with the exits",
    "time-sequence": "bytes acknowledged over time; of one flow also what was sent, SACKed, sent again and lost, and "
    "both windows",
    "rtt": "the smoothed round-trip time that the sender has",
    "queue": "the backlog of the bottleneck",
    "goodput": "mean goodput of each round trip",
    "difference": "each side against the first at each point, as ratios over pairs of equal repetitions",
    "completion": "completion time of transfers and retransmissions of the connections of groups, as distributions",
    "exits": "the windows at the exits over all runs, as a distribution",
    "map": "the median of a measure over two axes of the sweep",
    "receivers": "what the receivers did: ACKs, SACK blocks and offered windows",
}
AGGREGATES: dict[str, Callable[[list[Experiment], Choice], Picture]] = {
    "difference": lambda experiments, _choice: difference_figure(experiments),
    "completion": lambda experiments, _choice: completion_figure(experiments),
    "exits": lambda experiments, _choice: exits_figure(experiments),
    "map": lambda experiments, choice: map_figure(experiments, choice.measure),
    "receivers": lambda experiments, _choice: receivers_figure(experiments),
}


def draw(
    name: str, experiments: list[Experiment], choice: Choice, sheet: FigureSheet, target: Path, format_: str
) -> Path:
    """Draw one figure into ``target``. Raises HowdahError for an unknown name, and if there is nothing to draw."""
    own = declared_sections(without_controls(experiments))
    names = [*NAMES, *own]
    if name not in names:
        close = nearest(name, names)
        hint = f"The figures are {', '.join(names)}."
        raise UsageError(f"there is no figure '{name}'", hint=f"Did you mean {close}? {hint}" if close else hint)
    experiments = without_controls(experiments)
    title = f"{', '.join(each.name for each in experiments)}: {name}"
    with sheet.styled():
        if has_panels(name):
            picture = panels_of(name, experiments, choice)
            figure = draw_picture(picture, sheet)
            title = " ".join(picture.caption)
        elif name == "exit-strip":
            runs = chosen_runs(experiments, choice, with_data=False)
            figure = draw_strip(runs, Variants(experiments), sheet)
        else:
            figure = _draw_over_time(TIME_FIGURES[name], experiments, choice, sheet)
        return write(figure, target, format_, title)


def available(experiments: list[Experiment], choice: Choice) -> dict[str, str | None]:
    """Every figure with the reason why it cannot be drawn, or None if it can."""
    found: dict[str, str | None] = {}
    experiments = without_controls(experiments)
    variants = Variants(experiments)
    for name in [*NAMES, *declared_sections(experiments)]:
        try:
            if has_panels(name):
                panels_of(name, experiments, choice)
            elif name == "exit-strip":
                runs = chosen_runs(experiments, choice, with_data=False)
                if not any(exit_of(run, flow) for run in runs if run.plan for flow in run.plan.flows):
                    raise HowdahError("no run reports a slow-start exit")
            else:
                lines_of(TIME_FIGURES[name], experiments, variants, choice)
            found[name] = None
        except HowdahError as error:
            found[name] = error.what
    return found


def has_panels(name: str) -> bool:
    """Whether the figure consists of panels (``plotted_of``)."""
    return name in AGGREGATES or name.startswith(PREFIX)


def needs_records(name: str, experiments: list[Experiment]) -> bool:
    """Whether the figure needs tables; other figures can also use runs that kept only their results."""
    if name in TIME_FIGURES:
        return True
    own = declared_sections(without_controls(experiments)).get(name)
    return own is not None and own[0].kind == "time"


def panels_of(name: str, experiments: list[Experiment], choice: Choice) -> Picture:
    """The panels of a figure of the chosen runs."""
    runs = chosen_runs(experiments, choice, with_data=needs_records(name, experiments))
    chosen = {run.directory.path for run in runs}
    kept = [replace(each, runs=[run for run in each.runs if run.directory.path in chosen]) for each in experiments]
    if name in AGGREGATES:
        return AGGREGATES[name](kept, choice)
    section, experiment = declared_sections(kept)[name]
    return declared_picture(section, experiment)


def lines_of(spec: TimeFigure, experiments: list[Experiment], variants: Variants, choice: Choice) -> list[PaperLine]:
    """One line, of one flow of one repetition, for each variant and sweep point."""
    runs = chosen_runs(experiments, choice, with_data=True)
    if choice.repetition is not None:
        runs = [run for run in runs if run.repetition == choice.repetition]
    runs_of = _runs_by_line(runs, variants)
    several_variants, several_points = (len({key[part] for key in runs_of}) > 1 for part in (0, 1))
    colours = {variant.key: variant.colour.light for variant in variants.all}
    used: set[str] = set()
    lines = []
    for number, ((variant, point), mine) in enumerate(runs_of.items()):
        run = mine[0]
        flow = _flow(run, choice.flow)
        found = spec.points(run, flow, flow_start_ns(run, flow) / 1e9)
        if found is None or not len(found[0]):
            continue
        words = [variant] if several_variants or not several_points else []
        words += [place_words(swept(run.axes)) or point] if several_points else []
        label = ", ".join(filter(None, words)) or variant
        colour = colours[variant] if colours[variant] not in used else _SPARE_COLOUR
        used.add(colour)
        counting = tuple(each for each in mine if each.counts)
        lines.append(PaperLine(label, number, colour, run, flow, *found, exit_of(run, flow), counting))
    if not lines:
        raise HowdahError(f"no run has {spec.needs}", hint="'howdah report' says what each run lacks.")
    until = end_s(lines, whole=choice.whole)
    return [_cropped(line, until) for line in lines]


def _runs_by_line(runs: list[Run], variants: Variants) -> dict[tuple[str, str], list[Run]]:
    """The runs by variant and sweep point, in the order of the variants; those that count first, then by repetition.

    Raises HowdahError if print cannot distinguish that many lines.
    """
    by_line: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: (not run.counts, run.repetition)):
        by_line.setdefault((variants.key(run), run.point), []).append(run)
    order = {variant.key: number for number, variant in enumerate(variants.all)}
    by_line = dict(sorted(by_line.items(), key=lambda item: order[item[0][0]]))
    if len(by_line) > MOST_LINES:
        points = ", ".join(dict.fromkeys(point for _variant, point in by_line if point))
        raise HowdahError(
            f"{len(by_line)} lines cannot be distinguished in print; {MOST_LINES} can",
            hint=f"Choose with --algorithm NAME or --point TEXT{f' ({points})' if points else ''}.",
        )
    return by_line


def _flow(run: Run, name: str | None) -> Flow:
    assert run.plan is not None
    own = [flow for flow in run.plan.flows if flow.group is None] or shown_flows(run.plan)
    if name is None:
        return own[0]
    for flow in run.plan.flows:
        if name in (flow.name, str(flow.id)):
            return flow
    raise UsageError.unknown(f"{run.name} has no flow {name!r}", name, [flow.name for flow in own], "its flows are")


def _cropped(line: PaperLine, end_s: float | None) -> PaperLine:
    x, y = shown_part(line.x, line.y, end_s)
    return replace(line, x=x, y=y)


def _draw_over_time(spec: TimeFigure, experiments: list[Experiment], choice: Choice, sheet: FigureSheet) -> Figure:
    lines = lines_of(spec, experiments, Variants(experiments), choice)
    bands = bands_of(lines, spec.points, axis_end_s(lines, whole=choice.whole))
    band_handles, band_labels = band_legend(bands)
    extras = extra_curves(spec, lines, choice)
    expected = [*(_legend_text(line, spec) for line in lines), *extras, *band_labels]
    texts = legend_entries(expected, sheet.width_in)
    across = legend_columns(texts, sheet.width_in)
    legend_in = legend_lines(texts, across) * _LEGEND_ROW_IN
    figure = sheet.figure(max(_SHORTEST_IN, sheet.width_in * _ASPECT) + legend_in)
    axes = figure.subplots()
    limits = _draw_axes(axes, spec, lines, bands, choice)
    handles, labels = axes.get_legend_handles_labels()
    texts = legend_entries([*labels, *band_labels], sheet.width_in)
    figure.legend([*handles, *band_handles], texts, loc="outside upper left", ncols=across)
    draw_limits(figure, {axes: limits})
    return figure


def _draw_axes(
    axes: Axes, spec: TimeFigure, lines: list[PaperLine], bands: list[tuple[PaperLine, Band]], choice: Choice
) -> list[tuple[str, float]]:
    """Draw bands, lines and extra curves, and return the limits that are in view."""
    axes.set_xlim(0, axis_end_s(lines, whole=choice.whole))
    draw_bands(axes, bands)
    for line in lines:
        _draw_line(axes, line, spec)
    peaks = [float(np.max(line.y)) for line in lines if len(line.y)]
    peaks += [float(np.nanmax(band.high)) for _line, band in bands]
    for name, (x, y, low) in extra_curves(spec, lines, choice).items():
        _draw_extra(axes, name, x, y, low)
        if low is None and not SERIES[name].points:
            peaks.append(float(np.max(y)))
    axes.set_ylim(0, max(peaks, default=0.0) * 1.06 or 1.0)
    if spec.exits and span_decades(lines):
        axes.set_yscale("log")
        axes.set_ylim(0.8 * min(float(np.min(line.y[line.y > 0])) for line in lines), max(peaks) * 1.4)
        plain_logarithm(axes.yaxis)
    limits = _limits(axes, spec, lines)
    axes.set_xlabel("Time since the flow’s start (s)")
    axes.set_ylabel(spec.label)
    return limits


def _draw_line(axes: Axes, line: PaperLine, spec: TimeFigure) -> None:
    """Draw a line, and its exit as a larger mark."""
    axes.plot(
        *thinned(line.x, line.y),
        color=line.colour,
        linestyle=line.dash,
        marker=line.mark,
        markevery=(line.number * 0.05 % 0.2, 0.2),  # each line has its own offset, so that coinciding lines show
        markerfacecolor="white",
        label=_legend_text(line, spec),
        gid=f"line-{line.number}",
    )
    if spec.exits and line.exit is not None and line.exit.cwnd_packets is not None:
        at = (line.exit.after_start_s, line.exit.cwnd_packets)
        axes.plot(*([value] for value in at), color=line.colour, marker=line.mark, markersize=6, linestyle="none")


def _draw_extra(axes: Axes, name: str, x: Float64, y: Float64, low: Float64 | None) -> None:
    """Draw a part of the time-sequence picture: points, ranges from ``low``, or a curve."""
    part = SERIES[name]
    if part.points:
        mark = "+" if name == RETRANSMITTED else "x"
        axes.plot(x, y, linestyle="none", marker=mark, markersize=2.4, color="#202020", label=name)
    elif low is not None:
        axes.vlines(x, low, y, color="#808080", linewidth=0.8, label=name)
    elif part.dash:
        look: dict[str, Any] = {"color": "#404040", "linewidth": 0.7, "linestyle": (0, part.dash)}
        axes.plot(*thinned(x, y), label=name, **look)
    else:  # wide and light, so that dashed lines on top of it stay visible
        axes.plot(*thinned(x, y), label=name, color="#a8a8a8", linewidth=1.4)


def extra_curves(
    spec: TimeFigure, lines: list[PaperLine], choice: Choice
) -> dict[str, tuple[Float64, Float64, Float64 | None]]:
    """The curves drawn beside a line that is alone, as far as they are in view: seconds since the flow's start, values,
    and for ranges their lower ends."""
    if spec.extra is None or len(lines) != 1:
        return {}
    line, until = lines[0], axis_end_s(lines, whole=choice.whole)
    start_s = flow_start_ns(line.run, line.flow) / 1e9
    found = {}
    for name, curve in spec.extra(line.run, line.flow).items():
        x = curve.time_ms / 1e3 - start_s
        keep = (x >= 0) & (x <= until) & ~np.isnan(curve.value)
        if keep.any():
            found[name] = (x[keep], curve.value[keep], None if curve.low is None else curve.low[keep])
    return found


def _legend_text(line: PaperLine, spec: TimeFigure) -> str:
    if spec.extra is not None:
        return f"{line.label}, acknowledged"
    if not spec.exits or line.exit is None:
        return line.label
    return f"{line.label} (exit: {cause_text(line.exit.cause)})"


def _limits(axes: Axes, spec: TimeFigure, lines: list[PaperLine]) -> list[tuple[str, float]]:
    """The reference lines of the path that all lines share; extend the axis at least to the lowest."""
    top = axes.get_ylim()[1]
    paths = [limits_of(line.run.plan.path) for line in lines if line.run.plan]
    near = []
    for number, (name, value) in enumerate(reversed(common_limits(spec.series, paths))):
        if value <= top or (not number and value <= 2 * top):
            top = max(top, value * 1.1)
            near.append((name, value))
    axes.set_ylim(axes.get_ylim()[0], top)
    return near[::-1]
