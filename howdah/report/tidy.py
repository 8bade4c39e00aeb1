# SPDX-License-Identifier: Apache-2.0
"""The results of experiments as data for ``--json``, in the units of metrics.json."""

from __future__ import annotations

from pydantic import Field

from howdah.measure.statistics import Statistic
from howdah.metric import known_metrics
from howdah.record.model import FilePart, Scalar
from howdah.record.result import Experiment, Run, without_controls
from howdah.record.table import swept
from howdah.report.difference import PairedRow, difference_data
from howdah.report.ending import results
from howdah.report.findings import findings
from howdah.report.source import Group, TableSource
from howdah.report.subject import subjects_of
from howdah.report.transfer import CompletionRow, completion_data


class ResultRow(FilePart):
    """One measure of one variant over its repetitions; ``flow`` is null for a measure of whole runs."""

    experiment: str
    kernel: str
    algorithm: str
    point: dict[str, Scalar] = Field(description="the swept fields that tell this row from others, without algorithm")
    flow: str | None = Field(description="name of the flow or of the group")
    metric: str = Field(description="docs/measures.md")
    unit: str | None = Field(description="as in metrics.json")
    n: int = Field(description="repetitions that have a value")
    median: float | None = Field(description="null for a measure in words")
    mean: float | None
    low: float | None = Field(description="95 % interval of the mean; null for one value or equal values")
    high: float | None
    counts: dict[str, int] | None = Field(description="how often each word came up; null for a number")


class LeftOut(FilePart):
    run: str
    verdict: str
    why: str


class ResultData(FilePart):
    """The results of some experiments."""

    experiments: list[str]
    found: list[str] = Field(description="what was found, in sentences, as the page begins with")
    rows: list[ResultRow]
    differences: list[PairedRow] = Field(description="each side against the first, at each point")
    completion: list[CompletionRow] = Field(description="how long transfers took, by their size")
    left_out: list[LeftOut] = Field(description="runs that enter no row")


def result_data(experiments: list[Experiment]) -> ResultData:
    """The rows of the runs that count, and the excluded runs with their reasons."""
    shown = without_controls(experiments)
    source = TableSource()
    table = results(experiments, source)
    return ResultData(
        experiments=[experiment.name for experiment in experiments],
        found=findings(table),
        rows=[row for experiment in shown for row in _rows(experiment, source)],
        differences=difference_data(subjects_of(table)),
        completion=completion_data(experiments),
        left_out=[
            LeftOut(run=run.name, verdict=run.verdict_name, why=_why(run))
            for experiment in shown
            for run in experiment.runs
            if not run.counts
        ],
    )


def _rows(experiment: Experiment, source: TableSource) -> list[ResultRow]:
    summary = source.summary(experiment)
    known = known_metrics()
    order = {name: number for number, name in enumerate(known)}
    runs = {(run.algorithm, run.kernel, run.point): run for run in reversed(experiment.runs)}

    def row(group: Group, metric: str, n: int, statistic: Statistic | None, counts: dict[str, int] | None) -> ResultRow:
        run = runs.get((group.algorithm, group.kernel, group.point))
        about = known.get(metric)
        low, high = (statistic.interval if statistic else None) or (None, None)
        return ResultRow(
            experiment=group.experiment,
            kernel=group.kernel,
            algorithm=group.algorithm,
            point=swept(run.axes) if run else {},
            flow=_flow(run, group.flow),
            metric=metric,
            unit=None if about is None or about.is_text else about.unit,
            n=n,
            median=statistic.median if statistic else None,
            mean=statistic.mean if statistic else None,
            low=low,
            high=high,
            counts=counts,
        )

    def place(group: Group, metric: str) -> tuple[str, str, str, int, str, int, str]:
        number = int(group.flow) if group.flow.isdigit() else -1
        return group.point, group.algorithm, group.kernel, number, group.flow, order.get(metric, len(order)), metric

    found = {place(*of): row(*of, each.count, each, None) for of, each in summary.statistics.items()}
    for group, causes in summary.causes.items():
        found[place(group, "exit_cause")] = row(group, "exit_cause", sum(causes.values()), None, dict(causes))
    return [found[each] for each in sorted(found)]


def _flow(run: Run | None, flow: str) -> str | None:
    """The name of the flow or group, or None for the whole run."""
    names = {str(each.id): each.name for each in run.plan.flows} if run and run.plan else {}
    return names.get(flow, flow) or None


def _why(run: Run) -> str:
    return ", ".join(check.name for check in run.broken) or run.problem or ""
