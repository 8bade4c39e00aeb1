# SPDX-License-Identifier: Apache-2.0
"""Runs as OpenMetrics text (for ``promtool tsdb create-blocks-from openmetrics``) or as Prometheus' own text format.

Virtual time is mapped to the host time at which the run started plus the offset from the epoch, so runs of one
experiment lie where they were made and differ in their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from howdah.publish.experiment import Run
from howdah.publish.metric import INFO, PATH, SERIES, Metric, summary_metric
from howdah.publish.sample import Float64, Int64, sample_run

# OpenMetrics UNIT lines are allowed only when the family's name ends in the unit.
_UNITS = ("seconds", "bytes", "packets", "ratio")


@dataclass(frozen=True)
class Samples:
    """Samples of one label set of one metric. ``time_ms`` counts from 1970."""

    labels: dict[str, str]
    time_ms: list[int]
    values: list[float]


Families = dict[Metric, list[Samples]]


def run_labels(run: Run) -> dict[str, str]:
    """Labels that every series of a run carries and that together tell runs of a server apart."""
    labels = {
        "experiment": run.experiment,
        "scenario": run.plan.profile if run.plan else run.experiment,
        "algorithm": run.algorithm,
        "repetition": str(run.repetition),
        "kernel": run.kernel,
    }
    return labels | ({"point": run.point} if run.point else {})


def start_ms(run: Run) -> int:
    """Host time of the run's epoch, milliseconds since 1970."""
    return round(run.started_s * 1000)


def end_ms(run: Run) -> int:
    """Host time to which the end of the run is mapped; summaries have their one sample there."""
    return start_ms(run) + (run.plan.duration_us // 1000 if run.plan else 0)


def families(runs: Iterable[Run]) -> Families:
    """Everything published about the runs, by metric."""
    found: Families = {}
    catalogue = {metric.name: metric for metric in SERIES}
    for run in runs:
        labels, start = run_labels(run), start_ms(run)
        for series in sample_run(run):
            samples = Samples(labels | dict(series.labels), _shifted(series.time_ms, start), _plain(series.value))
            found.setdefault(catalogue[series.metric], []).append(samples)
        for metric, extra, value in _facts(run):
            found.setdefault(metric, []).append(Samples(labels | extra, [end_ms(run)], [value]))
    return found


def _shifted(time_ms: Int64, start: int) -> list[int]:
    values: list[int] = (time_ms + start).tolist()
    return values


def _plain(values: Float64) -> list[float]:
    plain: list[float] = values.tolist()
    return plain


def _facts(run: Run) -> Iterator[tuple[Metric, dict[str, str], float]]:
    """Run summaries: one sample each. The run's name is a label here and nowhere else."""
    run_info, exit_info = INFO
    provenance = run.provenance
    facts = {
        "run": run.name,
        "verdict": run.verdict_name,
        "engine": run.plan.engine if run.plan else "unknown",
        "plan_sha256": str(provenance.get("plan_sha256") or ""),
        "kernel_image_sha256": str(provenance.get("kernel", {}).get("image_sha256") or ""),
        "revision": str(provenance.get("howdah", {}).get("revision") or ""),
    }
    yield run_info, {name: value for name, value in facts.items() if value}, 1.0
    if run.plan:
        path = run.plan.path
        values = (path.rate_bits_per_second / 8, path.rtt_us / 1e6, path.buffer_bytes, path.bdp_bytes)
        for metric, value in zip(PATH, values, strict=True):
            yield metric, {"run": run.name}, float(value)
    for row in run.metrics:
        if row["flow"] is not None and row.get("group"):
            continue  # one of a group of connections, which is published as a whole
        flow = row.get("group") if row["flow"] is None else row["flow"]
        extra = {"run": run.name} | ({} if flow is None else {"flow": str(flow)})
        value = row["value"]
        if row["metric"] == "exit_cause" and value is not None:
            yield exit_info, extra | {"cause": str(value)}, 1.0
        elif isinstance(value, bool | int | float) and not math.isnan(float(value)):
            metric, factor = summary_metric(str(row["metric"]), str(row.get("unit") or ""))
            yield metric, extra, float(value) * factor


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _selector(name: str, labels: dict[str, str]) -> str:
    inner = ",".join(f'{key}="{_escaped(value)}"' for key, value in sorted(labels.items()))
    return f"{name}{{{inner}}}"


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _header(metric: Metric, family: str, kind: str) -> str:
    return f"# HELP {family} {metric.help}\n# TYPE {family} {kind}\n"


def openmetrics(found: Families) -> Iterator[str]:
    """Pieces of an OpenMetrics document with timestamps in seconds, ``# EOF`` at its end."""
    for metric in sorted(found, key=lambda each: each.name):
        yield _header(metric, metric.family, metric.kind)
        unit = next((unit for unit in _UNITS if metric.family.endswith("_" + unit)), None)
        if unit and metric.kind != "info":
            yield f"# UNIT {metric.family} {unit}\n"
        for samples in found[metric]:
            prefix = _selector(metric.name, samples.labels) + " "
            pairs = zip(samples.values, samples.time_ms, strict=True)
            yield "".join(f"{prefix}{_number(value)} {at // 1000}.{at % 1000:03d}\n" for value, at in pairs)
    yield "# EOF\n"


def exposition(found: Families) -> Iterator[str]:
    """The last sample of each series in Prometheus' text format, which ``promtool check metrics`` reads."""
    for metric in sorted(found, key=lambda each: each.name):
        yield _header(metric, metric.name, "gauge" if metric.kind == "info" else metric.kind)
        for samples in found[metric]:
            yield f"{_selector(metric.name, samples.labels)} {_number(samples.values[-1])}\n"
