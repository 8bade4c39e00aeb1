# SPDX-License-Identifier: Apache-2.0
"""The figures of a report and the data behind them, as the page's scripts read them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from howdah.build.cache import Progress
from howdah.number import delay, rate, size
from howdah.plan.path import Path
from howdah.record.result import Experiment, Run
from howdah.record.sample import shown_flows
from howdah.report.ackwindow import ack_window, exit_of, without_exit
from howdah.report.axis import RunAxis
from howdah.report.band import PageBands
from howdah.report.codec import EncodedColumn, encode, encode_integers, extremes, scale_of
from howdah.report.event import ToldEvent, told_events
from howdah.report.sequence import ACKED, AGAIN, OVER_EACH_OTHER, POINTS, SENT, SERIES, sequence_curves
from howdah.report.source import Curve, Curves, Source, goodput_words, shown_us
from howdah.report.table import cause_text
from howdah.report.variant import Variants, dashes
from howdah.series import drawn_series

# What a page may spend, in coded values (about 1.6 characters each), so that a report stays within 2 to 3 MB.
_CURVE_VALUES = 900_000
_ACK_VALUES = 600_000
_MOST_ACKS = 12_000
_MOST_EVENTS = 300  # of a flow
_SEQUENCE_VALUES = 300_000

_SERIES = drawn_series()

FIGURES: list[dict[str, Any]] = [
    {
        "id": "cwnd",
        "title": _SERIES["cwnd"].title,
        "unit": _SERIES["cwnd"].unit,
        "series": ["cwnd", "ssthresh"],
        "axis": "time",
        "limits": ["bdp_packets", "bdp_and_buffer_packets"],
        "height": 320,
        "exits": True,
        "events": True,
        "needs": "tcp_probe or tcp_info records",
    },
    {
        "id": "rtt",
        "title": _SERIES["rtt"].title,
        "unit": _SERIES["rtt"].unit,
        "series": ["rtt"],
        "axis": "time",
        "limits": ["rtt_ms", "full_rtt_ms"],
        "height": 200,
        "needs": "tcp_probe or tcp_info records",
    },
    {
        "id": "goodput",
        "title": _SERIES["goodput"].title,
        "unit": _SERIES["goodput"].unit,
        "series": ["goodput"],
        "axis": "time",
        "limits": ["capacity_mbit"],
        "height": 200,
        "needs": "tcp_probe or tcp_info records",
    },
    {
        "id": "queue",
        "title": _SERIES["queue"].title,
        "unit": _SERIES["queue"].unit,
        "series": ["queue"],
        "axis": "time",
        "limits": ["buffer_kb"],
        "height": 200,
        "whole": True,
        "needs": "qdisc records of the bottleneck",
    },
    {
        "id": "sequence",
        "title": "Time and sequence",
        "unit": "MB",
        "series": list(SERIES),
        "points": list(POINTS),
        "over": OVER_EACH_OTHER,
        "axis": "time",
        "limits": [],
        "height": 320,
        "needs": "tcp_probe records",
        "note": "From the first byte of data. A point is a segment that was sent again or is lost, where packets were "
        "captured, else a reading of the counters that say so. A bar is a SACK block of a captured ACK. Windows begin "
        "at what is acknowledged; a receive window far above it is not drawn. Of several runs or flows, "
        f"{SENT}, {ACKED} and {AGAIN} are drawn.",
    },
    {
        "id": "exit-cwnd",
        "title": "Slow-start exit, every ACK: congestion window",
        "unit": _SERIES["cwnd"].unit,
        "series": ["cwnd", "ssthresh"],
        "axis": "exit",
        "limits": ["bdp_packets", "bdp_and_buffer_packets"],
        "height": 280,
        "events": True,
        "needs": "tcp_probe records around an exit",
    },
    {
        "id": "exit-rtt",
        "title": "Slow-start exit, every ACK: smoothed round-trip time",
        "unit": _SERIES["rtt"].unit,
        "series": ["rtt"],
        "axis": "exit",
        "limits": ["rtt_ms", "full_rtt_ms"],
        "height": 200,
        "needs": "tcp_probe records around an exit",
    },
]

# Of experiments in which a sender has a processor.
PROCESSOR_FIGURES: list[dict[str, Any]] = [
    {
        "id": name,
        "title": _SERIES[name].title,
        "unit": _SERIES[name].unit,
        "series": [name],
        "axis": "time",
        "limits": [],
        "height": 200,
        "needs": "readings of the sender's processor",
    }
    for name in ("processor", "waiting")
]

_LIMIT_NAMES = {
    "bdp_packets": "BDP",
    "bdp_and_buffer_packets": "BDP + buffer",
    "rtt_ms": "propagation",
    "full_rtt_ms": "buffer full",
    "capacity_mbit": "capacity",
    "buffer_kb": "buffer",
}


def page_data(
    experiments: list[Experiment],
    source: Source,
    variants: Variants,
    axes: list[RunAxis],
    tell: Progress | None = None,
) -> dict[str, Any]:
    """Everything the figures draw: axes, variants, paths, runs and their coded columns."""
    runs = drawn_runs(experiments)
    flows = sum(len(shown_flows(run.plan)) for run in runs if run.plan) or 1
    paths = _Paths(runs)
    curve_points = max(200, _CURVE_VALUES // max(1, 4 * flows + len(runs)))
    acks = min(_MOST_ACKS, max(300, _ACK_VALUES // (4 * flows)))
    steps = max(200, _SEQUENCE_VALUES // (len(SERIES) * flows))
    bands = PageBands(
        runs, axes, [figure["series"][0] for figure in FIGURES if figure["axis"] == "time" and "points" not in figure]
    )
    coded = []
    for number, run in enumerate(runs, 1):
        curves = _run(run, source, variants, (curve_points, min(curve_points, steps)), acks, bands)
        coded.append(curves | {"at": [axis.place(run) for axis in axes], "limits": paths.place(run)})
        if tell is not None:
            tell("curves of the report", number, len(runs))
    return {
        "figures": [_noted(each, runs) for each in _figures(runs)],
        "limitNames": _LIMIT_NAMES,
        "dashes": dashes(),
        "axes": [
            {
                "name": axis.name,
                "label": axis.label,
                "values": axis.values,
                "colours": [asdict(colour) for colour in axis.colours],
                "variants": axis.of_variants,
            }
            for axis in axes
        ],
        "limits": paths.limits,
        "variants": [{"label": each.label, **asdict(each.colour)} for each in variants.all],
        "runs": coded,
        "bands": bands.coded(),
    }


def _figures(runs: list[Run]) -> list[dict[str, Any]]:
    """Those that the runs may have: connections of groups have no exits."""
    found = FIGURES + PROCESSOR_FIGURES * any(map(_has_processor, runs))
    single = not runs or any(flow.group is None for run in runs if run.plan for flow in run.plan.flows)
    return [each for each in found if single or each["axis"] != "exit"]


def _noted(figure: dict[str, Any], runs: list[Run]) -> dict[str, Any]:
    """A figure of goodput says what that is made of."""
    return figure | {"note": goodput_words(runs)} if figure["id"] == "goodput" and runs else figure


def drawn_runs(experiments: list[Experiment]) -> list[Run]:
    """The runs that have curves: not those of which a profile keeps the results alone."""
    return [run for experiment in experiments for run in experiment.runs if run.plan and run.data_kept]


class _Paths:
    """The distinct paths of a page, each as the first run of a sweep point has it: repetitions perturb theirs."""

    def __init__(self, runs: list[Run]) -> None:
        self._points: dict[tuple[str, str], Path] = {}
        for run in runs:
            if run.plan is not None:
                self._points.setdefault((run.experiment, run.point), run.plan.path)
        self._distinct = list({str(_limits(path)): path for path in self._points.values()}.values())

    @property
    def limits(self) -> list[dict[str, Any]]:
        """Reference lines of each, and what tells it from the others in words."""
        words = [
            (rate(path.rate_bits_per_second), delay(path.rtt_us), f"buffer {size(path.buffer_bytes)}")
            for path in self._distinct
        ]
        told = [part for part in range(3) if len({each[part] for each in words}) > 1]
        alone = [part for part in told if len({each[part] for each in words}) == len(words)]
        told = alone[:1] or told
        return [
            {"label": ", ".join(each[part] for part in told), **_limits(path)}
            for each, path in zip(words, self._distinct, strict=True)
        ]

    def place(self, run: Run) -> int:
        """The number of a run's path."""
        mine = _limits(self._points[run.experiment, run.point])
        return next(number for number, path in enumerate(self._distinct) if _limits(path) == mine)


def _limits(path: Path) -> dict[str, float]:
    """Reference lines of a path."""
    return {
        "bdp_packets": path.bdp_packets,
        "bdp_and_buffer_packets": path.full_packets,
        "rtt_ms": path.rtt_us / 1e3,
        "full_rtt_ms": path.full_rtt_ms,
        "capacity_mbit": path.capacity_goodput_bits_per_second / 1e6,
        "buffer_kb": path.buffer_bytes / 1e3,
    }


def _run(
    run: Run, source: Source, variants: Variants, most: tuple[int, int], acks: int, bands: PageBands
) -> dict[str, Any]:
    """``most`` are the points of a curve, and of one of the time-sequence picture."""
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
        entry: dict[str, Any] = {"id": str(flow.id), "name": flow.name, "exit": None}
        course = curves.get("cwnd", {}).get(str(flow.id))
        if found is None and course is not None and len(course.time_ms):
            entry["span"] = [flow.start_us / 1e6, float(course.time_ms[-1]) / 1e3]
        told = told_events(run, flow)
        if told:
            entry["events"] = [_event(each) for each in _thinned(told)]
            entry["told"] = len(told)
        if found is None and flow.group is None:
            why = without_exit(run, flow)
            if why is not None:
                stayed.append(why)
            for figure in ("exit-cwnd", "exit-rtt") if why is None else ():
                missing.setdefault(figure, []).append(f"metrics.json has no exit_time_s for {flow.name}")
        elif found is not None:
            entry["exit"] = {
                "time": found.time_ns / 1e9,
                "after": found.after_start_s,
                "cwnd": found.cwnd_packets,
                "cause": cause_text(found.cause),
            }
            window = ack_window(probe, flow, found.time_ns, acks)
            if window is not None:
                entry["acks"] = {
                    "time": encode_integers(window.time_us),
                    "cwnd": encode(window.cwnd, 1.0),
                    "ssthresh": encode(window.ssthresh, 1.0),
                    "rtt": encode(window.srtt_ms, 0.001),
                    "full": [edge / 1e6 for edge in window.full_us],
                    "records": window.records,
                }
        flows.append(entry)
    return {
        "name": run.name,
        "variant": labels.index(variants.key(run)),
        "repetition": run.repetition,
        "verdict": run.verdict_name,
        "counts": run.counts,
        "shown": shown_us(run) / 1e6,
        "planned": run.plan.duration_us / 1e6,
        "flows": flows,
        "curves": {
            name: {flow: _coded(curve, most[name in SERIES]) for flow, curve in by_flow.items() if flow not in hidden}
            for name, by_flow in curves.items()
        },
        "missing": missing,
        "stayed": stayed,
    }


def _event(told: ToldEvent) -> dict[str, Any]:
    return {"time": told.time_ns / 1e9, "cwnd": told.cwnd, "exit": told.is_exit, "text": told.label}


def _thinned(told: list[ToldEvent]) -> list[ToldEvent]:
    """At most some hundred, evenly chosen, and every exit: an algorithm may report one event an ACK."""
    if len(told) <= _MOST_EVENTS:
        return told
    step = -(-len(told) // _MOST_EVENTS)
    return [each for number, each in enumerate(told) if each.is_exit or number % step == 0]


def _coded(curve: Curve, most: int) -> dict[str, Any]:
    """A curve thinned to ``most`` points. Evenly spaced times are written as first, step, count."""
    time, value, low = curve.time_ms, curve.value, curve.low
    if len(time) > most:
        kept = extremes(value, most)
        time, value, low = time[kept], value[kept], None if low is None else low[kept]
    scale = scale_of(value, 4_000)
    coded: dict[str, EncodedColumn] = {"value": encode(value, scale)}
    if low is not None:
        coded["low"] = encode(low, scale)
    steps = np.unique(np.diff(time))
    if len(steps) <= 1:
        return {"even": [int(time[0]), int(steps[0]) if len(steps) else 0, len(time)], **coded}
    return {"time": encode_integers(time), **coded}


def _has_processor(run: Run) -> bool:
    """Whether its measured flows have senders with a processor."""
    hosts = {each.host for each in run.plan.processors} if run.plan else set()
    return run.plan is not None and any(flow.sender in hosts for flow in shown_flows(run.plan))


def missing_data(run: Run, curves: Curves) -> dict[str, list[str]]:
    """What a figure lacks of this run, by figure, in words."""
    found: dict[str, list[str]] = {}
    assert run.plan is not None
    why = run.problem or "the collector was off, or its table is missing or empty"
    for figure in FIGURES + PROCESSOR_FIGURES * _has_processor(run):
        if figure["axis"] == "exit":
            if run.table("tcp_probe") is None:
                found[figure["id"]] = [f"no tcp_probe records: {why}"]
            continue
        have = curves.get(figure["series"][0], {})
        if not have:
            found[figure["id"]] = [f"no {figure['needs']}: {why}"]
            continue
        if not figure.get("whole"):
            absent = [flow.name for flow in shown_flows(run.plan) if flow.is_tcp and str(flow.id) not in have]
            if absent:
                found[figure["id"]] = [f"no {figure['needs']} of {', '.join(absent)}"]
    return found
