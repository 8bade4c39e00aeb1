# SPDX-License-Identifier: Apache-2.0
"""Converts runs to samples, and samples to OpenMetrics text for ``promtool tsdb create-blocks-from openmetrics``.

A sample's time is the host time at which the run started plus its virtual time since the epoch. So the runs of an
experiment appear at the time when they were made, and differ in their labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from howdah.errors import HowdahError
from howdah.metric import UNITS, known_metrics, unit_by_suffix
from howdah.plan.plan import Plan
from howdah.publish.metric import END, INFO, PATH, PREFIX, SERIES, Families, MetricSamples, PublishedMetric, unit_of
from howdah.record.metrics import MetricRow
from howdah.record.result import Run
from howdah.record.sample import Float64, Int64, sample_run

_EXACT = 1e15  # below it every whole number is exact and is written as one


def run_labels(run: Run) -> dict[str, str]:
    """The labels of every series of a run, which together distinguish it from the other runs on a server."""
    labels = {
        "experiment": run.experiment,
        "scenario": run.plan.profile if run.plan else run.experiment,
        "algorithm": run.algorithm,
        "receiver": run.plan.receiver if run.plan else "unknown",
        "repetition": str(run.repetition),
        "kernel": run.kernel,
    }
    return labels | ({"point": run.point} if run.point else {})


def flow_labels(plan: Plan, flow: int) -> dict[str, str]:
    """Name and number (from 1, in the order of the profile) of the flow with this id.

    Raises HowdahError if the plan has no such flow: the id comes from a table, which may be damaged.
    """
    flows = plan.flows
    if 0 < flow <= len(flows) and flows[flow - 1].id == flow:  # as in every plan of howdah's own
        return {"flow": flows[flow - 1].name, "number": str(flow)}
    for place, each in enumerate(flows, start=1):
        if each.id == flow:
            return {"flow": each.name, "number": str(place)}
    raise HowdahError(f"a table has flow {flow}, which the plan of {plan.profile!r} does not have")


def start_ms(run: Run) -> int:
    """The host time of the run's epoch, in milliseconds since 1970."""
    return round(run.started_s * 1000)


def end_ms(run: Run) -> int:
    """The host time that corresponds to the run's end, in milliseconds since 1970; summaries have their only sample
    there."""
    return start_ms(run) + (run.plan.duration_us // 1000 if run.plan else 0)


def families(runs: Iterable[Run]) -> Families:
    """Everything published about the runs, by metric."""
    found: Families = {}
    catalogue = {metric.name: metric for metric in SERIES}
    for run in runs:
        labels, start = run_labels(run), start_ms(run)
        for each in sample_run(run):
            own = dict(each.labels)
            if run.plan is not None and "flow" in own:
                own |= flow_labels(run.plan, int(own["flow"]))
            samples = MetricSamples(labels | own, _shifted(each.time_ms, start), _plain(each.value))
            found.setdefault(catalogue[each.metric], []).append(samples)
        _add_facts(found, run)
    return found


def results(runs: Iterable[Run]) -> Families:
    """The summaries and facts of runs, without their series: one sample each, at the end of the run."""
    found: Families = {}
    for run in runs:
        _add_facts(found, run)
    return found


def _add_facts(found: Families, run: Run) -> None:
    labels, end = run_labels(run), end_ms(run)
    for metric, extra, value in _facts(run):
        found.setdefault(metric, []).append(MetricSamples(labels | extra, [end], [value]))


def _shifted(time_ms: Int64, start: int) -> list[int]:
    values: list[int] = (time_ms + start).tolist()
    return values


def _plain(values: Float64) -> list[float]:
    plain: list[float] = values.tolist()
    return plain


def _facts(run: Run) -> Iterator[tuple[PublishedMetric, dict[str, str], float]]:
    """Yield the summaries of a run, one sample each. Only these have the run's name as a label."""
    run_info, exit_info = INFO
    record = run.provenance
    facts = {
        "run": run.name,
        "verdict": run.verdict_name,
        "engine": run.plan.engine if run.plan else "unknown",
        "plan_sha256": record.plan_sha256 or "",
        "kernel_image_sha256": record.kernel.image_sha256 or "",
        "revision": record.howdah.revision or "",
    }
    yield run_info, {name: value for name, value in facts.items() if value}, 1.0
    yield END, {"run": run.name}, end_ms(run) / 1000
    if run.plan:
        path = run.plan.path
        values = (path.rate_bits_per_second / 8, path.rtt_us / 1e6, path.buffer_bytes, path.bdp_bytes)
        for metric, value in zip(PATH, values, strict=True):
            yield metric, {"run": run.name}, float(value)
    for row in run.metrics:
        extra = {"run": run.name} | _of_row(run, row)
        if row.metric == "exit_cause" and row.value is not None:
            yield exit_info, extra | {"cause": str(row.value)}, 1.0
        elif row.number is not None and not math.isnan(row.number):
            metric, factor = summary_metric(row.metric, row.unit or "")
            yield metric, extra, float(row.number) * factor


def _of_row(run: Run, row: MetricRow) -> dict[str, str]:
    """The labels of the flow or group that a row of metrics.json describes; none for the whole run."""
    if row.flow is not None and run.plan:
        return flow_labels(run.plan, row.flow)
    return {"flow": row.of} if row.of else {}


def _series(name: str, labels: dict[str, str]) -> str:
    """A metric's name with its labels."""
    inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inner}}}"


def _number(value: float) -> str:
    """Format a value: whole numbers without a decimal point, all others so that they read back equal."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def openmetrics(found: Families) -> Iterator[str]:
    """Yield the pieces of an OpenMetrics document with timestamps in seconds and ``# EOF`` at its end."""
    for metric in sorted(found, key=lambda each: each.name):
        yield f"# HELP {metric.family} {metric.help}\n# TYPE {metric.family} {metric.kind}\n"
        if unit := unit_of(metric):
            yield f"# UNIT {metric.family} {unit}\n"
        for samples in found[metric]:
            prefix = _series(metric.name, samples.labels) + " "
            pairs = zip(samples.values, samples.time_ms, strict=True)
            yield "".join(f"{prefix}{_number(value)} {at // 1000}.{at % 1000:03d}\n" for value, at in pairs)
    yield "# EOF\n"


def summary_metric(measure: str, unit: str) -> tuple[PublishedMetric, float]:
    """The metric for a measure of metrics.json, and the factor from the measure's unit to the metric's.

    ``exit_time_s`` becomes ``howdah_exit_time_seconds``; a ratio gains ``_ratio``; ``exit_quantity`` in microseconds
    becomes ``howdah_exit_quantity_seconds``.
    """
    known = known_metrics().get(measure)
    if known is not None and known.is_by_cause and unit:  # part of the name, since a metric has one unit
        suffixes = {each.name: each.suffix for each in UNITS}
        full = measure + suffixes.get(unit, f"_{unit}")
    else:
        full = measure
    name = re.sub(r"[^a-z0-9]+", "_", full.lower()).strip("_") or "measure"
    factor = 1.0
    dimension = unit_by_suffix(name)
    if dimension is not None:
        name, factor = name.removesuffix(dimension.suffix) + dimension.base_suffix, dimension.base_factor
    elif unit == "ratio" and not name.endswith("_ratio"):
        name += "_ratio"
    for reserved in ("_total", "_count", "_sum", "_bucket", "_info"):
        if name.endswith(reserved):
            name += "_value"
    text = f"{known.meaning[0].upper()}{known.meaning[1:]}." if known else f"The measure {name} of metrics.json."
    return PublishedMetric(f"{PREFIX}{name}", "gauge", text, ("run", "flow")), factor
