# SPDX-License-Identifier: Apache-2.0
"""``Rows``: a table that is read on demand, into any of several table libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from howdah.distribution import install_extra
from howdah.errors import HowdahError
from howdah.library.axis import EXPERIMENT, TEXT, axis_types
from howdah.record.digest import check
from howdah.record.result import Run
from howdah.record.schema import TABLES
from howdah.record.table import FLOW_NAME, UNIT, check_columns, open_table

if TYPE_CHECKING:
    import pandas
    import polars


class Rows:
    """A table of one or many runs. Only the rows and columns that are asked for are read, when they are asked for.

    ``where`` and ``select`` narrow the table. ``to_arrow``, ``to_pandas`` and ``to_polars`` read it; DuckDB, polars and
    pandas also accept the object itself (it has the Arrow PyCapsule interface). For tables larger than memory, use
    ``dataset`` and ``batches``.
    """

    def __init__(
        self,
        name: str,
        opened: Callable[[], ds.Dataset],
        columns: Sequence[str] | None = None,
        condition: pc.Expression | None = None,
    ) -> None:
        self._name, self._opened = name, opened
        self._columns, self._condition = columns, condition

    @cached_property
    def dataset(self) -> ds.Dataset:
        """The underlying pyarrow dataset, without the effect of ``where`` and ``select``."""
        return self._opened()

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; a field's metadata has its unit under ``unit``."""
        whole = self.dataset.schema
        return whole if self._columns is None else pa.schema([whole.field(name) for name in self._columns])

    @property
    def columns(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one, such as ``us`` or ``bits_per_second``."""
        found = {column.name: (column.metadata or {}).get(UNIT.encode()) for column in self.schema}
        return {name: unit.decode() for name, unit in found.items() if unit}

    def where(self, condition: pc.Expression | None = None, /, **values: Any) -> Rows:
        """Keep the rows that satisfy a pyarrow expression and have the given column values.

        A list of values matches any of them: ``where(algorithm=["cubic", "reno"], repetition=0)``. Use a dictionary for
        a name that Python does not allow: ``where(**{"path.rtt": "40 ms"})``. Raises HowdahError for an unknown column.
        """
        self._check_known(values)
        parts = [] if condition is None else [condition]
        for name, value in values.items():
            column = self.dataset.schema.field(name)
            several = isinstance(value, list | tuple | set | frozenset)
            # Compare a dictionary column by its texts.
            field = ds.field(name).cast(pa.string()) if pa.types.is_dictionary(column.type) else ds.field(name)
            if value is None:
                parts.append(field.is_null())
            else:
                parts.append(field.isin(list(value)) if several else field == value)
        whole = self._condition
        for part in parts:
            whole = part if whole is None else whole & part
        return self._narrowed(self._columns, whole)

    def select(self, *columns: str) -> Rows:
        """Keep only these columns, in this order."""
        self._check_known(columns)
        return self._narrowed(columns, self._condition)

    def _narrowed(self, columns: Sequence[str] | None, condition: pc.Expression | None) -> Rows:
        return Rows(self._name, lambda: self.dataset, columns, condition)

    def _check_known(self, names: Any) -> None:
        there = self.dataset.schema.names
        for name in names:
            if name not in there:
                raise HowdahError(f"{self._name} has no column {name!r}", hint=f"It has {', '.join(there)}.")

    def to_arrow(self) -> pa.Table:
        """All rows as a pyarrow Table. Raises HowdahError if a file is damaged."""
        try:
            table = self.batches().read_all()
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError) as error:
            hint = "'howdah verify DIR' names damaged files."
            raise HowdahError(f"{self._name} cannot be read: {error}", hint=hint) from error
        return table

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A pandas DataFrame; ``options`` are those of ``pyarrow.Table.to_pandas``."""
        _needs("pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame that shares the Arrow memory."""
        _needs("polars")
        import polars as frames

        made = frames.from_arrow(self.to_arrow())
        assert isinstance(made, frames.DataFrame)
        return made

    def to_pylist(self) -> list[dict[str, Any]]:
        """A list of one dictionary per row, for small tables."""
        return self.to_arrow().to_pylist()  # type: ignore[no-any-return]

    def batches(self) -> pa.RecordBatchReader:
        """A reader of record batches of some thousand rows, for tables larger than memory.

        If a file is damaged, reading from it raises pyarrow's own errors.
        """
        columns = None if self._columns is None else list(self._columns)
        return self.dataset.scanner(columns=columns, filter=self._condition).to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.batches().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.dataset.count_rows(filter=self._condition))

    def __repr__(self) -> str:
        return f"<{self._name}: {len(self)} rows of {', '.join(self.columns)}>"


def _needs(package: str) -> None:
    try:
        __import__(package)
    except ImportError:
        raise HowdahError(f"{package} is not installed", hint=install_extra("notebook")) from None


def of_table(name: str, made: Callable[[], pa.Table]) -> Rows:
    """Rows of a small table, which ``made`` builds in memory on first use."""
    return Rows(name, lambda: ds.dataset(made()))


def tables_there(runs: list[Run]) -> list[str]:
    return [name for name in TABLES if any(run.directory.table(name).exists() for run in runs)]


def table_dataset(name: str, runs: list[Run]) -> ds.Dataset:
    """The table ``name`` of all runs that have it, with one leading column per axis.

    Raises MismatchError if a file differs from the one that run.json recorded, and HowdahError if no run has the table.
    """
    types = axis_types(runs)
    own: pa.Schema | None = None
    places: list[tuple[str, str]] = []
    for run in runs:
        file = run.directory.table(name)
        check(run.directory, run.provenance, [file])
        if not file.exists():
            continue
        with open_table(file, name) as parquet:
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
