# SPDX-License-Identifier: Apache-2.0
"""The index of an experiment: its tidy tables as last read, with the state of the files they were read from.

It saves reading thousands of small files again. It is stored as pieces in the sweep's database in the user's cache; a
sweep writes several (growing.py), and the next reader joins them. Only ``howdah.load`` and its users read it. An index
that is missing, damaged or written by another version is ignored.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from howdah.errors import HowdahError
from howdah.library.axis import types_in
from howdah.library.result import ROWS, Types, of_runs, stacked
from howdah.metric import known_metrics
from howdah.record.model import Scalar
from howdah.record.provenance import analysis_sha256
from howdah.work.sweep_memory import connect, database_of

_TABLES = """
CREATE TABLE IF NOT EXISTS piece (number INTEGER PRIMARY KEY AUTOINCREMENT, made_by TEXT);
CREATE TABLE IF NOT EXISTS piece_run (piece INTEGER, run TEXT, state BLOB, axes TEXT, counts INTEGER);
CREATE TABLE IF NOT EXISTS piece_rows (piece INTEGER, name TEXT, parquet BLOB, PRIMARY KEY (piece, name));
"""
_OF_PIECE = {"piece_run": "piece", "piece_rows": "piece", "piece": "number"}  # table: its column of the piece's number
WRITE_ERRORS = (OSError, HowdahError, sqlite3.Error)


class UnusableError(Exception):
    """The index cannot be used; read the runs' own files instead."""


@dataclass(frozen=True)
class IndexEntry:
    """A run in the index: the state of its files, its axes, and whether it counts."""

    state: bytes
    axes: dict[str, Scalar]
    counts: bool


def _made_by() -> str:
    """Hash of everything besides the runs' files that determines the rows: the analysis, the metrics, and this code."""
    return hashlib.sha256(f"{analysis_sha256()} {_code_sha256()}".encode()).hexdigest()


@cache
def _code_sha256() -> str:
    """Hash of the code that makes rows. Computed once, because the files may change while the process runs."""
    digest = hashlib.sha256(repr(known_metrics()).encode())
    here = Path(__file__).parent
    for file in sorted([*here.glob("*.py"), *(here.parent / "record").glob("*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Index:
    """The indexed tables of the runs in ``known``. ``pieces`` are the numbers of their pieces, the newest last.

    ``table`` raises UnusableError if another reader has meanwhile joined the pieces.
    """

    def __init__(self, experiment: Path, pieces: dict[int, dict[str, IndexEntry]]) -> None:
        self._experiment, self._known = experiment, pieces
        self.pieces = list(pieces)
        self._from = {run: number for number, known in pieces.items() for run in known}  # the newest piece of each run
        self.known = {run: pieces[number][run] for run, number in self._from.items()}
        self.types: Types = types_in(each.axes for each in self.known.values())

    @classmethod
    def open(cls, experiment: Path) -> Index | None:
        """The index of an experiment's directory, or None if this version of howdah wrote none."""
        try:
            with _database(experiment, must_exist=True) as database:
                own = database.execute("SELECT number FROM piece WHERE made_by = ? ORDER BY number", (_made_by(),))
                pieces: dict[int, dict[str, IndexEntry]] = {number: {} for (number,) in own.fetchall()}
                for number, run, *row in database.execute("SELECT piece, run, state, axes, counts FROM piece_run"):
                    if number in pieces:
                        pieces[number][run] = _known(*row)
        except (*WRITE_ERRORS, ValueError, TypeError, RecursionError):
            return None
        return cls(experiment, pieces) if pieces else None

    def table(self, name: str) -> pa.Table:
        """The table ``name`` of ``ROWS``. Raises UnusableError unless it has the columns expected for these runs."""
        try:
            tables = [self._part(name, number) for number in self.pieces]
            return stacked([table for table in tables if table is not None], ROWS[name]([], self.types).schema)
        except (*WRITE_ERRORS, pa.ArrowException, ValueError, LookupError, TypeError) as error:
            raise UnusableError(str(error)) from error

    def _part(self, name: str, number: int) -> pa.Table | None:
        known = self._known[number]
        own = [run for run in known if self._from[run] == number]
        if not own:
            return None
        with _database(self._experiment, must_exist=True) as database:
            found = database.execute("SELECT parquet FROM piece_rows WHERE piece = ? AND name = ?", (number, name))
            (content,) = found.fetchone()
        table = pq.ParquetFile(io.BytesIO(content), pre_buffer=False).read(use_threads=False)
        types = types_in(each.axes for each in known.values())
        if table.schema.remove_metadata() != ROWS[name]([], types).schema.remove_metadata():
            raise UnusableError(f"{name} has other columns")
        return of_runs(table, own) if len(own) < len(known) else table


def write_index(
    experiment: Path, known: dict[str, IndexEntry], table: Callable[[str], pa.Table], replaced: Iterable[int] = ()
) -> None:
    """Write one piece of the index and delete the ``replaced`` ones, atomically. Raises ``WRITE_ERRORS``."""
    contents = {name: _parquet(table(name)) for name in ROWS}
    with _database(experiment) as database, database:
        database.execute("BEGIN IMMEDIATE")
        made_by = _made_by()
        others = database.execute("SELECT number FROM piece WHERE made_by != ?", (made_by,)).fetchall()
        for number in {*replaced, *(number for (number,) in others)}:
            for name, column in _OF_PIECE.items():
                database.execute(f"DELETE FROM {name} WHERE {column} = ?", (number,))
        number = database.execute("INSERT INTO piece (made_by) VALUES (?)", (made_by,)).lastrowid
        rows = ((number, run, each.state, json.dumps(each.axes), each.counts) for run, each in known.items())
        database.executemany("INSERT INTO piece_run VALUES (?, ?, ?, ?, ?)", rows)
        database.executemany(
            "INSERT INTO piece_rows VALUES (?, ?, ?)", ((number, name, content) for name, content in contents.items())
        )


@contextmanager
def _database(experiment: Path, *, must_exist: bool = False) -> Iterator[sqlite3.Connection]:
    file = database_of(experiment)
    if must_exist and not file.exists():
        raise FileNotFoundError(str(file))
    with closing(connect(file, experiment)) as database:
        database.executescript(_TABLES)
        yield database


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=1)
    return buffer.getvalue()


def _known(state: bytes, axes: str, counts: int) -> IndexEntry:
    found = json.loads(axes)
    if not isinstance(found, dict) or any(isinstance(value, dict | list) for value in found.values()):
        raise ValueError("these are no axes")
    return IndexEntry(state, found, bool(counts))
