# SPDX-License-Identifier: Apache-2.0
"""Write the index piece by piece during a sweep, so that the first ``howdah.load`` need not open the runs.

A piece is written whole or not at all, so a killed command leaves only valid ones. A piece is valid for a run as long
as the run's files are unchanged since they were read.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from howdah.library.axis import own_axes, types_in
from howdah.library.gathered import is_indexable, rows_of
from howdah.library.index import WRITE_ERRORS, IndexEntry, write_index
from howdah.library.result import ROWS, stacked
from howdah.record.directory import states_of
from howdah.work.batch import Listener, Outcome, Rest, Work
from howdah.work.results import read_ended

PIECE = 20  # runs read in one go, which blocks the sweep for a fifth of a second
WAITING = 100  # ended runs queued before the first is read, so that its last change is old enough to trust
WRITTEN = 250  # runs per piece of the index


class IndexingListener:
    """Listener of a batch that forwards its events and indexes the runs that ended. Use it as a context manager; after
    an error, it leaves the remaining runs to the first reader."""

    def __init__(self, listen: Listener) -> None:
        self._listen = listen
        self._handled = 0
        self._ended: deque[tuple[Path, str]] = deque()
        self._parts: dict[Path, _RunRows] = {}

    def __call__(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        self._listen(active, outcomes, rest)
        done = rest.past.count + len(outcomes)
        if done < self._handled:
            self._handled = 0  # another batch of the same command
        for outcome in outcomes[max(self._handled - rest.past.count, 0) :]:
            if outcome.verdict is not None and not outcome.reused:
                self._ended.append((outcome.job.experiment.path, outcome.cell.directory_name))
        self._handled = done
        while len(self._ended) >= WAITING:
            self._read()

    def _read(self) -> None:
        pieces: dict[Path, list[str]] = {}
        for _ in range(min(PIECE, len(self._ended))):
            experiment, name = self._ended.popleft()
            pieces.setdefault(experiment, []).append(name)
        for experiment, names in pieces.items():
            part = self._parts.setdefault(experiment, _RunRows(experiment))
            part.read(list(dict.fromkeys(names)))
            if len(part.known) >= WRITTEN:
                self._parts.pop(experiment).write()

    def __enter__(self) -> IndexingListener:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        while kind is None and self._ended:
            self._read()
        for part in self._parts.values():
            part.write()


class _RunRows:
    """The rows of some runs of one experiment, not yet written."""

    def __init__(self, experiment: Path) -> None:
        self.experiment = experiment
        self.known: dict[str, IndexEntry] = {}
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in ROWS}

    def read(self, names: list[str]) -> None:
        names = [name for name in names if name not in self.known]  # a run made again has another state
        # The sweep goes on whatever is wrong with a directory or its values; a later reader reports it.
        with suppress(OSError, ValueError, TypeError, ArithmeticError, LookupError):
            states = states_of(self.experiment, names)
            runs = [
                run
                for run in read_ended(self.experiment, names)
                # A run without a release may take that of its siblings, which are not read here.
                if run.release is not None and is_indexable(run, states[run.name])
            ]
            axes = {run.name: own_axes(run) for run in runs}
            types = types_in(axes.values())
            made = {name: rows_of(name, runs, types) for name in ROWS}  # all tables or none
            for name, table in made.items():
                self._tables[name].append(table)
            self.known |= {run.name: IndexEntry(states[run.name], axes[run.name], run.counts) for run in runs}

    def write(self) -> None:
        if not self.known:
            return
        types = types_in(each.axes for each in self.known.values())
        # If types conflict, the disk is full or there is no cache, the first reader reads the runs.
        with suppress(ValueError, *WRITE_ERRORS):
            write_index(
                self.experiment,
                self.known,
                lambda name: stacked(self._tables[name], ROWS[name]([], types).schema),
            )
