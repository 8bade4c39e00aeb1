# SPDX-License-Identifier: Apache-2.0
"""Remember the ended runs of a sweep in SQLite, so that resuming does not open finished runs.

The database is in the user's cache, because a directory of runs may come from elsewhere. A row is valid while the
inodes, sizes and times of its run's four files are unchanged and the sweep has the same plans. Runs without a valid row
are read from their own files, so a lost or damaged database loses nothing. The same file has the rows of
``howdah.load`` (howdah/library/index.py).
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from howdah.build.cache import Cache, content_key
from howdah.record.directory import RunDirectory
from howdah.record.index import IndexedRun

KIND = "sweep"
_FILES = ("run.json", "plan.json", "metrics.json", "verdict.json")
_TICK_S = 0.05  # two changes within this time may get the same time, on any file system of Linux
_FORMAT = 1
_LOCKED_S = 30.0  # wait for other writers: readers of many runs write to the same file
_TABLES = """
CREATE TABLE sweep (recipe TEXT);
CREATE TABLE run (
    number INTEGER PRIMARY KEY, run TEXT, axes TEXT, algorithm TEXT, repetition INTEGER, status TEXT, verdict TEXT,
    stamp BLOB
);
"""


def stamp(directory: str) -> bytes | None:
    """Return a value that changes with any of a run's files, with zeros for a missing file; None if run.json is
    missing."""
    found = array("q")
    for name in _FILES:
        try:
            status = os.stat(f"{directory}/{name}")  # noqa: PTH116 - of 400 000 files
        except OSError:
            if not found:
                return None
            found.extend((0, 0, 0, 0))
        else:
            found.extend((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found.tobytes()


def is_settled(found: bytes) -> bool:
    """Return whether a file written from now on gets a later time, so that equal times mean an equal file."""
    times = array("q", found)[3::4]
    return time.time_ns() - max(times) > _TICK_S * 1e9


Read = Callable[[], IndexedRun | None]  # reads a run from its files; None if they are incomplete


class SweepMemory:
    """The memory of one experiment, which the caller holds. Until it is opened it has no runs and stores none."""

    def __init__(self, experiment: Path, cache: Cache | None = None) -> None:
        self.experiment = experiment
        self.file = database_of(experiment, cache)
        self._database: sqlite3.Connection | None = None
        self._unsettled: deque[tuple[int, RunDirectory, Read]] = deque()

    def open(self, recipe: str) -> None:
        """Open the database and delete invalid rows; replace a damaged database. ``recipe`` is a digest of everything
        that the keys of the runs depend on. Raise OSError if the cache cannot be written.
        """
        try:
            self._open(recipe)
        except sqlite3.OperationalError as error:
            self.close()
            raise OSError(f"{self.file}: {error}") from error

    def _open(self, recipe: str) -> None:
        database = self._database = connect(self.file, self.experiment)
        # A row lost in a crash of the machine costs opening one run.
        database.execute("PRAGMA synchronous = OFF")
        with suppress(sqlite3.OperationalError):  # a new file has no tables
            if database.execute("SELECT recipe FROM sweep").fetchone() == (recipe,):
                self._drop_changed(database)
                return
        database.executescript("DROP TABLE IF EXISTS sweep; DROP TABLE IF EXISTS run;" + _TABLES)
        database.execute("INSERT INTO sweep VALUES (?)", (recipe,))
        database.commit()

    def _drop_changed(self, database: sqlite3.Connection) -> None:
        base = str(self.experiment)
        rows = database.execute("SELECT number, run, stamp FROM run")
        changed = [(number,) for number, run, found in rows if stamp(f"{base}/{run}") != found]
        database.executemany("DELETE FROM run WHERE number = ?", changed)
        database.commit()

    def add(self, number: int, run: RunDirectory, read: Read) -> None:
        """Store a run that ended, once its files are old enough for their times to be reliable."""
        if self._database is not None:
            self._unsettled.append((number, run, read))
            self._settle()

    def _settle(self) -> None:
        assert self._database is not None
        while self._unsettled:
            number, run, read = self._unsettled[0]
            found = stamp(str(run.path))
            if found is not None and not is_settled(found):
                return
            ended = read() if found is not None else None  # only after taking its stamp
            if ended is not None:
                point = (number, ended.run, json.dumps(ended.axes), ended.algorithm, ended.repetition)
                row = (*point, ended.status, ended.verdict, found)
                try:
                    self._database.execute("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
                except sqlite3.OperationalError:  # another process still writes: try later
                    return
            self._unsettled.popleft()  # last, so that an interrupt loses no run

    def runs(self) -> Iterator[tuple[int, IndexedRun]]:
        """Yield the runs with valid rows, each with its number, in the order of the sweep."""
        if self._database is None:
            return
        names = list(IndexedRun.model_fields)
        for number, *row in self._database.execute(f"SELECT number, {', '.join(names)} FROM run ORDER BY number"):
            values = dict(zip(names, row, strict=True))
            yield number, IndexedRun.model_construct(**{**values, "axes": json.loads(values["axes"])})

    def flush(self) -> None:
        """Commit the added rows, so that they survive if the command is killed."""
        if self._database is not None:
            self._database.commit()

    def settle(self) -> None:
        """Wait until the last runs can be stored, and store them."""
        if self._unsettled:
            time.sleep(2 * _TICK_S)
            self._settle()
            self._unsettled.clear()  # the file system's clock is ahead: the next command reads them again
        self.flush()

    def close(self) -> None:
        if self._database is not None:
            self.settle()
            self._database.close()
            self._database = None


def database_of(experiment: Path, cache: Cache | None = None) -> Path:
    """Return the file of an experiment's database. Raise HowdahError without a cache."""
    return (cache or Cache()).path(KIND, f"{content_key(str(experiment.resolve()))}.sqlite")


def connect(file: Path, experiment: Path) -> sqlite3.Connection:
    """Open an experiment's database, which records the experiment's path. Replace a damaged one, or one of another
    format, by an empty one. Raise OSError and sqlite3.OperationalError if the cache cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connected(file, experiment)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        file.unlink(missing_ok=True)
        return _connected(file, experiment)


def _connected(file: Path, experiment: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=_LOCKED_S)
    try:
        with database:
            database.execute("BEGIN IMMEDIATE")  # two processes may create the file
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                database.execute("CREATE TABLE experiment (path TEXT)")
                database.execute("INSERT INTO experiment VALUES (?)", (str(experiment.resolve()),))
                database.execute(f"PRAGMA user_version = {_FORMAT}")
            elif version != _FORMAT:
                raise sqlite3.DatabaseError(f"{file} has format {version}")
    except BaseException:
        database.close()
        raise
    return database


def useless_memories(cache: Cache) -> Iterator[tuple[Path, str]]:
    """Yield databases that no sweep will read, each with the reason."""
    for file in sorted((cache.root / KIND).glob("*.sqlite")):
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                (experiment,) = database.execute("SELECT path FROM experiment").fetchone()
        except (sqlite3.Error, TypeError):
            yield file, "it cannot be read"
            continue
        if not Path(experiment).is_dir():
            yield file, f"there is no {experiment}"
