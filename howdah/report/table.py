# SPDX-License-Identifier: Apache-2.0
"""The result table: variants and their flows as rows, measures as columns, repetitions combined; and cautions about it,
from plans and claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from howdah.errors import ProfileError
from howdah.held import NOTABLE_SHARE
from howdah.measure.statistics import FEW, Statistic
from howdah.metric import known_metrics
from howdah.number import between, significant
from howdah.plan.caution import plan_cautions
from howdah.plan.path import Path
from howdah.plan.plan import BACKGROUND, Flow
from howdah.profile.experiment import sections_of_experiment
from howdah.record.model import Scalar
from howdah.record.result import Experiment, Run
from howdah.report.event import cause_words
from howdah.report.repeated import DONE, DONE_MEDIAN, Repeated, repeated
from howdah.report.results import is_many
from howdah.report.source import Group, Summary
from howdah.report.variant import Variant, Variants

_NONE_SEEN = "none seen"
_EXIT = "exit_time_s"
_FIRST = (DONE, DONE_MEDIAN)


@dataclass(frozen=True)
class MeasureColumn:
    """A column. ``factor`` converts the measure to the unit shown."""

    name: str
    header: str
    unit: str
    factor: float
    meaning: str
    main: bool = True


@dataclass(frozen=True)
class TableCell:
    """One cell: its text, interval and note; ``rows`` is the number of flow rows it spans. ``value`` and ``spread`` are
    its numbers in the unit shown."""

    text: str
    interval: str = ""
    note: str = ""
    rows: int = 1
    value: float | None = None
    spread: tuple[float, float] | None = None


@dataclass
class TableRow:
    """One flow or group of a variant. The first row of a variant carries the variant's cells.

    ``planned`` is the flow, or one of the group, from the plan; ``of`` has its values by repetition.
    """

    flow: str
    cells: list[TableCell | None]
    planned: Flow | None = None
    of: Repeated = field(default_factory=Repeated)


@dataclass
class Block:
    """One variant at one sweep point. ``excluded`` lists (run, verdict, why) for the runs that do not count.

    ``axes`` is the sweep point, ``path`` the path there, and ``whole`` has the values of whole runs by repetition.
    """

    variant: Variant
    count: int
    total: int
    rows: list[TableRow] = field(default_factory=list)
    excluded: list[tuple[str, str, str]] = field(default_factory=list)
    axes: dict[str, Scalar] = field(default_factory=dict)
    path: Path | None = None
    whole: Repeated = field(default_factory=Repeated)


@dataclass
class Table:
    """All results. ``points`` has (sweep point, its blocks), ``models`` the simulators that made some of them, and
    ``cautions`` sentences that qualify the comparison (caution.py)."""

    measures: list[MeasureColumn]
    points: list[tuple[str, list[Block]]]
    models: tuple[str, ...] = ()
    all_modelled: bool = False
    cautions: list[str] = field(default_factory=list)

    @property
    def spread_words(self) -> str:
        """The meaning of the interval below each median, in words; empty if no block has repetitions."""
        counts = {block.count for _, blocks in self.points for block in blocks if block.count > 1}
        few = "least and largest" if any(count < FEW for count in counts) else ""
        many = "the 95 % interval of the median" if any(count >= FEW for count in counts) else ""
        if few and many:
            few += f" of fewer than {FEW} repetitions"
            many += " of more"
        return ", ".join(filter(None, (few, many)))

    @property
    def left_out(self) -> list[tuple[str, str, str]]:
        """Run, verdict and reason of every run that does not count."""
        return [each for _, blocks in self.points for block in blocks for each in block.excluded]


def columns(summaries: list[Summary]) -> list[MeasureColumn]:
    """The measures that have a value, in the order of ``reports/measures.yaml``, unknown ones last.

    ``table: hidden`` leaves a measure out. ``instead`` makes it a main measure if a flow has no exit, even with only a
    reason for its absence. ``notable`` leaves it out if all its values are too small. If transfers have a size,
    completion time comes first.
    """
    present = {measure for summary in summaries for _, measure in summary.statistics}
    if any(summary.causes for summary in summaries):
        present.add("exit_cause")
    metrics = list(known_metrics().values())
    absent = {measure for summary in summaries for _, measure in summary.absent}
    main = ("main", "instead") if _EXIT in absent else ("main",)
    present |= absent & {metric.name for metric in metrics if metric.table == "instead" and _EXIT in absent}
    present -= {metric.name for metric in metrics if metric.table == "hidden"}
    present -= {metric.name for metric in metrics if metric.table == "notable"} - _notable(summaries)
    known = [
        MeasureColumn(each.name, each.header, each.shown, each.factor, each.meaning, each.table in main)
        for each in metrics
    ]
    known.sort(key=lambda measure: measure.name not in _FIRST)
    names = {measure.name for measure in known}
    others = [
        MeasureColumn(name, name.replace("_", " "), "", 1.0, name, main=False) for name in sorted(present - names)
    ]
    return [measure for measure in known if measure.name in present] + others


def _notable(summaries: list[Summary]) -> set[str]:
    """The measures that exceed 5 % (shares of a flow's time) or 0 (all others) in at least one group."""
    known = known_metrics()
    return {
        name
        for summary in summaries
        for (_, name), statistic in summary.statistics.items()
        if name in known and statistic.median > (NOTABLE_SHARE if known[name].unit == "ratio" else 0)
    }


def table(experiments: list[Experiment], summaries: list[Summary], variants: Variants) -> Table:
    """The table over all sweep points of the experiments."""
    shown = _in_readable_units(columns(summaries), summaries)
    merged = Summary()
    for summary in summaries:
        merged.statistics.update(summary.statistics)
        merged.causes.update(summary.causes)
        merged.absent.update(summary.absent)
    runs = [run for experiment in experiments for run in experiment.runs]
    # Points, and of each its variants' runs and groups: every run and group is looked at once.
    of_point: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        of_point.setdefault(run.point, {}).setdefault(variants.key(run), []).append(run)
    groups_of: dict[tuple[str, str], set[Group]] = {}
    for group in dict.fromkeys([*(key[0] for key in merged.statistics), *merged.causes]):
        variant_key = variants.of(group.algorithm, group.kernel, group.experiment)
        groups_of.setdefault((group.point, variant_key), set()).add(group)
    result: list[tuple[str, list[Block]]] = []
    for point, of_variant in of_point.items():
        blocks = []
        for variant in variants.all:
            mine = of_variant.get(variant.key)
            if not mine:
                continue
            block = Block(variant, sum(run.counts for run in mine), len(mine))
            block.excluded = [(run.name, run.verdict_name, _why(run)) for run in mine if not run.counts]
            groups = groups_of.get((point, variant.key), set())
            plans = [run.plan for run in mine if run.plan]
            flows = {flow.group or str(flow.id): flow for plan in plans for flow in plan.flows}
            said = repeated(mine)
            block.axes = mine[0].place
            block.path = plans[0].path if plans else None
            block.whole = said.get("", block.whole)
            block.rows = _rows(shown, merged, groups, flows, said)
            blocks.append(block)
        result.append((point, blocks))
    modelled = [run.plan.traits.label for run in runs if run.plan and run.plan.traits.model]
    models = tuple(dict.fromkeys(modelled))
    return Table(shown, result, models, all_modelled=len(modelled) == len(runs), cautions=cautions(experiments))


def _why(run: Run) -> str:
    broken = [check.name for check in run.broken]
    unknown = [f"{check.name} (not made)" for check in run.checks if check.ok is None]
    return ", ".join(broken or unknown) or run.problem or ""


def _in_readable_units(measures: list[MeasureColumn], summaries: list[Summary]) -> list[MeasureColumn]:
    """Show kB as MB if the values are large."""
    result = []
    for measure in measures:
        values = [
            s.median for summary in summaries for (_, name), s in summary.statistics.items() if name == measure.name
        ]
        if measure.unit == "kB" and values and max(values) * measure.factor >= 10_000:
            measure = replace(measure, unit="MB", factor=measure.factor / 1000)
        result.append(measure)
    return result


def _rows(
    measures: list[MeasureColumn],
    summary: Summary,
    groups: set[Group],
    flows: dict[str, Flow],
    said: dict[str, Repeated],
) -> list[TableRow]:
    by_flow = {group.flow: group for group in groups}
    names = sorted(flows, key=lambda name: _order(name, flows[name])) or [""]
    whole = {
        measure.name for measure in measures if "" in by_flow and (by_flow[""], measure.name) in summary.statistics
    }
    rows = []
    for index, name in enumerate(names):
        cells: list[TableCell | None] = []
        for measure in measures:
            if measure.name in whole:
                group = by_flow[""]
                cells.append(_cell(measure, summary, group, len(names)) if index == 0 else None)
            else:
                found = by_flow.get(name)
                cells.append(_cell(measure, summary, found, 1) if found else TableCell("—", note="not measured"))
        flow = flows.get(name)
        title = "" if flow is None else flow.group or flow.name
        rows.append(TableRow(title, cells, flow, said.get(name, Repeated())))
    return rows


def _order(name: str, flow: Flow) -> tuple[bool, bool, int]:
    """The sort key: flows by number, then groups; background traffic comes last."""
    return flow.role == BACKGROUND, not name.isdigit(), int(name) if name.isdigit() else 0


def _cell(measure: MeasureColumn, summary: Summary, group: Group, rows: int) -> TableCell:
    if measure.name == "exit_cause":
        causes = summary.causes.get(group)
        absent = summary.absent.get((group, measure.name), [])
        if not causes:
            return TableCell("—", note=_reasons(absent) or "no exit seen")
        causes = causes + Counter({_NONE_SEEN: len(absent)})
        only = len(causes) == 1
        text = ", ".join(
            cause_text(cause) if only else f"{cause_text(cause)} ×{count}" for cause, count in causes.most_common()
        )
        return TableCell(text, note="; ".join(cause_words(cause) for cause in causes if cause != _NONE_SEEN))
    statistic = summary.statistics.get((group, measure.name))
    absent = summary.absent.get((group, measure.name), [])
    if statistic is None:
        return TableCell("—", note=_reasons(absent) or "not measured", rows=rows)
    cell = number_cell(measure, statistic, rows)
    if absent:
        some = f"in {statistic.count} of {statistic.count + len(absent)} repetitions; otherwise {_reasons(absent)}"
        cell = replace(cell, note=some, interval=f"{cell.interval} n={statistic.count}".strip())
    return cell


def _reasons(absent: list[str]) -> str:
    return "; ".join(dict.fromkeys(reason for reason in absent if reason))


def number_cell(measure: MeasureColumn, statistic: Statistic, rows: int = 1) -> TableCell:
    """A median with its spread, or with the reason why it has none."""
    value = statistic.median * measure.factor
    spread = statistic.about_median
    if spread is None:
        note = "n = 1" if statistic.count == 1 else f"the same in all {statistic.count} repetitions"
        return TableCell(significant(value), note=note, rows=rows, value=value)
    note = f"n = {statistic.count}; below: 95 % interval of the median"
    if spread.few:
        all_of_them = ", ".join(significant(each * measure.factor) for each in statistic.values)
        note = f"{statistic.count} repetitions: {all_of_them}"
    ends = spread.low * measure.factor, spread.high * measure.factor
    return TableCell(significant(value), between(*ends), note, rows, value, ends)


def cause_text(cause: str) -> str:
    """An exit cause as words: ``ack-train`` becomes ``ACK train``."""
    words = cause.replace("_", " ").replace("-", " ")
    names = {word.lower(): word for word in ("ACK", "RTO", "RTT", "SEARCH", "BBR", "HyStart", "CSS")}
    return " ".join(names.get(word.lower(), word) for word in words.split())


def cautions(experiments: list[Experiment]) -> list[str]:
    """Side effects of the algorithm, an initial window without effect, and claims on a metric that no run has."""
    found = plan_cautions([run.plan for experiment in experiments for run in experiment.runs if run.plan])
    if not is_many(experiments):  # of many only some measures are read
        found += [sentence for experiment in experiments for sentence in _claims(experiment)]
    return found


def _claims(experiment: Experiment) -> Iterator[str]:
    try:
        claims = sections_of_experiment(experiment.path).claims
    except ProfileError:
        return
    runs = [run for run in experiment.runs if run.counts]
    measured = {row.metric for run in runs for row in run.metrics} if claims else set()
    measured |= {name for run in runs for name in run.connections().metrics} if claims else set()
    for claim in claims if runs else []:
        if claim.value is not None and claim.value.metric not in measured:
            yield f"The claim {claim.id} cannot be judged: no run has {claim.value.metric}."
