# SPDX-License-Identifier: Apache-2.0
"""The overview on a page with many runs: statistics over all, and a row per flow that a script shows on request.

The rows are columns of codes and numbers, some hundred bytes a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from howdah.metric import Metric, known_metrics
from howdah.number import between, significant
from howdah.record.result import Experiment, Run
from howdah.record.table import axis_text
from howdah.record.table import swept as swept_fields
from howdah.report.distribution import Distribution, distribution_drawing
from howdah.report.plot.swept import field_name, swept
from howdah.report.table import cause_text
from howdah.report.template import script_json
from howdah.report.variant import Variants

_CAUSE = "exit_cause"
_EXIT = "exit_cwnd_bdp"
_DIGITS = 5
_SHARES = (0.05, 0.95)  # what lies between is the range of a statistic
_NONE = ""


@dataclass(frozen=True)
class StatisticsLine:
    """Statistics of one flow of a variant over all runs that count. ``cells`` has the median and the 5–95 % range of
    each measure, both empty if no run has it. ``variant`` is an index."""

    variant: int
    label: str
    flow: str
    runs: int
    cells: list[tuple[str, str]]
    causes: list[tuple[str, int]]


@dataclass(frozen=True)
class Overview:
    """The overview. ``broken`` counts the runs by failed check; ``exits`` is a drawing, wide and narrow."""

    runs: int
    measures: list[Metric]
    lines: list[StatisticsLine]
    broken: list[tuple[str, int]]
    exits: tuple[Markup, Markup] | None
    rows: Markup


@dataclass
class _Codes:
    """The distinct words in order of appearance, and for each row the index of its word."""

    place: dict[str, int] = field(default_factory=dict)
    of_row: list[int] = field(default_factory=list)

    def add(self, word: str) -> None:
        self.of_row.append(self.place.setdefault(word, len(self.place)))


def overview(experiments: list[Experiment], variants: Variants) -> Overview:
    """The overview of runs that have only their main measures (``with_main_measures``)."""
    runs = [run for experiment in experiments for run in experiment.runs]
    metrics = known_metrics()
    rows = [(run, flow, found) for run in runs for flow, found in flows_of(run)]
    present = {name for _, _, found in rows for name, value in found.items() if _number(value) is not None}
    measures = [metric for name, metric in metrics.items() if name in present]
    lines = _statistics(rows, measures, variants)
    exits = _drawn(exit_distribution(experiments, variants), variants)
    broken = Counter(word for run in runs if not run.counts for word in _why(run))
    return Overview(
        len(runs), measures, lines, broken.most_common(), exits, script_json(_coded(rows, measures, variants))
    )


MetricValue = int | float | str | None
_Row = tuple[Run, str, dict[str, MetricValue]]


@dataclass(frozen=True)
class CodedField:
    """An axis of the rows: its values in order, and for each row the index of its value."""

    name: str
    label: str
    values: list[str]
    at: list[int]


@dataclass(frozen=True)
class CodedMeasure:
    name: str
    header: str
    unit: str


@dataclass(frozen=True)
class CodedRows:
    """The rows as columns. Words are indices into the lists of CodedOverview; ``values`` has one column a measure."""

    run: list[str]
    counts: list[int]
    verdict: list[int]
    why: list[int]
    cause: list[int]
    values: list[list[float | int | None]]


@dataclass(frozen=True)
class CodedOverview:
    """The data that ``reports/js/many.js`` reads."""

    axes: list[CodedField]
    measures: list[CodedMeasure]
    verdicts: list[str]
    whys: list[str]
    causes: list[str]
    rows: CodedRows


def flows_of(run: Run) -> Iterator[tuple[str, dict[str, MetricValue]]]:
    """Yield name and measures of each flow and group of a run; the first also has the measures of the whole run."""
    by_flow: dict[str, dict[str, MetricValue]] = {}
    for row in run.metrics:
        by_flow.setdefault(row.of, {})[row.metric] = row.value
    whole = by_flow.pop("", {})
    names = {str(flow.id): flow.name for flow in run.plan.flows} if run.plan else {}
    for number, (key, found) in enumerate((by_flow or {"": {}}).items()):
        yield names.get(key, key), {**(whole if number == 0 else {}), **found}


def _number(value: MetricValue) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _why(run: Run) -> list[str]:
    return [check.name for check in run.broken] or [run.problem or run.verdict_name]


def _statistics(rows: list[_Row], measures: list[Metric], variants: Variants) -> list[StatisticsLine]:
    numbers = {variant.key: number for number, variant in enumerate(variants.all)}
    of_line: dict[tuple[int, str], list[dict[str, MetricValue]]] = {}
    for run, flow, found in rows:
        if run.counts:
            of_line.setdefault((numbers[variants.key(run)], flow), []).append(found)
    lines = []
    for (number, flow), mine in sorted(of_line.items(), key=lambda item: item[0][0]):
        causes = Counter(cause_text(str(found[_CAUSE])) for found in mine if found.get(_CAUSE))
        numbers_of = ([_number(found.get(m.name)) for found in mine] for m in measures)
        cells = [
            _cell([value * m.factor for value in values if value is not None])
            for m, values in zip(measures, numbers_of, strict=True)
        ]
        lines.append(StatisticsLine(number, variants.all[number].label, flow, len(mine), cells, causes.most_common()))
    return lines


def exit_distribution(experiments: list[Experiment], variants: Variants) -> Distribution | None:
    """The distribution of cwnd / BDP at the exits of all runs that count; None if no flow has an exit."""
    values: dict[str, list[float]] = {}
    for run in (run for experiment in experiments for run in experiment.runs if run.counts):
        own = values.setdefault(variants.key(run), [])
        own += [float(row.number) for row in run.metrics if row.metric == _EXIT and row.number is not None]
    curves = [
        (number, variant.label, sorted(values[variant.key]))
        for number, variant in enumerate(variants.all)
        if values.get(variant.key)
    ]
    return Distribution("", "the runs that count", "exit cwnd / BDP", False, curves, "flows") if curves else None


def _drawn(shown: Distribution | None, variants: Variants) -> tuple[Markup, Markup] | None:
    if shown is None:
        return None
    wide, narrow = (Markup(distribution_drawing(shown, variants, narrow=each)) for each in (False, True))
    return wide, narrow


def _cell(values: list[float]) -> tuple[str, str]:
    if not values:
        return "", ""
    low, middle, high = (float(each) for each in np.quantile(values, (_SHARES[0], 0.5, _SHARES[1])))
    return significant(middle), between(low, high) if low != high else ""


def _coded(rows: list[_Row], measures: list[Metric], variants: Variants) -> CodedOverview:
    fields = dict.fromkeys(name for run, _, _ in rows for name in swept_fields(run.axes))
    variant, flows, verdicts, whys, causes = _Codes(), _Codes(), _Codes(), _Codes(), _Codes()
    repetition = _Codes()
    axes = {name: _Codes() for name in fields}
    for run, flow, found in rows:
        variant.add(variants.key(run))
        flows.add(flow)
        repetition.add(str(run.repetition))
        verdicts.add(run.verdict_name)
        whys.add(_NONE if run.counts else ", ".join(_why(run)))
        causes.add(cause_text(str(found[_CAUSE])) if found.get(_CAUSE) else _NONE)
        for name, codes in axes.items():
            codes.add(axis_text(run.axes.get(name, "—")))
    columns = {"algorithm": variant, "flow": flows, **axes, "repetition": repetition}
    return CodedOverview(
        [_axis(name, codes) for name, codes in columns.items() if len(codes.place) > 1],
        [CodedMeasure(each.name, each.header, each.shown) for each in measures],
        list(verdicts.place),
        list(whys.place),
        list(causes.place),
        CodedRows(
            [run.name for run, _, _ in rows],
            [int(run.counts) for run, _, _ in rows],
            verdicts.of_row,
            whys.of_row,
            causes.of_row,
            [[_short(_number(found.get(m.name)), m.factor) for _, _, found in rows] for m in measures],
        ),
    )


def _axis(name: str, codes: _Codes) -> CodedField:
    words = list(codes.place)
    if name in ("algorithm", "flow"):
        return CodedField(name, name, words, codes.of_row)
    scale = swept(name, words)
    order = sorted(range(len(words)), key=lambda number: scale.position[words[number]])
    texts = [scale.texts[words[number]] for number in order]
    if len(set(texts)) < len(texts):
        texts = [words[number] for number in order]
        label = field_name(name)
    else:
        label = scale.label
    place = {number: rank for rank, number in enumerate(order)}
    return CodedField(name, label, texts, [place[code] for code in codes.of_row])


def _short(value: float | None, factor: float) -> float | int | None:
    if value is None:
        return None
    number = float(f"{value * factor:.{_DIGITS}g}")
    return int(number) if number.is_integer() else number
