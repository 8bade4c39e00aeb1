# SPDX-License-Identifier: Apache-2.0
"""Read and write the tables of a run, and compare those of two runs; and the axes, columns that identify the run of a
row, which every table carries after its own columns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from howdah.errors import HowdahError, RecordError, explain, remedy
from howdah.foreign import open_foreign
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, in_its_place
from howdah.record.model import Scalar
from howdah.record.schema import MACHINE_TABLES, SCHEMA_VERSION, TABLES

# Chosen for speed. After delta encoding, level 3 is 2 % smaller, and level 9 is 9 % smaller in 2.5 times the time.
_COMPRESSION_LEVEL = 1
# Exceptions of code that trusts a file of a run which is damaged.
TRIPPED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, pa.ArrowException)
# And those of pyarrow's parser, for names that are not UTF-8, 128-bit integers, or offsets beyond the end.
# FileNotFoundError, an OSError, is handled separately where it matters.
DAMAGED = (*TRIPPED, OSError, RuntimeError, EOFError)
_HINT = "make the tables again from raw/ (howdah report --reanalyse RUN)"
# Most rows that a damaged or hostile file may claim. Rows have different times, so a row takes about a byte or more.
_LEAST_ROWS, _MOST_ROWS_A_BYTE = 1 << 20, 4
UNIT = "unit"  # key in the metadata of a field; values are as in metrics.json
_WRITTEN = {"bits_per_second": "bit/s", "bytes_per_second": "bytes/s"}
_UNITS = (
    "_bits_per_second",
    "_bytes_per_second",
    "_packets",
    "_bytes",
    "_us",
    "_ns",
)


def unit_of(column: str) -> str | None:
    """The unit at the end of a column's name (``packets``, ``bytes``, ``us`` …); None for a label or a plain count."""
    for unit in _UNITS:
        if column.endswith(unit):
            return unit[1:]
    return None


def table_of(name: str, columns: dict[str, Any]) -> pa.Table:
    """Make a table with the schema of ``name``; ``columns`` maps every column to an array or list.

    Raise KeyError if a column of the schema is missing.
    """
    schema = TABLES[name]
    arrays = []
    for column in schema:
        values = columns[column.name]
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        arrays.append(array if array.type == column.type else array.cast(column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def sparse_table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Make a table as ``table_of`` does; missing columns are null."""
    rows = len(columns["time_ns"])
    return table_of(name, {column.name: pa.nulls(rows, column.type) for column in TABLES[name]} | dict(columns))


def write(directory: RunDirectory, name: str, table: pa.Table, axes: Axes | None = None) -> None:
    """Write a table so that a reader sees either the old or the complete new file.

    ``axes`` become columns after those of the table. Units are in the metadata of each field and of the schema.
    """
    schema = TABLES[name]
    if table.schema.remove_metadata() != schema:
        raise HowdahError(f"table {name} does not have the columns of its schema", where=str(directory.table(name)))
    if axes is not None:
        table = with_axes(table, axes)
    schema = pa.schema([_with_unit(column) for column in table.schema])
    units = {column: unit for column in TABLES[name].names if (unit := unit_of(column))}
    metadata = {"howdah.schema": str(SCHEMA_VERSION), "howdah.run": directory.name, "howdah.units": json.dumps(units)}
    path = directory.table(name)
    # Dictionaries for texts, and for axes, which are nearly constant; deltas for time_ns and sequence numbers,
    # which grow in small steps.
    own = TABLES[name].names
    texts = [column.name for column in schema if column.name not in own or not pa.types.is_integer(column.type)]
    deltas = {
        column.name: "DELTA_BINARY_PACKED" for column in schema if column.name in own and column.type == pa.int64()
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened here, because pyarrow mistakes some names for URIs and rejects names that are not UTF-8.
        with in_its_place(path) as temporary, temporary.open("wb") as file:
            pq.write_table(
                table.cast(schema.with_metadata(metadata)),
                file,
                compression="zstd",
                compression_level=_COMPRESSION_LEVEL,
                use_dictionary=texts,
                column_encoding=deltas,
            )
    except OSError as error:
        raise HowdahError(
            f"cannot write table {name}: {explain(error)}", where=str(path), hint=remedy(error)
        ) from error


def written_unit(column: str) -> str | None:
    """The unit of a column as metrics.json writes it: ``bit/s``."""
    unit = unit_of(column)
    return _WRITTEN.get(unit, unit) if unit else None


def _with_unit(column: pa.Field) -> pa.Field:
    unit = written_unit(column.name)
    return column.with_metadata({UNIT: unit}) if unit else column


def read(directory: RunDirectory, name: str, columns: list[str] | None = None, *, axes: bool = False) -> pa.Table:
    """Read a table and check its version; only its own columns, unless ``columns`` or ``axes`` says otherwise.

    Raise HowdahError if it is missing, damaged or of another version.
    """
    path = directory.table(name)
    if name not in TABLES:
        raise HowdahError(f"there is no table {name!r}; the tables are {', '.join(TABLES)}")
    try:
        with open_table(path, name) as file:
            _check_version(file.schema_arrow, name, path)
            check_columns(file.schema_arrow, name, path)
            return read_columns(file, columns or (None if axes else TABLES[name].names))
    except FileNotFoundError:
        raise HowdahError(
            f"table {name} is missing", where=str(path), hint="the run was not ingested, or ended early"
        ) from None


@contextmanager
def open_table(path: Path, name: str) -> Iterator[pq.ParquetFile]:
    """Open the file of a table. Raise FileNotFoundError, or HowdahError if the file proves damaged when it is opened or
    read.
    """
    try:
        with open_parquet(path) as file:
            yield file
    except FileNotFoundError:
        raise
    except DAMAGED as error:
        raise HowdahError(f"table {name} cannot be read: {error}", where=str(path), hint=_HINT) from error


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. Raise one of ``DAMAGED`` if it is damaged."""
    with open_foreign(path) as content:  # pyarrow rejects names that are not UTF-8
        file = pq.ParquetFile(content, pre_buffer=False)  # pre-buffering reads in further threads
        size = os.fstat(content.fileno()).st_size
        if file.metadata.num_rows > _LEAST_ROWS + _MOST_ROWS_A_BYTE * size:
            what = f"{path.stem} has {file.metadata.num_rows} rows in {size} bytes"
            raise RecordError(what, where=str(path), hint=_HINT)
        yield file


def read_columns(file: pq.ParquetFile, columns: list[str] | None) -> pa.Table:
    """Read these columns of all rows. Raise one of ``DAMAGED`` if text is not UTF-8, which pyarrow does not check.

    Threads of pyarrow are not used: one that releases a Python file after the program has ended aborts it.
    """
    table = file.read(columns=columns, use_threads=False)
    table.validate(full=True)
    return table


def _check_version(schema: pa.Schema, name: str, path: Path) -> None:
    version = (schema.metadata or {}).get(b"howdah.schema", b"?").decode(errors="replace")
    if version != str(SCHEMA_VERSION):
        raise HowdahError(
            f"table {name} has schema version {version}, this program reads {SCHEMA_VERSION}",
            where=str(path),
            hint=_HINT,
        )


def check_columns(schema: pa.Schema, name: str, path: Path) -> None:
    """Raise HowdahError unless a file has every column of the table with its type."""
    for column in TABLES[name]:
        index = schema.get_field_index(column.name)
        if index < 0 or schema.field(index).type != column.type:
            there = "no column" if index < 0 else f"a {schema.field(index).type} column"
            raise HowdahError(
                f"this is not the table {name}: it has {there} {column.name}",
                where=str(path),
                hint=_HINT,
            )


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
    """Compare all tables of two runs; return None if they are equal, else the first difference.

    Tables that describe the machine, not the run, are left out.
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
    """The first row in which two tables of the same schema differ, and a column that differs there."""
    import pyarrow.compute as pc  # loading it takes half as long as everything else that reads tables

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
    """Dictionary columns as plain values: which code represents a text does not matter."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


TEXT = pa.dictionary(pa.int16(), pa.string())
AXES = ("run", "engine", "kernel", "algorithm", "receiver", "repetition")  # axes of every run; swept fields follow
FLOW_NAME = "flow_name"  # added to tables with the column flow
# Swept fields that every run has as an axis anyway.
_SAME = {*AXES, "algorithms", "flows.algorithm", "repetitions"}


@dataclass(frozen=True)
class Axes:
    """``run`` has the values that all rows share, ``flows`` those that differ by flow: its name, its algorithm, its
    receiver's behaviour or stack."""

    run: dict[str, Scalar]
    flows: dict[int, dict[str, str]] = field(default_factory=dict)


def axes_of(plan: Plan, kernel: str | None) -> Axes:
    """The axes of a plan's tables; ``kernel`` is the release that the guest reported."""
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
    """The swept fields of a run, without those that are an axis of every run."""
    return {name: value for name, value in axes.items() if name not in _SAME}


def _scalar(value: Any) -> Scalar:
    return value if value is None or isinstance(value, str | int | float | bool) else json.dumps(value)


def with_axes(table: pa.Table, axes: Axes) -> pa.Table:
    """Append a column for each axis that the table lacks."""
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
    """A text for each row by its flow; null for a flow that the plan lacks."""
    texts = sorted({flow[name] for flow in axes.flows.values()})
    place = {text: number for number, text in enumerate(texts)}
    kind = np.int16 if len(texts) <= np.iinfo(np.int16).max else np.int32
    code = np.full(max([*axes.flows, int(numbers.max(initial=0))]) + 1, -1, dtype=kind)
    for number, flow in axes.flows.items():
        code[number] = place[flow[name]]
    codes = code[numbers]
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(texts, pa.string()))


def axis_text(value: Any) -> str:
    """The text of an axis' value in a plan, with one spelling for true and false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def point_text(at: Mapping[str, Any]) -> str:
    """A point in words: ``path.rtt = 100 ms, path.rate = 5 Mbit/s``."""
    return ", ".join(f"{axis} = {value}" for axis, value in at.items())
