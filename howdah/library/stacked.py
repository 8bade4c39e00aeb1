# SPDX-License-Identifier: Apache-2.0
"""Concatenates tables with rows of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.library.axis import TEXT
from howdah.library.result import RUN


def positions(table: pa.Table, runs: Iterable[str]) -> npt.NDArray[np.int64]:
    """For each row the place of its run among ``runs``; -1 for a run that is not there."""
    column = table[RUN].combine_chunks() if table.num_rows else pa.array([], table[RUN].type)
    place = {run: number for number, run in enumerate(runs)}
    of_code = np.array([*(place.get(run, -1) for run in column.dictionary.to_pylist()), -1], dtype=np.int64)
    found: npt.NDArray[np.int64] = of_code[column.indices.fill_null(-1).to_numpy()]
    return found


def of_runs(table: pa.Table, runs: Iterable[str]) -> pa.Table:
    """Select the rows of some runs."""
    return table.filter(pa.array(positions(table, runs) >= 0))


def stacked(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows, with the columns of a schema; null where a table lacks one. Raises ValueError where a column's type in
    the schema cannot hold its values unchanged."""
    tables = [
        pa.Table.from_arrays([_column(table, field) for field in schema], schema=schema)
        for table in tables
        if table.num_rows
    ]
    if not tables:
        return schema.empty_table()
    table = pa.concat_tables(tables)
    return table.unify_dictionaries().combine_chunks() if len(tables) > 1 else table


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table[field.name]
    if column.type == field.type:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), field.type)
    if (column.type, field.type) in ((pa.int64(), pa.float64()), (pa.int64(), pa.string()), (TEXT, pa.string())):
        return column.cast(field.type)  # raises ValueError for an integer that no float is
    raise ValueError(f"{field.name} is of type {column.type}, not {field.type}")
