# SPDX-License-Identifier: Apache-2.0
"""The result table as data: one row for each measure of each variant, in the units of metrics.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.metric import known_metrics
from howdah.record.axis import swept
from howdah.record.result import Experiment, Run, without_controls
from howdah.report.difference import difference_data
from howdah.report.ending import results
from howdah.report.found import found
from howdah.report.source import Group, TableSource
from howdah.report.subject import subjects
from howdah.report.transfer import completion_data


def result_data(experiments: list[Experiment]) -> dict[str, Any]:
    """``found`` in sentences, ``rows`` of the runs that count, ``differences`` of each side and the first,
    ``completion`` times by size, and ``left_out``: the runs that do not count, and why."""
    shown = without_controls(experiments)
    source = TableSource()
    rows = [row for experiment in shown for row in _rows(experiment, source)]
    left_out = [
        {"run": run.name, "verdict": run.verdict_name, "why": _why(run)}
        for experiment in shown
        for run in experiment.runs
        if not run.counts
    ]
    table = results(experiments, source)
    sentences = found(table)
    names = [experiment.name for experiment in experiments]
    return {
        "experiments": names,
        "found": sentences,
        "rows": rows,
        "differences": difference_data(subjects(table)),
        "completion": completion_data(experiments),
        "left_out": left_out,
    }


def _rows(experiment: Experiment, source: TableSource) -> list[dict[str, Any]]:
    summary = source.summary(experiment)
    known = known_metrics()
    placed: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    order = {name: number for number, name in enumerate(known)}
    runs = {(run.algorithm, run.kernel, run.point): run for run in reversed(experiment.runs)}

    def add(group: Group, metric: str, n: int, value: Mapping[str, Any]) -> None:
        run = runs.get((group.algorithm, group.kernel, group.point))
        about = known.get(metric)
        unit = None if about is None or about.is_text else about.unit
        row = {
            "experiment": group.experiment,
            "kernel": group.kernel,
            "algorithm": group.algorithm,
            "point": swept(run.axes) if run else {},
            "flow": _flow(run, group.flow),
            "metric": metric,
            "unit": unit,
            "n": n,
            **dict.fromkeys(("median", "mean", "low", "high", "counts")),
            **value,
        }
        number = int(group.flow) if group.flow.isdigit() else -1
        place = (group.point, group.algorithm, group.kernel, number, group.flow, order.get(metric, len(order)), metric)
        placed.append((place, row))

    for (group, metric), statistic in summary.statistics.items():
        low, high = statistic.interval or (None, None)
        numbers = {"median": statistic.median, "mean": statistic.mean, "low": low, "high": high}
        add(group, metric, statistic.count, numbers)
    for group, causes in summary.causes.items():
        add(group, "exit_cause", sum(causes.values()), {"counts": dict(causes)})
    return [row for _place, row in sorted(placed, key=lambda item: item[0])]


def _flow(run: Run | None, flow: str) -> str | None:
    """Its name, where it has one."""
    names = {str(each.id): each.name for each in run.plan.flows} if run and run.plan else {}
    return names.get(flow, flow) or None


def _why(run: Run) -> str:
    return ", ".join(check.name for check in run.broken) or run.problem or ""
