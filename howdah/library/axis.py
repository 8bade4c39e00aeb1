# SPDX-License-Identifier: Apache-2.0
"""Build table columns from the axes of many runs, each column with one type for all runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from howdah.record.model import Scalar
from howdah.record.result import Run
from howdah.record.table import AXES, Axes, axes_of

EXPERIMENT = "experiment"
# Wider than the 16-bit indices in a run's files, which end at 32 767 distinct texts, such as names of runs.
TEXT = pa.dictionary(pa.int32(), pa.string())


def run_axes(run: Run) -> Axes:
    """The run's axes: those of its plan; without a plan, what the experiment's index and its other runs tell."""
    if run.plan is None:
        return Axes({"run": run.name, "kernel": run.kernel, "algorithm": run.algorithm, "repetition": run.repetition})
    return axes_of(run.plan, run.release)


def own_axes(run: Run) -> dict[str, Scalar]:
    """The axes that distinguish a run's rows from those of other runs: the experiment, then the run's own axes."""
    return {EXPERIMENT: run.experiment, **run_axes(run).run}


def axis_types(runs: Iterable[Run]) -> dict[str, pa.DataType]:
    """Every axis of the runs, the experiment first, with the column type that holds its values in all runs."""
    return types_in(own_axes(run) for run in runs)


def types_in(axes: Iterable[dict[str, Scalar]]) -> dict[str, pa.DataType]:
    """The same as ``axis_types``, from one dictionary of axes per run."""
    values: dict[str, list[Any]] = {name: [] for name in (EXPERIMENT, *AXES)}
    for each in axes:
        for name, value in each.items():
            values.setdefault(name, []).append(value)
    return {name: type_of(found) for name, found in values.items()}


def type_of(values: Sequence[Any]) -> pa.DataType:
    """The narrowest Arrow type that holds all values; values of different kinds become strings."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    if kinds and kinds <= {int, float}:
        return pa.float64()
    return TEXT if kinds <= {str} else pa.string()


def column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """An Arrow array of the values, converted to strings if ``kind`` is a string type."""
    kind = kind or type_of(values)
    if kind == pa.string() or kind == TEXT:
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return texts if kind == pa.string() else texts.dictionary_encode().cast(TEXT)
    return pa.array(values, kind)


def table(
    rows: Sequence[Mapping[str, Scalar]], types: dict[str, pa.DataType], units: dict[str, str] | None = None
) -> pa.Table:
    """A table with the columns of ``types`` first, then every other column of any row, in order of first appearance."""
    names = dict.fromkeys([*types, *(name for row in rows for name in row)])
    fields, arrays = [], []
    for name in names:
        array = column([row.get(name) for row in rows], types.get(name))
        unit = (units or {}).get(name)
        fields.append(pa.field(name, array.type, metadata={"unit": unit} if unit else None))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
