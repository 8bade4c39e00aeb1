# SPDX-License-Identifier: Apache-2.0
"""The data behind the figures of a report, in the form that the page's scripts read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import numpy as np

from howdah.build.cache import Progress
from howdah.codec import OCCASIONAL
from howdah.number import delay, rate, size
from howdah.plan.path import Path
from howdah.record.result import Experiment, Run
from howdah.record.sample import shown_flows
from howdah.report.ackwindow import ack_window, exit_of, without_exit
from howdah.report.axis import RunAxis
from howdah.report.band import CodedBand, PageBands
from howdah.report.codec import EncodedColumn, encode, encode_integers, extremes, scale_of
from howdah.report.drawn import ACROSS, BEYOND_EXIT, DECADE, FIGURES, PROCESSOR_FIGURES, PageFigure
from howdah.report.event import SlowStartEvent, slow_start_events
from howdah.report.pathlimit import limits_of
from howdah.report.sequence import SERIES, sequence_curves
from howdah.report.source import Curve, Curves, Source, goodput_words, shown_us
from howdah.report.table import cause_text
from howdah.report.variant import Colour, Variants, dashes

# What a page may spend, in coded values (about 1.6 characters each), so that a report stays within 2 to 3 MB.
_CURVE_VALUES = 900_000
_ACK_VALUES = 600_000
_MOST_ACKS = 12_000
_MOST_EVENTS = 300  # of a flow
_SEQUENCE_VALUES = 300_000


@dataclass(frozen=True)
class CodedAxis:
    name: str
    label: str
    values: list[str]
    colours: list[Colour]
    variants: bool


@dataclass(frozen=True)
class CodedVariant:
    label: str
    light: str
    dark: str
    dashes: int


@dataclass(frozen=True)
class CodedPath:
    """The reference lines of a path by name; ``label`` says how this path differs from the others."""

    label: str
    limits: dict[str, float]


@dataclass(frozen=True)
class CodedEvent:
    time: float
    cwnd: int
    exit: bool
    text: str


@dataclass(frozen=True)
class CodedExit:
    time: float
    after: float
    cwnd: float | None
    cause: str


@dataclass(frozen=True)
class CodedAcks:
    time: EncodedColumn
    cwnd: EncodedColumn
    ssthresh: EncodedColumn
    rtt: EncodedColumn
    full: list[float]
    records: int


@dataclass
class CodedFlow:
    """One flow of a run. ``span`` is where the line of a flow without an exit runs (start and end in seconds); ``told``
    is the number of its events before thinning."""

    id: str
    name: str
    exit: CodedExit | None = None
    span: list[float] | None = field(default=None, metadata=OCCASIONAL)
    events: list[CodedEvent] | None = field(default=None, metadata=OCCASIONAL)
    told: int = field(default=0, metadata=OCCASIONAL)
    acks: CodedAcks | None = field(default=None, metadata=OCCASIONAL)


@dataclass(frozen=True)
class CodedCurve:
    """One curve. ``even`` (first, step, count) replaces ``time`` if the times are evenly spaced."""

    value: EncodedColumn
    low: EncodedColumn | None = field(default=None, metadata=OCCASIONAL)
    even: list[int] | None = field(default=None, metadata=OCCASIONAL)
    time: EncodedColumn | None = field(default=None, metadata=OCCASIONAL)


@dataclass(frozen=True)
class CodedRun:
    name: str
    variant: int
    repetition: int
    verdict: str
    counts: bool
    shown: float
    planned: float
    flows: list[CodedFlow]
    curves: dict[str, dict[str, CodedCurve]]
    missing: dict[str, list[str]]
    stayed: list[str]
    at: list[int]
    path: int


@dataclass(frozen=True)
class PageData:
    """Everything the figures draw: axes, variants, paths, runs and their coded columns, and the drawing rules from
    howdah/report/drawn.py."""

    across: dict[str, str]
    decade: int
    beyond_exit: float
    figures: list[PageFigure]
    dashes: list[list[int]]
    axes: list[CodedAxis]
    paths: list[CodedPath]
    variants: list[CodedVariant]
    runs: list[CodedRun]
    bands: list[CodedBand]


def page_data(
    experiments: list[Experiment],
    source: Source,
    variants: Variants,
    axes: list[RunAxis],
    tell: Progress | None = None,
) -> PageData:
    runs = drawn_runs(experiments)
    flows = sum(len(shown_flows(run.plan)) for run in runs if run.plan) or 1
    paths = _Paths(runs)
    curve_points = max(200, _CURVE_VALUES // max(1, 4 * flows + len(runs)))
    acks = min(_MOST_ACKS, max(300, _ACK_VALUES // (4 * flows)))
    steps = max(200, _SEQUENCE_VALUES // (len(SERIES) * flows))
    of_time = [figure for figure in FIGURES if figure.axis == "time" and figure.parts is None]
    bands = PageBands(runs, axes, [figure.series[0] for figure in of_time])
    coded = []
    for number, run in enumerate(runs, 1):
        place = [axis.place(run) for axis in axes], paths.place(run)
        coded.append(_run(run, source, variants, (curve_points, min(curve_points, steps)), acks, bands, place))
        if tell is not None:
            tell("curves of the report", number, len(runs))
    return PageData(
        ACROSS,
        DECADE,
        BEYOND_EXIT,
        [_with_note(each, runs) for each in _figures(runs)],
        dashes(),
        [CodedAxis(axis.name, axis.label, axis.values, axis.colours, axis.of_variants) for axis in axes],
        paths.coded,
        [CodedVariant(each.label, **asdict(each.colour)) for each in variants.all],
        coded,
        bands.coded(),
    )


def _figures(runs: list[Run]) -> list[PageFigure]:
    """The figures of the page; without the exit figures if all flows belong to groups, which report no exits."""
    found = FIGURES + PROCESSOR_FIGURES * any(map(_has_processor, runs))
    single = not runs or any(flow.group is None for run in runs if run.plan for flow in run.plan.flows)
    return [each for each in found if single or each.axis != "exit"]


def _with_note(figure: PageFigure, runs: list[Run]) -> PageFigure:
    """Give the goodput figure a note on how goodput was computed."""
    return replace(figure, note=goodput_words(runs)) if figure.id == "goodput" and runs else figure


def drawn_runs(experiments: list[Experiment]) -> list[Run]:
    """The runs that have curves; runs whose profile kept only the results have none."""
    return [run for experiment in experiments for run in experiment.runs if run.plan and run.data_kept]


class _Paths:
    """The distinct paths of a page. Repetitions perturb the path, so each sweep point has that of its first run."""

    def __init__(self, runs: list[Run]) -> None:
        self._points: dict[tuple[str, str], Path] = {}
        for run in runs:
            if run.plan is not None:
                self._points.setdefault((run.experiment, run.point), run.plan.path)
        self._distinct = list({str(limits_of(path)): path for path in self._points.values()}.values())

    @property
    def coded(self) -> list[CodedPath]:
        words = [
            (rate(path.rate_bits_per_second), delay(path.rtt_us), f"buffer {size(path.buffer_bytes)}")
            for path in self._distinct
        ]
        told = [part for part in range(3) if len({each[part] for each in words}) > 1]
        alone = [part for part in told if len({each[part] for each in words}) == len(words)]
        told = alone[:1] or told
        return [
            CodedPath(", ".join(each[part] for part in told), limits_of(path))
            for each, path in zip(words, self._distinct, strict=True)
        ]

    def place(self, run: Run) -> int:
        """The index of a run's path."""
        mine = limits_of(self._points[run.experiment, run.point])
        return next(number for number, path in enumerate(self._distinct) if limits_of(path) == mine)


def _run(
    run: Run,
    source: Source,
    variants: Variants,
    most: tuple[int, int],
    acks: int,
    bands: PageBands,
    place: tuple[list[int], int],
) -> CodedRun:
    """``most`` are the points of a curve, and of one of the time-sequence picture; ``place`` is that on the axes, and
    the number of the path."""
    assert run.plan is not None
    labels = [variant.key for variant in variants.all]
    curves = source.curves(run)
    bands.add(run, curves)
    curves = curves | {name: {} for name in SERIES}
    shown = shown_flows(run.plan)
    hidden = {str(flow.id) for flow in run.plan.flows} - {str(flow.id) for flow in shown}
    for flow in shown:
        for name, curve in sequence_curves(run, flow).items():
            curves[name][str(flow.id)] = curve
    probe = run.table("tcp_probe")
    flows = []
    missing = missing_data(run, curves)
    stayed: list[str] = []
    for flow in shown:
        found = exit_of(run, flow)
        entry = CodedFlow(str(flow.id), flow.name)
        course = curves.get("cwnd", {}).get(str(flow.id))
        if found is None and course is not None and len(course.time_ms):
            entry.span = [flow.start_us / 1e6, float(course.time_ms[-1]) / 1e3]
        told = slow_start_events(run, flow)
        if told:
            entry.events = [
                CodedEvent(each.time_ns / 1e9, each.cwnd, each.is_exit, each.label) for each in _thinned(told)
            ]
            entry.told = len(told)
        if found is None and flow.group is None:
            why = without_exit(run, flow)
            if why is not None:
                stayed.append(why)
            for figure in ("exit-cwnd", "exit-rtt") if why is None else ():
                missing.setdefault(figure, []).append(f"metrics.json has no exit_time_s for {flow.name}")
        elif found is not None:
            entry.exit = CodedExit(
                found.time_ns / 1e9, found.after_start_s, found.cwnd_packets, cause_text(found.cause)
            )
            window = ack_window(probe, flow, found.time_ns, acks)
            if window is not None:
                entry.acks = CodedAcks(
                    encode_integers(window.time_us),
                    encode(window.cwnd, 1.0),
                    encode(window.ssthresh, 1.0),
                    encode(window.srtt_ms, 0.001),
                    [edge / 1e6 for edge in window.full_us],
                    window.records,
                )
        flows.append(entry)
    return CodedRun(
        run.name,
        labels.index(variants.key(run)),
        run.repetition,
        run.verdict_name,
        run.counts,
        shown_us(run) / 1e6,
        run.plan.duration_us / 1e6,
        flows,
        {
            name: {flow: _coded(curve, most[name in SERIES]) for flow, curve in by_flow.items() if flow not in hidden}
            for name, by_flow in curves.items()
        },
        missing,
        stayed,
        *place,
    )


def _thinned(told: list[SlowStartEvent]) -> list[SlowStartEvent]:
    """Keep every exit and about 300 other events, evenly chosen: an algorithm may report one event per ACK."""
    if len(told) <= _MOST_EVENTS:
        return told
    step = -(-len(told) // _MOST_EVENTS)
    return [each for number, each in enumerate(told) if each.is_exit or number % step == 0]


def _coded(curve: Curve, most: int) -> CodedCurve:
    """Encode a curve, thinned to ``most`` points."""
    time, value, low = curve.time_ms, curve.value, curve.low
    if len(time) > most:
        kept = extremes(value, most)
        time, value, low = time[kept], value[kept], None if low is None else low[kept]
    scale = scale_of(value, 4_000)
    coded = encode(value, scale), None if low is None else encode(low, scale)
    steps = np.unique(np.diff(time))
    if len(steps) <= 1:
        return CodedCurve(*coded, even=[int(time[0]), int(steps[0]) if len(steps) else 0, len(time)])
    return CodedCurve(*coded, time=encode_integers(time))


def _has_processor(run: Run) -> bool:
    """Whether the sender of a measured flow has a simulated processor."""
    hosts = {each.host for each in run.plan.processors} if run.plan else set()
    return run.plan is not None and any(flow.sender in hosts for flow in shown_flows(run.plan))


def missing_data(run: Run, curves: Curves) -> dict[str, list[str]]:
    """What each figure lacks for this run, in words, by the figure's id."""
    found: dict[str, list[str]] = {}
    assert run.plan is not None
    why = run.problem or "the collector was off, or its table is missing or empty"
    for figure in FIGURES + PROCESSOR_FIGURES * _has_processor(run):
        if figure.axis == "exit":
            if run.table("tcp_probe") is None:
                found[figure.id] = [f"no tcp_probe records: {why}"]
            continue
        have = curves.get(figure.series[0], {})
        if not have:
            found[figure.id] = [f"no {figure.needs}: {why}"]
            continue
        if not figure.whole:
            absent = [flow.name for flow in shown_flows(run.plan) if flow.is_tcp and str(flow.id) not in have]
            if absent:
                found[figure.id] = [f"no {figure.needs} of {', '.join(absent)}"]
    return found
