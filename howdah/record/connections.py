# SPDX-License-Identifier: Apache-2.0
"""Measures of each connection of a group: connections.parquet, a result beside metrics.json.

A run may have a hundred thousand connections with ten measures each, which would take 265 MB as rows of JSON.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from howdah.errors import HowdahError, RecordError, explain
from howdah.plan.plan import Plan
from howdah.record.digest import check
from howdah.record.directory import RunDirectory, in_its_place
from howdah.record.metrics import MetricRow
from howdah.record.run import RunRecord
from howdah.record.table import DAMAGED, open_parquet

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        ("flow", pa.int32()),
        ("group", _TEXT),
        ("metric", _TEXT),
        ("value", pa.float64()),  # null: missing, see why
        ("unit", _TEXT),
        ("algorithm", _TEXT),
        ("receiver", _TEXT),  # null: the run's
        ("why", _TEXT),  # why the value is missing; null if it is not
    ]
)
_WORDS = tuple(column.name for column in SCHEMA if column.type == _TEXT)
_HINT = "make the results again from raw/ (howdah report --reanalyse RUN)"
_CHUNK = 1 << 16


@dataclass
class RowsOfConnections:
    """Collected rows, in a tenth of the memory that dictionaries would take."""

    flows: array[int] = field(default_factory=lambda: array("i"))
    values: array[float] = field(default_factory=lambda: array("d"))
    words: dict[str, list[str | None]] = field(default_factory=lambda: {name: [] for name in _WORDS})

    def add(self, flow: int, value: float | None, **words: str | None) -> None:
        """Add a row; ``words`` are all its text columns."""
        self.flows.append(flow)
        self.values.append(np.nan if value is None else value)
        for name, column in self.words.items():
            column.append(words[name])

    def table(self) -> pa.Table:
        value = np.array(self.values, dtype=np.float64)
        columns: dict[str, pa.Array] = {
            "flow": pa.array(np.array(self.flows, dtype=np.int32)),
            "value": pa.array(value, mask=np.isnan(value)),
            **{name: pa.array(column, pa.string()).dictionary_encode() for name, column in self.words.items()},
        }
        return pa.Table.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


@dataclass(frozen=True)
class Connections:
    """The rows of a run, empty for a run without groups."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def of(self, metric: str, group: str | None = None) -> Connections:
        """The rows of one measure, and of one group if given."""
        import pyarrow.compute as pc  # loading it takes half as long as everything else that reads tables

        wanted = pc.equal(self.table["metric"].cast(pa.string()), metric)
        if group is not None:
            wanted = pc.and_(wanted, pc.equal(self.table["group"].cast(pa.string()), group))
        return Connections(self.table.filter(wanted))

    @property
    def groups(self) -> list[str]:
        """Names of the groups, in the order of the rows."""
        return self._names("group")

    @property
    def metrics(self) -> list[str]:
        return self._names("metric")

    def _names(self, column: str) -> list[str]:
        return [str(each) for each in self.table[column].cast(pa.string()).unique().to_pylist()]

    @property
    def flows(self) -> list[int]:
        found: list[int] = self.table["flow"].to_pylist()
        return found

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The values, NaN if missing."""
        return np.asarray(self.table["value"].to_numpy(), dtype=np.float64)

    @property
    def unit(self) -> str | None:
        """The unit of the first row; None without rows."""
        return str(self.table["unit"][0].as_py() or "") if len(self) else None

    def rows(self) -> Iterator[MetricRow]:
        """Yield the rows as metrics.json has them."""
        for begin in range(0, len(self), _CHUNK):
            for row in self.table.slice(begin, _CHUNK).to_pylist():
                yield MetricRow(**row)

    def summary(self) -> dict[str, Any]:
        """The number of rows and a digest of their content, which does not depend on the program that wrote the
        file."""
        digest = hashlib.sha256()
        for name in SCHEMA.names:
            column = self.table[name].combine_chunks()
            if name in _WORDS:
                coded = column.cast(pa.string()).dictionary_encode()
                digest.update(json.dumps(coded.dictionary.to_pylist()).encode())
                column = coded.indices
            values = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            digest.update(values.astype("<f8").tobytes())
        return {"rows": len(self), "sha256": digest.hexdigest()}


def write_connections(directory: RunDirectory, found: Connections) -> None:
    """Write the file; without rows, remove that of an older analysis. Raise HowdahError if that fails."""
    path = directory.connections
    if not len(found):
        path.unlink(missing_ok=True)
        return
    try:
        with in_its_place(path) as temporary, temporary.open("wb") as file:
            pq.write_table(found.table, file, compression="zstd")
    except OSError as error:
        raise HowdahError(f"cannot write the measures of connections: {explain(error)}", where=str(path)) from error


def read_connections(directory: RunDirectory, record: RunRecord | None = None, plan: Plan | None = None) -> Connections:
    """Read the rows of a run. Raise MismatchError if the file is not the one recorded in run.json, RecordError if it is
    damaged or has flows or groups that the plan lacks."""
    path = directory.connections
    if record is not None:
        check(directory, record, [path])
    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow.remove_metadata()
            if schema != SCHEMA:
                raise RecordError("this is not a table of connections", where=str(path), hint=_HINT)
            table = file.read(use_threads=False)
            table.validate(full=True)
    except FileNotFoundError:
        return Connections(SCHEMA.empty_table())
    except DAMAGED as error:
        what = f"the measures of connections cannot be read: {error}"
        raise RecordError(what, where=str(path), hint=_HINT) from error
    found = Connections(table.replace_schema_metadata(None))
    if plan is not None:
        _check(found, plan, str(path))
    return found


def _check(found: Connections, plan: Plan, where: str) -> None:
    """Raise RecordError unless every row belongs to a connection of the plan."""
    known: dict[str, Set[object]] = {
        "flow": {flow.id for flow in plan.flows},
        "group": {flow.group for flow in plan.flows} - {None},
    }
    for column, names in known.items():
        for name in found.table[column].unique().to_pylist():
            if name not in names:
                raise RecordError(f"{column}: the plan has no {column} {name!r}", where=where, hint=_HINT)
    if found.table["metric"].null_count:
        raise RecordError("metric: a row is of no measure", where=where, hint=_HINT)
