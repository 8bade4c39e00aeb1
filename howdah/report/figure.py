# SPDX-License-Identifier: Apache-2.0
"""The data behind the figures of a report, in the form that the page's scripts read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pyarrow as pa

from howdah.build.cache import Progress
from howdah.codec import OCCASIONAL
from howdah.number import delay, rate, size
from howdah.plan.path import Path
from howdah.plan.plan import Flow
from howdah.record.result import Experiment, Run
from howdah.record.sample import shown_flows
from howdah.report.ackwindow import AckWindow, WindowExit, ack_window, exit_of, without_exit
from howdah.report.axis import RunAxis
from howdah.report.band import CodedBand, PageBands
from howdah.report.codec import EncodedColumn, encode, encode_integers, extremes, scale_of
from howdah.report.drawn import ACROSS, BEYOND_EXIT, DECADE, FIGURES, PROCESSOR_FIGURES, PageFigure
from howdah.report.event import EventRow, slow_start_events
from howdah.report.pathlimit import limits_of
from howdah.report.sequence import SERIES, sequence_curves
from howdah.report.source import Curve, Curves, Source, goodput_words, shown_us
from howdah.report.table import cause_text
from howdah.report.variant import Colour, Variants, dashes

# The most coded values on a page (about 1.6 characters each), so that a report stays within 2 to 3 MB.
_CURVE_VALUES = 900_000
_ACK_VALUES = 600_000
_SEQUENCE_VALUES = 300_000
_MOST_ACKS = 12_000  # records around one exit
_MOST_EVENTS = 300  # events of one flow
_EXIT_FIGURES = ("exit-cwnd", "exit-rtt")


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
    budget, paths = _budget(runs), _Paths(runs)
    of_time = [figure for figure in FIGURES if figure.axis == "time" and figure.parts is None]
    bands = PageBands(runs, axes, [figure.series[0] for figure in of_time])
    coded = []
    for number, run in enumerate(runs, 1):
        curves = source.curves(run)
        bands.add(run, curves)
        coded.append(_coded_run(run, curves, variants, budget, [axis.index(run) for axis in axes], paths.index(run)))
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


@dataclass(frozen=True)
class _Budget:
    """The most points of a curve and of a time-sequence curve, and the most records around an exit."""

    curve: int
    sequence: int
    acks: int


def _budget(runs: list[Run]) -> _Budget:
    flows = sum(len(shown_flows(run.plan)) for run in runs if run.plan) or 1
    curve = max(200, _CURVE_VALUES // max(1, 4 * flows + len(runs)))
    sequence = max(200, _SEQUENCE_VALUES // (len(SERIES) * flows))
    acks = min(_MOST_ACKS, max(300, _ACK_VALUES // (4 * flows)))
    return _Budget(curve, min(curve, sequence), acks)


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
        distinct = {part: len({each[part] for each in words}) for part in range(3)}
        differing = [part for part, count in distinct.items() if count > 1]
        sufficient = [part for part in differing if distinct[part] == len(words)]
        named = sufficient[:1] or differing
        return [
            CodedPath(", ".join(each[part] for part in named), limits_of(path))
            for each, path in zip(words, self._distinct, strict=True)
        ]

    def index(self, run: Run) -> int:
        """The index of a run's path."""
        mine = limits_of(self._points[run.experiment, run.point])
        return next(number for number, path in enumerate(self._distinct) if limits_of(path) == mine)


def _coded_run(run: Run, curves: Curves, variants: Variants, budget: _Budget, at: list[int], path: int) -> CodedRun:
    """Encode a run. ``at`` has the index of its value on each axis, and ``path`` is the index of its path."""
    assert run.plan is not None
    shown = shown_flows(run.plan)
    hidden = {str(flow.id) for flow in run.plan.flows} - {str(flow.id) for flow in shown}
    curves = curves | _sequences(run, shown)
    missing = missing_data(run, curves)
    probe = run.table("tcp_probe")
    flows: list[CodedFlow] = []
    no_exit_reasons: list[str] = []
    for flow in shown:
        left = exit_of(run, flow)
        flows.append(_coded_flow(run, flow, left, curves, probe, budget.acks))
        if left is None and flow.group is None:
            why = without_exit(run, flow)
            if why is not None:
                no_exit_reasons.append(why)
                continue
            for figure in _EXIT_FIGURES:
                missing.setdefault(figure, []).append(f"metrics.json has no exit_time_s for {flow.name}")
    most = {name: budget.sequence if name in SERIES else budget.curve for name in curves}
    return CodedRun(
        run.name,
        variants.index(run),
        run.repetition,
        run.verdict_name,
        run.counts,
        shown_us(run) / 1e6,
        run.plan.duration_us / 1e6,
        flows,
        {
            name: {flow: _coded(curve, most[name]) for flow, curve in by_flow.items() if flow not in hidden}
            for name, by_flow in curves.items()
        },
        missing,
        no_exit_reasons,
        at,
        path,
    )


def _sequences(run: Run, flows: list[Flow]) -> Curves:
    """The time-sequence curves of the flows, by series and flow."""
    found: Curves = {name: {} for name in SERIES}
    for flow in flows:
        for name, curve in sequence_curves(run, flow).items():
            found[name][str(flow.id)] = curve
    return found


def _coded_flow(
    run: Run, flow: Flow, left: WindowExit | None, curves: Curves, probe: pa.Table | None, most_acks: int
) -> CodedFlow:
    """Encode a flow, which left slow start at ``left``; ``probe`` is the tcp_probe table of the run."""
    entry = CodedFlow(str(flow.id), flow.name)
    if events := slow_start_events(run, flow):
        entry.events = [
            CodedEvent(each.time_ns / 1e9, each.cwnd, each.is_exit, each.label) for each in _thinned(events)
        ]
        entry.told = len(events)
    if left is not None:
        entry.exit = CodedExit(left.time_ns / 1e9, left.after_start_s, left.cwnd_packets, cause_text(left.cause))
        window = ack_window(probe, flow, left.time_ns, most_acks)
        entry.acks = None if window is None else _coded_acks(window)
    else:
        cwnd = curves.get("cwnd", {}).get(str(flow.id))
        if cwnd is not None and len(cwnd.time_ms):
            entry.span = [flow.start_us / 1e6, float(cwnd.time_ms[-1]) / 1e3]
    return entry


def _coded_acks(window: AckWindow) -> CodedAcks:
    return CodedAcks(
        encode_integers(window.time_us),
        encode(window.cwnd, 1.0),
        encode(window.ssthresh, 1.0),
        encode(window.srtt_ms, 0.001),
        [edge / 1e6 for edge in window.full_us],
        window.records,
    )


def _thinned(events: list[EventRow]) -> list[EventRow]:
    """Keep every exit and about 300 other events, evenly chosen: an algorithm may report one event per ACK."""
    if len(events) <= _MOST_EVENTS:
        return events
    step = -(-len(events) // _MOST_EVENTS)
    return [each for number, each in enumerate(events) if each.is_exit or number % step == 0]


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
