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
from howdah.report.paper.band import band_legend, bands_of, draw_bands
from howdah.report.paper.choice import Choice, chosen_runs
from howdah.report.paper.line import MOST_LINES, PaperLine, Points, last_s, shown_part, span_decades, thinned, until_s
from howdah.report.paper.plotted import (
    PREFIX,
    declared,
    declared_sections,
    difference_figure,
    draw_limits,
    draw_plotted,
)
from howdah.report.paper.points import acknowledged, cwnd, goodput, queue, rtt
from howdah.report.paper.sheet import FigureSheet, columns, entries, lines_of_legend, plain_logarithm, write
from howdah.report.paper.strip import draw_strip
from howdah.report.paper.summed import completion_figure, exits_figure, map_figure, receivers_figure
from howdah.report.pathlimit import common_limits, limits_of
from howdah.report.plot.model import Picture
from howdah.report.plot.swept import place_words
from howdah.report.sequence import ACKED, AGAIN, SERIES, sequence_curves
from howdah.report.source import Curve
from howdah.report.table import cause_text
from howdah.report.variant import Variants
from howdah.series import drawn_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GOLDEN = 0.5  # height of the axes for their width
_SHORTEST_IN = 1.95  # of the axes: the longest name of a vertical axis fits
_LEGEND_ROW_IN = 0.145


@dataclass(frozen=True)
class CourseFigure:
    """A figure of a series over time. ``points`` returns seconds since the flow's start and values, or None; ``title``
    overrides that of the series; ``beside`` returns the curves added to a line that is alone.
    """

    series: str
    points: Points
    needs: str
    title: str = ""
    exits: bool = False
    beside: Callable[[Run, Flow], dict[str, Curve]] | None = None

    @property
    def label(self) -> str:
        """The label of the vertical axis."""
        drawn = drawn_series()[self.series]
        return f"{self.title or drawn.title} ({drawn.unit})"


def sequence_beside(run: Run, flow: Flow) -> dict[str, Curve]:
    """All curves of the report's time-sequence picture except the acknowledged bytes."""
    return {name: curve for name, curve in sequence_curves(run, flow).items() if name != ACKED}


_PROBE = "tcp_probe or tcp_info records of the flow"
COURSES: dict[str, CourseFigure] = {
    "start-up": CourseFigure("cwnd", cwnd, _PROBE, exits=True),
    "time-sequence": CourseFigure("sequence", acknowledged, _PROBE, "Sequence", beside=sequence_beside),
    "rtt": CourseFigure("rtt", rtt, _PROBE, "Smoothed RTT"),
    "queue": CourseFigure("queue", queue, "qdisc records of the bottleneck"),
    "goodput": CourseFigure("goodput", goodput, _PROBE),
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
SUMMED: dict[str, Callable[[list[Experiment], Choice], Picture]] = {
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
    variants = Variants(experiments)
    title = f"{', '.join(each.name for each in experiments)}: {name}"
    with sheet.styled():
        if is_plotted(name):
            plotted = plotted_of(name, experiments, choice)
            figure = draw_plotted(plotted, sheet)
            title = " ".join(plotted.caption)
        elif name == "exit-strip":
            figure = draw_strip(chosen_runs(experiments, choice, with_data=False), variants, sheet)
        else:
            course = COURSES[name]
            lines = lines_of(course, experiments, variants, choice)
            bands = bands_of(lines, course.points, last_s(lines, whole=choice.whole))
            handles, words = band_legend(bands)
            more = beside_of(course, lines, choice)
            labels = entries([*(_named(line, course) for line in lines), *more, *words], sheet.width_in)
            across = columns(labels, sheet.width_in)
            rows = lines_of_legend(labels, across)
            figure = sheet.figure(max(_SHORTEST_IN, sheet.width_in * _GOLDEN) + rows * _LEGEND_ROW_IN)
            axes = figure.subplots()
            limits = _draw_course(axes, course, lines, bands, choice)
            drawn, named = axes.get_legend_handles_labels()
            texts = entries([*named, *words], sheet.width_in)
            figure.legend([*drawn, *handles], texts, loc="outside upper left", ncols=across)
            draw_limits(figure, {axes: limits})
        return write(figure, target, format_, title)


def available(experiments: list[Experiment], choice: Choice) -> dict[str, str | None]:
    """Every figure with the reason why it cannot be drawn, or None if it can."""
    found: dict[str, str | None] = {}
    experiments = without_controls(experiments)
    variants = Variants(experiments)
    for name in [*NAMES, *declared_sections(experiments)]:
        try:
            if is_plotted(name):
                plotted_of(name, experiments, choice)
            elif name == "exit-strip":
                runs = chosen_runs(experiments, choice, with_data=False)
                if not any(exit_of(run, flow) for run in runs if run.plan for flow in run.plan.flows):
                    raise HowdahError("no run reports a slow-start exit")
            else:
                lines_of(COURSES[name], experiments, variants, choice)
            found[name] = None
        except HowdahError as error:
            found[name] = error.what
    return found


def is_plotted(name: str) -> bool:
    """Whether the figure consists of panels (``plotted_of``)."""
    return name in SUMMED or name.startswith(PREFIX)


def needs_records(name: str, experiments: list[Experiment]) -> bool:
    """Whether the figure needs tables; other figures can also use runs that kept only their results."""
    if name in COURSES:
        return True
    own = declared_sections(without_controls(experiments)).get(name)
    return own is not None and own[0].kind == "time"


def plotted_of(name: str, experiments: list[Experiment], choice: Choice) -> Picture:
    """The panels of a figure of the chosen runs."""
    runs = chosen_runs(experiments, choice, with_data=needs_records(name, experiments))
    chosen = {run.directory.path for run in runs}
    kept = [replace(each, runs=[run for run in each.runs if run.directory.path in chosen]) for each in experiments]
    if name in SUMMED:
        return SUMMED[name](kept, choice)
    section, experiment = declared_sections(kept)[name]
    return declared(section, experiment)


def lines_of(
    course: CourseFigure, experiments: list[Experiment], variants: Variants, choice: Choice
) -> list[PaperLine]:
    """One line, of one flow of one repetition, for each variant and sweep point."""
    runs = chosen_runs(experiments, choice, with_data=True)
    if choice.repetition is not None:
        runs = [run for run in runs if run.repetition == choice.repetition]
    firsts: dict[tuple[str, str], Run] = {}
    alike: dict[tuple[str, str], tuple[Run, ...]] = {}
    for run in sorted(runs, key=lambda run: (not run.counts, run.repetition)):
        place = (variants.key(run), run.point)
        firsts.setdefault(place, run)
        alike[place] = (*alike.get(place, ()), *([run] if run.counts else []))
    order = {variant.key: number for number, variant in enumerate(variants.all)}
    kept = sorted(firsts.items(), key=lambda item: order[item[0][0]])
    if len(kept) > MOST_LINES:
        points = ", ".join(dict.fromkeys(point for (_key, point), _run in kept if point))
        raise HowdahError(
            f"{len(kept)} lines cannot be distinguished in print; {MOST_LINES} can",
            hint=f"Choose with --algorithm NAME or --point TEXT{f' ({points})' if points else ''}.",
        )
    several_keys, several_points = (len({each[0][place] for each in kept}) > 1 for place in (0, 1))
    colours = {variant.key: variant.colour.light for variant in variants.all}
    used: set[str] = set()
    lines = []
    for number, ((key, point), run) in enumerate(kept):
        flow = _flow(run, choice.flow)
        start_s = flow_start_ns(run, flow) / 1e9
        found = course.points(run, flow, start_s)
        if found is None or not len(found[0]):
            continue
        words = [key] if several_keys or not several_points else []
        words += [place_words(swept(run.axes)) or point] if several_points else []
        colour = colours[key] if colours[key] not in used else "#404040"
        used.add(colour)
        exit_ = exit_of(run, flow)
        lines.append(
            PaperLine(
                ", ".join(filter(None, words)) or key, number, colour, run, flow, *found, exit_, alike[key, point]
            )
        )
    if not lines:
        raise HowdahError(f"no run has {course.needs}", hint="'howdah report' says what each run lacks.")
    until = until_s(lines, whole=choice.whole)
    return [_cut(line, until) for line in lines]


def _flow(run: Run, name: str | None) -> Flow:
    assert run.plan is not None
    own = [flow for flow in run.plan.flows if flow.group is None] or shown_flows(run.plan)
    if name is None:
        return own[0]
    for flow in run.plan.flows:
        if name in (flow.name, str(flow.id)):
            return flow
    raise UsageError.unknown(f"{run.name} has no flow {name!r}", name, [flow.name for flow in own], "its flows are")


def _cut(line: PaperLine, until_s: float | None) -> PaperLine:
    x, y = shown_part(line.x, line.y, until_s)
    return replace(line, x=x, y=y)


def _draw_course(
    axes: Axes, course: CourseFigure, lines: list[PaperLine], bands: list[tuple[PaperLine, Band]], choice: Choice
) -> list[tuple[str, float]]:
    """Returns the limits that are in view."""
    axes.set_xlim(0, last_s(lines, whole=choice.whole))
    draw_bands(axes, bands)
    for line in lines:
        # Marks lie at other places on each line, so that lines that coincide are still seen to be several.
        every = (line.number * 0.05 % 0.2, 0.2)
        axes.plot(
            *thinned(line.x, line.y),
            color=line.colour,
            linestyle=line.dash,
            marker=line.mark,
            markevery=every,
            markerfacecolor="white",
            label=_named(line, course),
            gid=f"line-{line.number}",
        )
        if course.exits and line.exit is not None and line.exit.cwnd_packets is not None:
            at = (line.exit.after_start_s, line.exit.cwnd_packets)
            axes.plot(*([value] for value in at), color=line.colour, marker=line.mark, markersize=6, linestyle="none")
    highest = [float(np.max(line.y)) for line in lines if len(line.y)]
    highest += [float(np.nanmax(band.high)) for _line, band in bands]
    for name, (x, y, low) in beside_of(course, lines, choice).items():
        part = SERIES[name]
        if part.points:
            axes.plot(
                x,
                y,
                linestyle="none",
                marker="+" if name == AGAIN else "x",
                markersize=2.4,
                color="#202020",
                label=name,
            )
        elif low is not None:
            axes.vlines(x, low, y, color="#808080", linewidth=0.8, label=name)
        else:
            highest.append(float(np.max(y)))
            # Dashes lie on a wide light line: what was sent fills the congestion window, and hides no line under it.
            look: dict[str, Any] = {"color": "#a8a8a8", "linewidth": 1.4}
            if part.dash:
                look = {"color": "#404040", "linewidth": 0.7, "linestyle": (0, part.dash)}
            axes.plot(*thinned(x, y), label=name, **look)
    axes.set_ylim(0, max(highest, default=0.0) * 1.06 or 1.0)
    if course.exits and span_decades(lines):
        axes.set_yscale("log")
        axes.set_ylim(0.8 * min(float(np.min(line.y[line.y > 0])) for line in lines), max(highest) * 1.4)
        plain_logarithm(axes.yaxis)
    limits = _limits(axes, course, lines)
    axes.set_xlabel("Time since the flow’s start (s)")
    axes.set_ylabel(course.label)
    return limits


def beside_of(
    course: CourseFigure, lines: list[PaperLine], choice: Choice
) -> dict[str, tuple[Float64, Float64, Float64 | None]]:
    """The curves drawn beside a line that is alone, as far as they are in view: seconds since the flow's start, values,
    and for ranges their lower ends."""
    if course.beside is None or len(lines) != 1:
        return {}
    line, until = lines[0], last_s(lines, whole=choice.whole)
    start_s = flow_start_ns(line.run, line.flow) / 1e9
    found = {}
    for name, curve in course.beside(line.run, line.flow).items():
        x = curve.time_ms / 1e3 - start_s
        keep = (x >= 0) & (x <= until) & ~np.isnan(curve.value)
        if keep.any():
            found[name] = (x[keep], curve.value[keep], None if curve.low is None else curve.low[keep])
    return found


def _named(line: PaperLine, course: CourseFigure) -> str:
    if course.beside is not None:
        return f"{line.label}, acknowledged"
    if not course.exits or line.exit is None:
        return line.label
    return f"{line.label} (exit: {cause_text(line.exit.cause)})"


def _limits(axes: Axes, course: CourseFigure, lines: list[PaperLine]) -> list[tuple[str, float]]:
    """The reference lines of the path that all lines share; extend the axis at least to the lowest."""
    top = axes.get_ylim()[1]
    paths = [limits_of(line.run.plan.path) for line in lines if line.run.plan]
    near = []
    for number, (name, value) in enumerate(reversed(common_limits(course.series, paths))):
        if value <= top or (not number and value <= 2 * top):
            top = max(top, value * 1.1)
            near.append((name, value))
    axes.set_ylim(axes.get_ylim()[0], top)
    return near[::-1]
