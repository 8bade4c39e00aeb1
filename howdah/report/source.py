# SPDX-License-Identifier: Apache-2.0
"""The sources of a report's curves and summaries: PromQL against a real server, or the tables without one.

Also: the part of a run that is shown, and how its goodput was computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.assets import data
from howdah.measure.statistics import Statistic, statistic
from howdah.publish.metric import INFO
from howdah.publish.openmetrics import end_ms, run_labels, start_ms, summary_metric
from howdah.publish.server import Client, matchers
from howdah.record.metrics import MetricRow
from howdah.record.result import Experiment, Run
from howdah.record.sample import Float64, Int64, Series, flow_step_ms, queue_step_ms, sample_run, shown_flows, step_ms
from howdah.series import DrawnSeries, series_of

# series name -> flow ("" for a series of the whole run) -> curve
Curves = dict[str, dict[str, "Curve"]]


@dataclass(frozen=True)
class Curve:
    """``time_ms`` counts from the epoch; ``value`` is in the unit of the figure (packets, ms, Mbit/s, kB). If ``low``
    is set, each point is a range from ``low`` to ``value``."""

    time_ms: Int64
    value: Float64
    low: Float64 | None = None


@dataclass(frozen=True)
class Group:
    """The key over which repetitions are combined. ``flow`` is "" for a measure of the whole run."""

    experiment: str
    kernel: str
    point: str
    algorithm: str
    flow: str


@dataclass
class Summary:
    """Statistics of numeric measures and counts of exit causes, over the runs that count.

    ``absent`` has the reasons in metrics.json for measures that some of those runs lack.
    """

    statistics: dict[tuple[Group, str], Statistic] = field(default_factory=dict)
    causes: dict[Group, Counter[str]] = field(default_factory=dict)
    absent: dict[tuple[Group, str], list[str]] = field(default_factory=dict)


class Source(Protocol):
    """A source of the curves and the summary of an experiment."""

    @property
    def name(self) -> str: ...

    def curves(self, run: Run) -> Curves: ...

    def summary(self, experiment: Experiment) -> Summary: ...


def window_ms(run: Run) -> int:
    """The window of the goodput curve: one round-trip time, at least five samples."""
    assert run.plan is not None
    step = step_ms(run.plan)
    return max(5 * step, -(-run.plan.path.rtt_us // (1000 * step)) * step)


def measures(experiment: Experiment) -> dict[str, str]:
    """The numeric measures that the runs have, with their units."""
    found: dict[str, str] = {}
    for run in experiment.runs:
        for row in run.metrics:
            if row.number is not None:
                found[row.metric] = row.unit or ""
    return found


class PrometheusSource:
    """Runs the queries of ``reports/series.yaml`` and ``queries.yaml`` on a server with the experiment's blocks."""

    def __init__(self, client: Client, version: str) -> None:
        self._client = client
        self._queries = data("queries.yaml")
        self.name = f"Prometheus {version}"

    def curves(self, run: Run) -> Curves:
        if run.plan is None:
            return {}
        start = start_ms(run)
        names = {"run": matchers(run_labels(run) | {"point": run.point}), "window": f"{window_ms(run)}ms"}
        ids = {flow.name: str(flow.id) for flow in run.plan.flows}
        found: Curves = {}
        for each in series_of("report"):
            step = queue_step_ms(run.plan) if each.is_per_run else flow_step_ms(run.plan)
            answers = self._client.range(Template(each.promql).substitute(names), start, end_ms(run), step)
            for answer in answers:
                curve = Curve(answer.time_ms - start, answer.value)
                flow = answer.labels.get("flow", "")
                found.setdefault(each.id, {})[ids.get(flow, flow)] = curve
        return found

    def summary(self, experiment: Experiment) -> Summary:
        found = Summary(absent=absent_measures(experiment))
        runs = [run for run in experiment.runs if run.plan]
        if not runs:
            return found
        last = max(end_ms(run) for run in runs)
        reach = last - min(end_ms(run) for run in runs) + 60_000
        names = {"scope": matchers({"experiment": experiment.name}), "range": f"{reach}ms"}
        ids = {flow.name: str(flow.id) for run in runs if run.plan for flow in run.plan.flows}
        published = {measure: summary_metric(measure, unit) for measure, unit in measures(experiment).items()}
        values: dict[str, dict[Group, list[float]]] = {metric.name: {} for metric, _factor in published.values()}
        # One query for all measures, because each query has a large fixed cost.
        query = self._text(self._queries["values"], names | {"metric": "|".join(values)})
        for each in self._client.instant(query, last) if values else ():
            values[each.metric].setdefault(_group(each.labels, ids), []).append(each.value)
        for measure, (metric, factor) in published.items():
            for group, numbers in values[metric.name].items():
                found.statistics[group, measure] = statistic([number / factor for number in numbers])
        text = self._text(self._queries["causes"], names | {"metric": INFO[1].name})
        for each in self._client.instant(text, last):
            causes = found.causes.setdefault(_group(each.labels, ids), Counter())
            causes[each.labels["cause"]] += round(each.value)
        return found

    def _text(self, query: str, names: dict[str, str]) -> str:
        return Template(query).substitute(valid=Template(self._queries["valid"]).substitute(names))


def row_group(run: Run, row: MetricRow) -> Group:
    """The group a row of metrics.json belongs to. A group of connections takes the place of a flow, by its name."""
    return Group(run.experiment, run.kernel, run.point, run.algorithm, row.of)


def absent_measures(experiment: Experiment) -> dict[tuple[Group, str], list[str]]:
    """The reasons for absent measures in the runs that count; they are text, which no time series can hold."""
    found: dict[tuple[Group, str], list[str]] = {}
    for run in experiment.runs:
        for row in run.metrics if run.counts else []:
            if row.value is None:
                found.setdefault((row_group(run, row), row.metric), []).append(row.why or "")
    return found


def _group(labels: dict[str, str], ids: dict[str, str]) -> Group:
    """The group with these labels; ``ids`` maps the flow names that Prometheus has to flow ids."""
    flow = labels.get("flow", "")
    labels = labels | {"flow": ids.get(flow, flow)}
    return Group(*(labels.get(name, "") for name in ("experiment", "kernel", "point", "algorithm", "flow")))


class TableSource:
    """The same from Parquet and metrics.json, without Prometheus."""

    name = "Parquet tables"

    def curves(self, run: Run) -> Curves:
        found: Curves = {}
        if run.plan is None:
            return found
        window = window_ms(run)
        for recorded in sample_run(run):
            for each in series_of("report"):
                if each.matches(recorded.metric, recorded.label("role")):
                    found.setdefault(each.id, {})[recorded.label("flow")] = curve_of(each, recorded, window)
        return found

    def summary(self, experiment: Experiment) -> Summary:
        values: dict[tuple[Group, str], list[float]] = {}
        found = Summary(absent=absent_measures(experiment))
        for run in experiment.runs:
            if not run.counts:
                continue
            for row in run.metrics:
                group = row_group(run, row)
                value = row.value
                if row.metric == "exit_cause" and value is not None:
                    found.causes.setdefault(group, Counter())[str(value)] += 1
                elif isinstance(value, int | float):
                    values.setdefault((group, row.metric), []).append(float(value))
        found.statistics = {key: statistic(list_) for key, list_ in values.items()}
        return found


def curve_of(drawn: DrawnSeries, recorded: Series, window: int) -> Curve:
    """Compute the result of the series' query over ``window`` (ms) without a server."""
    time, value = recorded.time_ms, recorded.value
    if drawn.rate:
        value = (value - np.interp(time - window, time, value)) / window * 1e3
    return Curve(time, value * drawn.times / drawn.per)


_RTTS, _SHARE = 4, 0.05  # shown after the last flow's end: the longer of round trips and a fraction of the time so far
_SHORTENED_BELOW = 0.8  # runs that end after this fraction of the plan are shown to its end
_COLUMNS = ("flow", "end_ns", "complete")


def shown_us(run: Run) -> int:
    """The end of the shown part of a run, from the epoch; the end of the plan if a flow did not complete."""
    assert run.plan is not None
    plan = run.plan
    table = run.table("flow")
    if table is None or not table.num_rows:
        return plan.duration_us
    ends = {
        flow: end_ns
        for flow, end_ns, complete in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)
        if complete
    }
    if any(ends.get(flow.id) is None for flow in plan.flows):
        return plan.duration_us
    last_us = max(ends.values()) // 1000
    shown = last_us + max(_RTTS * max(flow.rtt_us for flow in plan.flows), int(_SHARE * last_us))
    return int(shown) if shown < _SHORTENED_BELOW * plan.duration_us else plan.duration_us


COUNTED = "Goodput: payload as it arrived at the receiver."
PROVED = (
    "Goodput: payload that ACKs prove to have arrived, at most what the path carries; no receiver counted segments."
)
_MOST_NAMES = 3


def goodput_words(runs: Sequence[Run]) -> str:
    """One sentence for captions on how the goodput of these runs was computed."""
    counted = [_is_counted(run) for run in runs]
    others = [run.name for run, is_counted in zip(runs, counted, strict=True) if not is_counted and _is_drawn(run)]
    if not others:
        return COUNTED
    if not any(counted):
        return PROVED
    named = ", ".join(others[:_MOST_NAMES])
    more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
    return f"{COUNTED[:-1]}; of {named}{more} what ACKs prove to have arrived, at most what the path carries."


def _is_drawn(run: Run) -> bool:
    return run.table("tcp_info") is not None or run.table("tcp_probe") is not None


def _is_counted(run: Run) -> bool:
    table = run.table("tcp_info")
    if table is None or run.plan is None:
        return False
    own = pc.equal(table.column("end").cast(pa.string()), "receiver")
    own = pc.and_(own, pc.is_valid(table.column("data_segs_in_packets")))
    counted = set(table.column("flow").filter(own).unique().to_pylist())
    return {flow.id for flow in shown_flows(run.plan)} <= counted
