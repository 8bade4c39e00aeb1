# SPDX-License-Identifier: Apache-2.0
"""Makes columns of the axes of many runs; a column has one type in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from howdah.record.model import Scalar
from howdah.record.result import Run
from howdah.record.table import AXES, Axes, axes_of

EXPERIMENT = "experiment"
# Wider than in the files, each of which has the few texts of one run: 16 bits end at 32 767 names of runs.
TEXT = pa.dictionary(pa.int32(), pa.string())


def run_axes(run: Run) -> Axes:
    """Axes of a run that has a plan."""
    if run.plan is None:
        return Axes({"run": run.name, "kernel": run.kernel, "algorithm": run.algorithm, "repetition": run.repetition})
    return axes_of(run.plan, run.release)


def own_axes(run: Run) -> dict[str, Scalar]:
    """Axes that distinguish a run's rows from others', the experiment first."""
    return {EXPERIMENT: run.experiment, **run_axes(run).run}


def axis_types(runs: Iterable[Run]) -> dict[str, pa.DataType]:
    """Every axis of the runs, the experiment first, and the type that holds its values in all of them."""
    return types_in(own_axes(run) for run in runs)


def types_in(axes: Iterable[dict[str, Scalar]]) -> dict[str, pa.DataType]:
    """As ``axis_types``, from the axes of each run."""
    values: dict[str, list[Any]] = {name: [] for name in (EXPERIMENT, *AXES)}
    for each in axes:
        for name, value in each.items():
            values.setdefault(name, []).append(value)
    return {name: type_of(found) for name, found in values.items()}


def type_of(values: Sequence[Any]) -> pa.DataType:
    """The narrowest type for all of them; values of different kinds are texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.bool_()
    if kinds == {int}:
        return pa.int64()
    if kinds and kinds <= {int, float}:
        return pa.float64()
    return TEXT if kinds <= {str} else pa.string()


def column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """An array of values of one kind, or of their texts."""
    kind = kind or type_of(values)
    if kind == pa.string() or kind == TEXT:
        texts = pa.array([None if value is None else str(value) for value in values], pa.string())
        return texts if kind == pa.string() else texts.dictionary_encode().cast(TEXT)
    return pa.array(values, kind)


def table(
    rows: Sequence[Mapping[str, Scalar]], types: dict[str, pa.DataType], units: dict[str, str] | None = None
) -> pa.Table:
    """A table with the columns of ``types`` first, and then all others that a row has, in the order they are met."""
    names = dict.fromkeys([*types, *(name for row in rows for name in row)])
    fields, arrays = [], []
    for name in names:
        array = column([row.get(name) for row in rows], types.get(name))
        unit = (units or {}).get(name)
        fields.append(pa.field(name, array.type, metadata={"unit": unit} if unit else None))
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
