# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the tables of a run, and says whether two runs hold equal ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from howdah.errors import HowdahError
from howdah.run.directory import RunDirectory
from howdah.tables.schema import MACHINE_TABLES, SCHEMA_VERSION, TABLES

# Chosen for speed. Behind the delta encoding, level 3 is 2 % smaller; level 9 is 9 % smaller and takes 2.5 times as
# long.
_COMPRESSION_LEVEL = 1
_UNITS = (
    "_bits_per_second",
    "_bytes_per_second",
    "_packets",
    "_bytes",
    "_us",
    "_ns",
)


def unit_of(column: str) -> str | None:
    """The unit a column's name ends with (``packets``, ``bytes``, ``us`` …), or None for a label or a plain count."""
    for unit in _UNITS:
        if column.endswith(unit):
            return unit[1:]
    return None


def table_of(name: str, columns: dict[str, Any]) -> pa.Table:
    """A table with the schema of ``name``; ``columns`` maps every column to an array or list.

    Raises KeyError if a column of the schema is missing.
    """
    schema = TABLES[name]
    arrays = []
    for column in schema:
        values = columns[column.name]
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        arrays.append(array if array.type == column.type else array.cast(column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def write(directory: RunDirectory, name: str, table: pa.Table) -> None:
    """Write one table so that a reader sees either the old file or the whole new one."""
    schema = TABLES[name]
    if table.schema.remove_metadata() != schema:
        raise HowdahError(f"table {name} does not have the columns of its schema", where=str(directory.table(name)))
    units = {column: unit for column in schema.names if (unit := unit_of(column))}
    metadata = {"howdah.schema": str(SCHEMA_VERSION), "howdah.run": directory.name, "howdah.units": json.dumps(units)}
    path = directory.table(name)
    temporary = path.with_name(f".{path.name}.partial")
    # time_ns and sequence numbers grow in small steps; a dictionary of them would be as large as the column.
    texts = [column.name for column in schema if not pa.types.is_integer(column.type)]
    deltas = {column.name: "DELTA_BINARY_PACKED" for column in schema if column.type == pa.int64()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table.replace_schema_metadata(metadata),
            temporary,
            compression="zstd",
            compression_level=_COMPRESSION_LEVEL,
            use_dictionary=texts,
            column_encoding=deltas,
        )
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise HowdahError(f"cannot write table {name}: {error}", where=str(path), hint="is the disk full?") from error


def read(directory: RunDirectory, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read one table, checking its version. Raises HowdahError if it is missing, damaged or of another version."""
    path = directory.table(name)
    if name not in TABLES:
        raise HowdahError(f"there is no table {name!r}; the tables are {', '.join(TABLES)}")
    try:
        file = pq.ParquetFile(path)
        version = (file.schema_arrow.metadata or {}).get(b"howdah.schema", b"?").decode()
        if version != str(SCHEMA_VERSION):
            raise HowdahError(
                f"table {name} has schema version {version}, this program reads {SCHEMA_VERSION}",
                where=str(path),
                hint="make the tables again from raw/ (howdah report --reanalyse RUN)",
            )
        return file.read(columns=columns)
    except FileNotFoundError:
        raise HowdahError(
            f"table {name} is missing", where=str(path), hint="the run was not ingested, or ended early"
        ) from None
    except (OSError, pa.ArrowException) as error:
        raise HowdahError(
            f"table {name} cannot be read: {error}", where=str(path), hint="make the tables again from raw/"
        ) from error


@dataclass(frozen=True)
class Difference:
    """The first place at which two runs differ."""

    table: str
    what: str
    row: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        place = self.table
        if self.column is not None:
            place += f".{self.column}"
        if self.row is not None:
            place += f" row {self.row}"
        return f"{place}: {self.what}"


def equal(run_a: RunDirectory, run_b: RunDirectory) -> Difference | None:
    """Compare every table of two runs, every row and column; None when they are equal, else the first difference.

    Tables that tell of the machine and not of the run are left out.
    """
    for name in TABLES:
        if name in MACHINE_TABLES:
            continue
        there = [directory.table(name).exists() for directory in (run_a, run_b)]
        if there[0] != there[1]:
            return Difference(name, f"only {(run_a if there[0] else run_b).name} has this table")
        if there[0] and (found := first_difference(name, read(run_a, name), read(run_b, name))):
            return found
    return None


def first_difference(name: str, a: pa.Table, b: pa.Table) -> Difference | None:
    """The smallest row at which two tables of the same schema differ, and a column that differs there."""
    if a.schema.names != b.schema.names:
        return Difference(name, f"columns {a.schema.names} against {b.schema.names}")
    rows = min(a.num_rows, b.num_rows)
    first: tuple[int, str] | None = None
    for column in a.schema.names:
        left, right = (_plain(table[column].slice(0, rows)) for table in (a, b))
        if left.equals(right):
            continue
        same = pc.or_(pc.fill_null(pc.equal(left, right), False), pc.and_(pc.is_null(left), pc.is_null(right)))
        row = pc.index(same, False).as_py()
        if row >= 0 and (first is None or row < first[0]):
            first = (row, column)
    if first is not None:
        row, column = first
        return Difference(name, f"{a[column][row].as_py()!r} against {b[column][row].as_py()!r}", row, column)
    if a.num_rows != b.num_rows:
        return Difference(name, f"{a.num_rows} rows against {b.num_rows}", rows)
    return None


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dictionary columns as their values: which code stands for a text is no property of the run."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
