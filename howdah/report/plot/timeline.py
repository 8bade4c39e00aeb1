# SPDX-License-Identifier: Apache-2.0
"""Curves against time, from one repetition per line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from howdah.number import significant
from howdah.profile.figure import SERIES_PANELS, FigureSection
from howdah.record.result import Experiment, Run
from howdah.record.sample import Float64, Int64, sample_run, shown_flows
from howdah.report.pathlimit import common_limits, limits_of
from howdah.report.plot.model import LegendItem, Panel, Picture, PlotAxis, PlotLine
from howdah.report.plot.sample import NothingToDrawError, Selection, every_value, flow_of, select
from howdah.report.plot.scale import bounds
from howdah.report.plot.style import INK, Style, flow_dash, key, styles
from howdah.report.plot.swept import place_title
from howdah.report.source import Curve, TableSource, curve_of, goodput_words, shown_us, window_ms
from howdah.series import drawn_series

_FAINT = ("ssthresh",)  # drawn thin, behind the windows
_SERIES = drawn_series()


@dataclass
class TimelineCurve:
    """One curve of one panel: seconds and values, cut to the window, with gaps as NaN."""

    series: str
    line: str
    flow: str
    flow_number: int
    style: Style
    limits: dict[str, float]  # limits of the path by name
    time_s: Float64
    value: Float64

    @property
    def words(self) -> str:
        return ", ".join(filter(None, (self.line, self.flow, _SERIES[self.series].name)))


@dataclass
class TimeLines:
    """All curves of a figure: panels with title, series names and curves; ``ends`` of the axis are in seconds."""

    panels: list[tuple[str, list[str], list[TimelineCurve]]]
    ends: tuple[float, float]
    repetitions: list[int]
    missing: list[str]
    goodput: str = ""  # how goodput was computed, if it is drawn


def draw_time(figure: FigureSection, lines: TimeLines) -> Picture:
    """Draw panels by unit, by series, or by the values of an axis; panels with the same series over an axis share a
    scale."""
    if not any(traces for _, _, traces in lines.panels):
        raise NothingToDrawError("; ".join(lines.missing) or "no run has records of it")
    log = figure.log or ""
    across = PlotAxis("time (s)", _drawn_ends(figure, lines), "x" in log)
    common = figure.panels not in (None, SERIES_PANELS)
    picture = Picture(missing=list(dict.fromkeys(lines.missing)))
    for title, names, traces in lines.panels:
        alike = [each for _, others, some in lines.panels if others == names for each in some] if common else traces
        unit, factor = _unit(names, alike)
        reach = [float(edge) * factor for each in alike for edge in _reach(each, alike)]
        ends = bounds(reach, logarithmic="y" in log, zero=True)
        words = f"{', '.join(_SERIES[name].name for name in names)} ({unit})"
        up = PlotAxis(unit if len(_groups(figure)) > 1 else words, ends, "y" in log)
        limits = [(name, value * factor) for name, value in common_limits(names[0], [each.limits for each in traces])]
        inside = [(name, value) for name, value in limits if ends[0] < value < ends[1]]
        drawn = [_line(each, names, factor, ends[1]) for each in traces]
        picture.panels.append(Panel(title, across, up, drawn, "time", inside, f"{words} against time"))
    picture.legend = _legend(figure, [each for _, _, traces in lines.panels for each in traces])
    picture.caption = [f"One repetition of each line ({', '.join(f'r{each}' for each in lines.repetitions)})."]
    picture.caption += [lines.goodput] if lines.goodput else []
    return picture


def _line(each: TimelineCurve, names: list[str], factor: float, most: float) -> PlotLine:
    value = each.value * factor
    spoken = f"{each.words} up to {significant(float(np.nanmax(each.value)) * factor)}"
    if each.series in _FAINT:
        value = np.where(value > most, np.nan, value)  # still infinite
    faint = each.series in _FAINT and "cwnd" in names
    return PlotLine(
        each.words, each.style, each.time_s.tolist(), value.tolist(), title=each.words, spoken=spoken, faint=faint
    )


def _drawn_ends(figure: FigureSection, lines: TimeLines) -> tuple[float, float]:
    """The ends of the time axis of all panels; a logarithmic axis begins at the first record."""
    begin, end = lines.ends
    if "x" in (figure.log or "") and begin <= 0:
        after = [each.time_s[each.time_s > 0] for _, _, traces in lines.panels for each in traces]
        begin = min((float(times[0]) for times in after if len(times)), default=end / 1000)
    return begin, end


def time_lines(figure: FigureSection, experiment: Experiment) -> TimeLines:
    """The curves of a figure from the runs of an experiment."""
    by_series = figure.panels in (None, SERIES_PANELS)
    axes = [figure.lines] if by_series else [figure.lines, str(figure.panels)]
    selection = select(figure, experiment, *axes)
    lines = selection.values(figure.lines)
    looks = styles(every_value(experiment, figure.lines))
    missing: list[str] = []
    used: list[Run] = []
    panels: list[tuple[str, list[str], list[TimelineCurve]]] = []
    places = [""] if by_series else selection.values(str(figure.panels))
    for place in places:
        here = selection if by_series else selection.where({str(figure.panels): place})
        traces = []
        for label in [place] if figure.panels == figure.lines else lines:
            run = _run_of(figure, here.where({figure.lines: label}), ", ".join(filter(None, (label, place))), missing)
            if run is not None:
                used.append(run)
                traces += _traces(figure, run, label, looks[label], missing)
        for names in _groups(figure):
            title = place_title(str(figure.panels), place) if place else ""
            if len(_groups(figure)) > 1:
                title = ", ".join(filter(None, (title, " and ".join(_SERIES[name].name for name in names))))
            panels.append((title, names, [each for each in traces if each.series in names]))
    if not used:
        raise NothingToDrawError("; ".join(missing) or "no run has records of it")
    repetitions = sorted({run.repetition for run in used})
    goodput = goodput_words(used) if "goodput" in figure.series else ""
    return TimeLines(panels, _ends(figure, used), repetitions, missing, goodput)


def _groups(figure: FigureSection) -> list[list[str]]:
    """The series that share a panel: those of one unit, unless each has its own."""
    if figure.panels == SERIES_PANELS:
        return [[name] for name in figure.series]
    units = dict.fromkeys(_SERIES[name].unit for name in figure.series)
    return [[name for name in figure.series if _SERIES[name].unit == unit] for unit in units]


def _run_of(figure: FigureSection, here: Selection, where: str, missing: list[str]) -> Run | None:
    """The run that is shown: the requested repetition, or the first that counts and has its tables."""
    runs = sorted(here.made, key=lambda run: run.repetition)
    if figure.repetition is not None:
        runs = [run for run in runs if run.repetition == figure.repetition]
    if not runs:
        missing.append(f"{where}: not run")
        return None
    for run in runs:
        if run.counts and run.data_kept and run.plan:
            return run
    fates = [
        f"{run.name} is {run.verdict_name}" if not run.counts else f"the data of {run.name} were not kept"
        for run in runs
    ]
    missing.append(f"{where}: {'; '.join(fates)}")
    return None


def _traces(figure: FigureSection, run: Run, label: str, style: Style, missing: list[str]) -> list[TimelineCurve]:
    assert run.plan is not None
    flows = shown_flows(run.plan)
    if figure.flows:
        wanted = [flow_of(run.plan, each) for each in figure.flows]
        missing += [
            f"{label}: there is no flow {each}" for each, of in zip(figure.flows, wanted, strict=True) if of is None
        ]
        flows = [flow for flow in flows if flow.id in wanted or flow.group in wanted]
    begin, end = _ends(figure, [run])
    curves = TableSource().curves(run)
    if "sequence" in figure.series:
        curves["sequence"] = _sequence(run)
    curves["drops"] = {flow: _from_zero(curve) for flow, curve in curves.get("drops", {}).items()}
    found = []
    for name in figure.series:
        mine = curves.get(name, {})
        if _SERIES[name].is_per_run:
            cut = [_cut(curve, begin, end) for curve in list(mine.values())[:1]]
            found += [
                TimelineCurve(name, label, "", 0, style, limits_of(run.plan.path), *part)
                for part in cut
                if len(part[0])
            ]
        else:
            for number, flow in enumerate(flows):
                curve = mine.get(str(flow.id))
                if curve is not None and len((part := _cut(curve, begin, end))[0]):
                    dashed = style if len(flows) == 1 else replace(style, dash=flow_dash(number))
                    shown = flow.name if len(flows) > 1 else ""
                    found.append(TimelineCurve(name, label, shown, number, dashed, limits_of(run.plan.path), *part))
        if not any(trace.series == name for trace in found):
            missing.append(f"{label}: no records of {_SERIES[name].name} in {run.name}")
    return found


def _sequence(run: Run) -> dict[str, Curve]:
    """Acknowledged bytes from the start, by flow, in MB."""
    return {
        series.label("flow"): curve_of(_SERIES["sequence"], series, window_ms(run))
        for series in sample_run(run)
        if _SERIES["sequence"].matches(series.metric, series.label("role"))
    }


def _from_zero(curve: Curve) -> Curve:
    """Subtract the first value, because the calibration before the flows also drops packets."""
    return Curve(curve.time_ms, curve.value - curve.value[0])


def _cut(curve: Curve, begin: float, end: float) -> tuple[Float64, Float64]:
    """The samples in the window, and one beyond each end so that the line reaches it."""
    time: Int64 = curve.time_ms
    first = max(int(np.searchsorted(time, begin * 1000, side="right")) - 1, 0)
    last = int(np.searchsorted(time, end * 1000, side="left")) + 1
    seconds: Float64 = np.clip(time[first:last] / 1e3, begin, end)
    inside = (time[first:last] >= begin * 1000) & (time[first:last] <= end * 1000)
    return (seconds, curve.value[first:last]) if inside.any() else (seconds[:0], curve.value[:0])


def _ends(figure: FigureSection, used: list[Run]) -> tuple[float, float]:
    if figure.window:
        return figure.window[0] / 1e6, figure.window[1] / 1e6
    return 0.0, max(shown_us(run) for run in used) / 1e6


def _legend(figure: FigureSection, traces: list[TimelineCurve]) -> list[LegendItem]:
    """The colours of the lines, then the dashes of the flows, then the meaning of the fainter curve."""
    items: dict[str, LegendItem] = {}
    lines = dict.fromkeys(each.line for each in traces)
    for each in traces:
        plain = Style(each.style.colour) if each.flow else each.style
        items.setdefault(each.line, LegendItem(key(plain, "line"), each.line))
    if figure.panels == figure.lines and len(lines) > 1:
        items.clear()  # the panels' titles name the lines
    found = list(items.values())
    flows = {each.flow: each.style for each in traces if each.flow}
    if len(flows) > 1:
        found += [LegendItem(key(replace(INK, dash=style.dash), "line"), flow) for flow, style in flows.items()]
    if {"cwnd", "ssthresh"} <= {each.series for each in traces} and figure.panels != SERIES_PANELS:
        found.append(LegendItem(key(INK, "faint"), "thin: ssthresh"))
    return found


def _reach(each: TimelineCurve, alike: list[TimelineCurve]) -> tuple[float, float]:
    """The least and greatest value; ssthresh counts only up to 1.5 times the largest cwnd, since it begins infinite."""
    known = each.value[~np.isnan(each.value)]
    if not len(known):
        return 0.0, 0.0
    if each.series == "ssthresh":
        others = [float(np.nanmax(other.value)) for other in alike if other.series == "cwnd"]
        known = np.minimum(known, 1.5 * max(others)) if others else known
    return float(known.min()), float(known.max())


def _unit(names: list[str], traces: list[TimelineCurve]) -> tuple[str, float]:
    unit = _SERIES[names[0]].unit
    most = max((float(np.nanmax(each.value)) for each in traces if not np.isnan(each.value).all()), default=0.0)
    return ("MB", 0.001) if unit == "kB" and most >= 10_000 else (unit, 1.0)
