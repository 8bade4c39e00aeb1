# SPDX-License-Identifier: Apache-2.0
"""A result table made by hand, for tests of what is said of it: no run, no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from howdah.record.metrics import MetricRow
from howdah.report.repeated import Repeated
from howdah.report.table import Block, Table, TableRow
from howdah.report.variant import Colour, Variant
from tests.experiment_factory import Scenario, make_plan

# Of one measure: the same in each repetition, one a repetition, or why there is none (a text that begins with "!").
Told = float | str | Sequence[float | str]


@dataclass(frozen=True)
class Made:
    """One flow or group of one variant at one point. ``says`` is what its runs say of it, ``run`` of the whole run."""

    algorithm: str
    says: Mapping[str, Told]
    at: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Told] = field(default_factory=dict)
    group: str | None = None
    name: str = "flow1"
    flow: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, Any] = field(default_factory=dict)
    repetitions: int = 1


def repeated(told: Mapping[str, Told], repetitions: int) -> Repeated:
    found = Repeated()
    for name, values in told.items():
        several = values if isinstance(values, Sequence) and not isinstance(values, str) else [values] * repetitions
        for number, value in enumerate(several):
            why = value[1:] if isinstance(value, str) and value.startswith("!") else None
            found.add(number, MetricRow(1, name, value if why is None else None, None, why=why))
    return found


def table_of(*made: Made) -> Table:
    """Flows of the same variant at the same point make one block."""
    points: dict[str, dict[str, Block]] = {}
    for each in made:
        plan = make_plan(Scenario(flows=1, flow_names=(each.name,)), each.algorithm, 0, {})
        variant = Variant(each.algorithm, each.algorithm, each.algorithm, Colour("#000000", "#ffffff", 0))
        blocks = points.setdefault(str(dict(each.at)), {})
        block = blocks.setdefault(each.algorithm, Block(variant, each.repetitions, each.repetitions))
        block.axes = dict(each.at)
        block.path = replace(plan.path, **each.path)
        if each.run:
            block.whole = repeated(each.run, each.repetitions)
        flow = replace(plan.flows[0], group=each.group, **each.flow)
        block.rows.append(TableRow(each.group or each.name, [], flow, repeated(each.says, each.repetitions)))
    return Table([], [(point, list(blocks.values())) for point, blocks in points.items()])
