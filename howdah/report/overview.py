# SPDX-License-Identifier: Apache-2.0
"""What a page of many runs says of them: statistics over all, and a row for each flow that its script shows by request.

The rows are columns of codes and numbers, some hundred bytes a run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from howdah.metric import Metric, known_metrics
from howdah.number import between, significant
from howdah.record.axis import axis_text
from howdah.record.axis import swept as swept_fields
from howdah.record.result import Experiment, Run
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
    """Statistics of one flow of a variant over all runs that count: for each measure the median, and below it a range;
    both are empty where no run has the measure. ``variant`` is its number."""

    variant: int
    label: str
    flow: str
    runs: int
    cells: list[tuple[str, str]]
    causes: list[tuple[str, int]]


@dataclass(frozen=True)
class Overview:
    """``broken`` has the checks that did not hold, with the number of runs; ``exits`` a drawing, wide and narrow."""

    runs: int
    measures: list[Metric]
    lines: list[StatisticsLine]
    broken: list[tuple[str, int]]
    exits: tuple[Markup, Markup] | None
    rows: Markup


@dataclass
class _Codes:
    """Distinct words in the order in which they come, and for each row the number of its word."""

    place: dict[str, int] = field(default_factory=dict)
    of_row: list[int] = field(default_factory=list)

    def add(self, word: str) -> None:
        self.of_row.append(self.place.setdefault(word, len(self.place)))


def overview(experiments: list[Experiment], variants: Variants) -> Overview:
    """Of runs that have their main measures alone (``with_main_measures``)."""
    runs = [run for experiment in experiments for run in experiment.runs]
    metrics = known_metrics()
    rows = [(run, flow, found) for run in runs for flow, found in flows_of(run)]
    present = {name for _, _, found in rows for name, value in found.items() if _is_number(value)}
    measures = [metric for name, metric in metrics.items() if name in present]
    lines = _statistics(rows, measures, variants)
    exits = _drawn(exit_distribution(experiments, variants), variants)
    broken = Counter(word for run in runs if not run.counts for word in _why(run))
    return Overview(
        len(runs), measures, lines, broken.most_common(), exits, script_json(_coded(rows, measures, variants))
    )


_Row = tuple[Run, str, dict[str, Any]]


def flows_of(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    """A run's flows and groups by name with their measures; the first has those of the whole run too."""
    by_flow: dict[str, dict[str, Any]] = {}
    for row in run.metrics:
        by_flow.setdefault(row.of, {})[row.metric] = row.value
    whole = by_flow.pop("", {})
    names = {str(flow.id): flow.name for flow in run.plan.flows} if run.plan else {}
    for number, (key, found) in enumerate((by_flow or {"": {}}).items()):
        yield names.get(key, key), {**(whole if number == 0 else {}), **found}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _why(run: Run) -> list[str]:
    return [check.name for check in run.broken] or [run.problem or run.verdict_name]


def _statistics(rows: list[_Row], measures: list[Metric], variants: Variants) -> list[StatisticsLine]:
    numbers = {variant.key: number for number, variant in enumerate(variants.all)}
    of_line: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for run, flow, found in rows:
        if run.counts:
            of_line.setdefault((numbers[variants.key(run)], flow), []).append(found)
    lines = []
    for (number, flow), mine in sorted(of_line.items(), key=lambda item: item[0][0]):
        causes = Counter(cause_text(str(found[_CAUSE])) for found in mine if found.get(_CAUSE))
        cells = [_cell([found[m.name] * m.factor for found in mine if _is_number(found.get(m.name))]) for m in measures]
        lines.append(StatisticsLine(number, variants.all[number].label, flow, len(mine), cells, causes.most_common()))
    return lines


def exit_distribution(experiments: list[Experiment], variants: Variants) -> Distribution | None:
    """The windows at the exits of all flows of the runs that count; None where no flow has one."""
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


def _coded(rows: list[_Row], measures: list[Metric], variants: Variants) -> dict[str, Any]:
    """What ``reports/js/many.js`` reads."""
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
    return {
        "axes": [_axis(name, codes) for name, codes in columns.items() if len(codes.place) > 1],
        "measures": [{"name": each.name, "header": each.header, "unit": each.shown} for each in measures],
        "verdicts": list(verdicts.place),
        "whys": list(whys.place),
        "causes": list(causes.place),
        "rows": {
            "run": [run.name for run, _, _ in rows],
            "counts": [int(run.counts) for run, _, _ in rows],
            "verdict": verdicts.of_row,
            "why": whys.of_row,
            "cause": causes.of_row,
            "values": [[_short(found.get(m.name), m.factor) for _, _, found in rows] for m in measures],
        },
    }


def _axis(name: str, codes: _Codes) -> dict[str, Any]:
    """An axis with its values in their order, and for each row the place of its value."""
    words = list(codes.place)
    if name in ("algorithm", "flow"):
        return {"name": name, "label": name, "values": words, "at": codes.of_row}
    scale = swept(name, words)
    order = sorted(range(len(words)), key=lambda number: scale.position[words[number]])
    texts = [scale.texts[words[number]] for number in order]
    if len(set(texts)) < len(texts):
        texts = [words[number] for number in order]
        label = field_name(name)
    else:
        label = scale.label
    place = {number: rank for rank, number in enumerate(order)}
    return {"name": name, "label": label, "values": texts, "at": [place[code] for code in codes.of_row]}


def _short(value: object, factor: float) -> float | int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    number = float(f"{value * factor:.{_DIGITS}g}")
    return int(number) if number.is_integer() else number
