# SPDX-License-Identifier: Apache-2.0
"""The index of an experiment: its tidy tables as they were read last, with the state of the files they were read from.

It saves reading thousands of small files again. A sweep leaves parts of it (growing.py), which the next reading joins.
Only ``howdah.load`` and what is built on it use it (docs/trust.md). An index that is missing, damaged, another
program's or another user's is ignored.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from howdah.build.cache import code
from howdah.errors import HowdahError
from howdah.library.axis import types_in
from howdah.library.result import ROWS, Types, of_runs, stacked
from howdah.metric import known_metrics
from howdah.record.directory import STATE_BYTES, writing_name
from howdah.record.model import Scalar
from howdah.record.provenance import analysis_sha256

FILE = ".tables.zip"  # of Parquet files; hidden, as what belongs to no run is
_PART, _PARTS = ".tables-{:020d}.zip", ".tables-*.zip"  # by the time at which it was made
_RUNS = "index"
_CODE = "code"  # of the member _RUNS with this user's secret; that has digests of the others
_MADE_BY = b"howdah.index"
_KNOWN = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("state", pa.binary(STATE_BYTES), nullable=False),
        pa.field("axes", pa.string(), nullable=False),  # JSON
        pa.field("counts", pa.bool_(), nullable=False),
    ]
)
_DAMAGED = (pa.ArrowException, OSError, ValueError, LookupError, RecursionError, zipfile.BadZipFile, EOFError)


class UnusableError(Exception):
    """The index cannot be used, so the runs' own files must be read."""


@dataclass(frozen=True)
class Known:
    """A run whose rows the index has."""

    state: bytes
    axes: dict[str, Scalar]
    counts: bool


def _made_by() -> bytes:
    """Hash of what the rows depend on beside the runs' files: the analysis, the metrics, and the code that makes
    rows."""
    return hashlib.sha256(f"{analysis_sha256()} {_code_sha256()}".encode()).hexdigest().encode()


@cache
def _code_sha256() -> str:
    """Hash of the code, taken once before anything is read, because the files may change during a process."""
    digest = hashlib.sha256(repr(known_metrics()).encode())
    here = Path(__file__).parent
    for file in sorted([*here.glob("*.py"), *(here.parent / "record").glob("*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Index:
    """The tables of the runs in ``known``; ``parts`` are the files of those that a sweep left.

    The files stay open, so replacing them does not change what is read here.
    """

    def __init__(self, files: dict[Path, _File]) -> None:
        self._files = files
        self._from = {run: file for file in files.values() for run in file.known}  # the newest
        self.known = {run: file.known[run] for run, file in self._from.items()}
        self.parts = [place for place in files if place.name != FILE]
        self.types: Types = types_in(each.axes for each in self.known.values())

    @classmethod
    def open(cls, experiment: Path) -> Index | None:
        """The index of an experiment's directory; None without one that this version of howdah wrote."""
        made_by = _made_by()
        places = [experiment / FILE, *sorted(experiment.glob(_PARTS))]
        files = {place: file for place in places if (file := _File.open(place, made_by)) is not None}
        return cls(files) if files else None

    def table(self, name: str) -> pa.Table:
        """A table of ``ROWS``. Raises UnusableError unless it has the columns that these runs give."""
        tables = []
        for file in self._files.values():
            own = [run for run in file.known if self._from[run] is file]
            if own:
                table = file.table(name)
                tables.append(of_runs(table, own) if len(own) < len(file.known) else table)
        try:
            return stacked(tables, ROWS[name]([], self.types).schema)
        except ValueError as error:
            raise UnusableError(str(error)) from error


class _File:
    """One open file of the index."""

    def __init__(self, archive: zipfile.ZipFile, known: dict[str, Known], digests: dict[bytes, bytes]) -> None:
        self._archive, self.known, self._digests = archive, known, digests
        self._types: Types = types_in(each.axes for each in known.values())

    @classmethod
    def open(cls, file: Path, made_by: bytes) -> _File | None:
        try:
            archive = zipfile.ZipFile(file)
            runs = archive.read(_RUNS)
            if not hmac.compare_digest(archive.read(_CODE), code(runs).encode()):
                return None
            table = pq.ParquetFile(io.BytesIO(runs), pre_buffer=False).read(use_threads=False)
            metadata = table.schema.metadata or {}
            if table.schema.remove_metadata() != _KNOWN or metadata.get(_MADE_BY) != made_by:
                return None
            known = {
                run: Known(state, _axes(axes), counts)
                for run, state, axes, counts in zip(*(column.to_pylist() for column in table.columns), strict=True)
            }
            return cls(archive, known, metadata)
        except (*_DAMAGED, HowdahError):  # the cache, where the secret is, cannot be used
            return None

    def table(self, name: str) -> pa.Table:
        """A table of ``ROWS``. Raises UnusableError unless it has the columns that these runs give."""
        try:
            content = self._archive.read(name)
            if self._digests.get(name.encode()) != _digest(content):
                raise UnusableError(f"{name} is not what was written")
            table = pq.ParquetFile(io.BytesIO(content), pre_buffer=False).read(use_threads=False)
        except _DAMAGED as error:
            raise UnusableError(str(error)) from error
        if table.schema.remove_metadata() != ROWS[name]([], self._types).schema.remove_metadata():
            raise UnusableError(f"{name} has other columns")
        return table


def part_of(experiment: Path, made_ns: int) -> Path:
    """The file of a part that is made at this time."""
    return experiment / _PART.format(made_ns)


def write_index(file: Path, known: dict[str, Known], table: Callable[[str], pa.Table]) -> None:
    """Write a file of the index in one step. Raises OSError where the experiment cannot be written, and HowdahError
    without a cache for the secret."""
    rows = [(run, each.state, json.dumps(each.axes), each.counts) for run, each in known.items()]
    columns = [pa.array(list(column), kind.type) for column, kind in zip(zip(*rows, strict=True), _KNOWN, strict=True)]
    said = {_MADE_BY: _made_by()}
    temporary = writing_name(file)
    try:
        with zipfile.ZipFile(temporary, "w") as archive:
            for name in ROWS:
                content = _parquet(table(name))
                archive.writestr(name, content)
                said[name.encode()] = _digest(content)
            runs = _parquet(pa.Table.from_arrays(columns, schema=_KNOWN.with_metadata(said)))
            archive.writestr(_RUNS, runs)
            archive.writestr(_CODE, code(runs))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=1)
    return buffer.getvalue()


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _axes(text: str) -> dict[str, Scalar]:
    found = json.loads(text)
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise ValueError("these are no axes")
    return found
