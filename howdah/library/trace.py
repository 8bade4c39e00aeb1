# SPDX-License-Identifier: Apache-2.0
"""A table of many runs as one dataset, without reading it: only the footers of the files are looked at."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs

from howdah.errors import HowdahError
from howdah.library.axis import EXPERIMENT, TEXT, axis_types
from howdah.record.axis import FLOW_NAME
from howdah.record.digest import check
from howdah.record.result import Run
from howdah.record.schema import TABLES
from howdah.record.table import check_columns, opened


def tables_there(runs: list[Run]) -> list[str]:
    return [name for name in TABLES if any(run.directory.table(name).exists() for run in runs)]


def table_dataset(name: str, runs: list[Run]) -> ds.Dataset:
    """The table ``name`` of all runs that have it, with a column for each axis in front.

    Raises MismatchError for a file that is not the one that run.json recorded, and HowdahError where no run has it.
    """
    types = axis_types(runs)
    own: pa.Schema | None = None
    places: list[tuple[str, str]] = []
    for run in runs:
        file = run.directory.table(name)
        check(run.directory, run.provenance, [file])
        if not file.exists():
            continue
        with opened(file, name) as parquet:
            found = parquet.schema_arrow
            check_columns(found, name, file)
        own = own or found
        places.append((str(file), run.experiment))
    if own is None:
        why = "The collector was off, or the data were not kept (keep: first)."
        none = "No run counts; load(…, every=True) has those too."
        raise HowdahError(f"no run has the table {name!r}", hint=why if runs else none)
    schema = _schema(name, own, types)
    format_, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    parts = [
        format_.make_fragment(file, local, partition_expression=ds.field(EXPERIMENT) == _text(experiment))
        for file, experiment in places
    ]
    return ds.FileSystemDataset(parts, schema, format_, local)


def _schema(name: str, found: pa.Schema, types: dict[str, pa.DataType]) -> pa.Schema:
    own = [found.field(column) for column in TABLES[name].names]
    named = {column.name for column in own}
    axes = [pa.field(axis, kind) for axis, kind in types.items() if axis not in named]
    if "flow" in named and FLOW_NAME not in named:
        axes.append(pa.field(FLOW_NAME, TEXT))
    return pa.schema([*axes, *own])


def _text(value: str) -> ds.Expression:
    return ds.scalar(pa.array([value], pa.string()).dictionary_encode().cast(TEXT)[0])
