# SPDX-License-Identifier: Apache-2.0
"""Write tidy tables as files: one CSV or Parquet file per table, with the rows of all runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from howdah.errors import UsageError
from howdah.library.data import Data
from howdah.library.rows import Rows
from howdah.record.directory import in_its_place

Format = Literal["csv", "parquet"]


def write_tables(
    data: Data,
    directory: Path,
    form: Format,
    only: list[str] | None = None,
    tell: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Write runs, metrics, exits, checks and every table that a run has, or ``only`` the named ones; return the files.

    Rows are streamed, so little memory is used. Raises UsageError for a table that no run has.
    """
    known: dict[str, Callable[[], Rows]] = {
        "runs": lambda: data.runs,
        "metrics": lambda: data.metrics,
        "exits": lambda: data.exits,
        "checks": lambda: data.checks,
        "differences": lambda: data.differences,
        "completion": lambda: data.completion,
    }
    known |= {name: partial(data.table, name) for name in data.tables}
    for name in only or ():
        if name not in known:
            raise UsageError.unknown(f"no run has the table {name!r}", name, known, "the tables are")
    tables = {name: of() for name, of in known.items() if only is None or name in only}
    written = []
    for number, (name, rows) in enumerate(tables.items()):
        if tell is not None:
            tell("write tables", number, len(tables))
        written.append(_write(rows, directory / f"{name}.{form}", form))
    return written


def _write(rows: Rows, target: Path, form: Format) -> Path:
    reader = rows.batches()
    with in_its_place(target) as temporary, temporary.open("wb") as file:
        if form == "parquet":
            with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
                for batch in reader:
                    writer.write_batch(batch)
        else:
            plain = pa.schema([_plain(column) for column in reader.schema])
            with csv.CSVWriter(file, plain) as writer:
                for batch in reader:
                    writer.write_table(pa.Table.from_batches([batch]).cast(plain))
    return target


def _plain(column: pa.Field) -> pa.Field:
    """The column as a plain string column if it is a dictionary, which CSV cannot hold."""
    return column.with_type(pa.string()) if pa.types.is_dictionary(column.type) else column
