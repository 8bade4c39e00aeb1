# SPDX-License-Identifier: Apache-2.0
"""What tells the rows of one run from those of another: the columns that every table of a run carries beside its own.

They are the same that a row of metrics.json has: the run, what it was made on and with, and a column for each swept
field, under the name it has in the profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.plan.plan import Plan
from howdah.record.model import Scalar

TEXT = pa.dictionary(pa.int16(), pa.string())
AXES = ("run", "engine", "kernel", "algorithm", "receiver", "repetition")  # of every run; swept fields follow
FLOW_NAME = "flow_name"  # of tables that have the column flow
# Swept fields that are an axis of every run by another name.
_SAME = {*AXES, "algorithms", "flows.algorithm", "repetitions"}


@dataclass(frozen=True)
class Axes:
    """``run`` is what all rows share, ``flows`` what is otherwise for the rows of a flow: its name, its algorithm, its
    receiver's behaviour or stack."""

    run: dict[str, Scalar]
    flows: dict[int, dict[str, str]] = field(default_factory=dict)


def axes_of(plan: Plan, kernel: str | None) -> Axes:
    """``kernel`` is the release that the guest reported."""
    shared: dict[str, Scalar] = {
        "run": plan.run,
        "engine": plan.engine,
        "kernel": kernel or plan.kernel,
        "algorithm": plan.algorithm,
        "receiver": plan.receiver,
        "repetition": plan.repetition,
    }
    shared |= {name: _scalar(value) for name, value in swept(plan.axes).items()}
    flows = {
        flow.id: {FLOW_NAME: flow.name, "algorithm": flow.algorithm, "receiver": flow.receiver_name}
        for flow in plan.flows
    }
    return Axes(shared, flows)


def swept(axes: dict[str, Scalar]) -> dict[str, Scalar]:
    """Those swept fields of a run that are no axis of every run."""
    return {name: value for name, value in axes.items() if name not in _SAME}


def _scalar(value: Any) -> Scalar:
    return value if value is None or isinstance(value, str | int | float | bool) else json.dumps(value)


def with_axes(table: pa.Table, axes: Axes) -> pa.Table:
    """The table with a column for each axis behind its own; one that it has already stays as it is."""
    columns = {name: _constant(value, table.num_rows) for name, value in axes.run.items()}
    if "flow" in table.column_names and axes.flows:
        numbers = table.column("flow").to_numpy()
        columns |= {name: _by_flow(name, numbers, axes) for name in (FLOW_NAME, "algorithm", "receiver")}
    for name, column in columns.items():
        if name not in table.column_names:
            table = table.append_column(name, column)
    return table


def _constant(value: Scalar, rows: int) -> pa.Array:
    if value is None:
        return pa.nulls(rows, TEXT)
    if isinstance(value, str):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, dtype=np.int16)), pa.array([value], pa.string()))
    kind = pa.bool_() if isinstance(value, bool) else pa.int64() if isinstance(value, int) else pa.float64()
    return pa.repeat(pa.scalar(value, kind), rows)


def _by_flow(name: str, numbers: Any, axes: Axes) -> pa.Array:
    """A text for each row by its flow; null for a flow that the plan does not have."""
    texts = sorted({flow[name] for flow in axes.flows.values()})
    place = {text: number for number, text in enumerate(texts)}
    kind = np.int16 if len(texts) <= np.iinfo(np.int16).max else np.int32
    code = np.full(max([*axes.flows, int(numbers.max(initial=0))]) + 1, -1, dtype=kind)
    for number, flow in axes.flows.items():
        code[number] = place[flow[name]]
    codes = code[numbers]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(texts, pa.string()))


def axis_text(value: Any) -> str:
    """A value of an axis as a plan's ``axes`` hold it, in one spelling for true and false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def point_text(at: Mapping[str, Any]) -> str:
    """A point in words: ``path.rtt = 100 ms, path.rate = 5 Mbit/s``."""
    return ", ".join(f"{axis} = {value}" for axis, value in at.items())
