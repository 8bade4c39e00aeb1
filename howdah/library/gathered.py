# SPDX-License-Identifier: Apache-2.0
"""Build the tidy tables of one experiment, from its index where that is current, otherwise from the runs' files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.library.axis import EXPERIMENT, own_axes, types_in
from howdah.library.index import WRITE_ERRORS, Index, IndexEntry, UnusableError, write_index
from howdah.library.result import ROWS, RUN, Types, exit_measures, of_runs, positions, stacked
from howdah.record.directory import is_settled
from howdah.record.model import Scalar
from howdah.record.result import Run
from howdah.work.results import ChangedRuns, read_changed_runs, read_results
from howdah.work.stage import is_current

LEAST_RUNS = 100  # smallest experiment that gets an index: fewer runs are read in less than half a second


class ExperimentTables:
    """The tables of one directory: all runs of an experiment, or a single run."""

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        self._path, self._tell = path, tell
        self._given: Types = {}
        self._indexed = (path / "experiment.json").exists()
        self._read(Index.open(path) if self._indexed else None)
        self._write_index()

    def _read(self, index: Index | None) -> None:
        self._index = index
        known = index.known if index else {}
        if self._indexed:
            self._others = read_changed_runs(self._path, {run: each.state for run, each in known.items()}, self._tell)
            pieces: Iterable[list[Run]] = self._others.pieces()
        else:
            runs = read_results(self._path, self._tell).runs
            self._others = ChangedRuns(self._path, "", [run.name for run in runs], set(), {})
            pieces = [runs]
        unchanged = self._others.unchanged
        self._axes: dict[str, dict[str, Scalar]] = {run: known[run].axes for run in unchanged}
        self.counts = {run: known[run].counts for run in unchanged}
        self._settled: set[str] = set()
        self._made: dict[str, pa.Table] = {}
        self._fresh: dict[str, list[pa.Table]] = {name: [] for name in ROWS}
        kinds = [self._add_runs(piece) for piece in pieces]
        self._names = [run for run in self._others.names if run in self._axes]  # without runs deleted meanwhile
        base = self._path if self._indexed else self._path.parent
        self.places = {run: base / run for run in self._names}
        self.types: Types = self._given or types_in(self._axes[run] for run in self._names)
        if index is not None and not self._is_fitted_by(index):
            self._read(None)
        elif any(self.types[name] != kind for types in kinds for name, kind in types.items()):
            self._given = self.types  # the pieces have values of different kinds on one axis
            self._read(None)

    def _add_runs(self, piece: list[Run]) -> Types:
        """Make the rows of some runs, whose own data can then be freed. Return the types of their axes."""
        axes = {run.name: own_axes(run) for run in piece}
        types = {**types_in(axes.values()), **self._given}
        self._axes |= axes
        self.counts |= {run.name: has_measures(run) and run.counts for run in piece}
        self._settled |= {run.name for run in piece if is_indexable(run, self._others.states.get(run.name))}
        for name, made in self._fresh.items():
            made.append(rows_of(name, piece, types))
        return types

    def _is_fitted_by(self, index: Index) -> bool:
        """Return whether the index fits the other runs: the same experiment name, and the same type for every axis."""
        same_name = all(self._axes[run].get(EXPERIMENT) == self._others.name for run in self._others.unchanged)
        return same_name and all(self.types.get(name, kind) == kind for name, kind in index.types.items())

    def types_with(self, others: Iterable[ExperimentTables]) -> Types:
        """The axes of these and the ``others``' runs, each with the type that holds its values everywhere."""
        return types_in(axes for part in (self, *others) for axes in part._axes.values())

    def use_types(self, types: Types) -> None:
        """Use these axis types for all tables from now on."""
        if types == self._given and list(types) == list(self._given):
            return
        self._given = types
        if any(types[name] != kind for name, kind in self.types.items()):
            self._read(None)
        self.types, self._made = types, {}

    def table(self, name: str) -> pa.Table:
        """The table ``name`` of ``ROWS`` in the experiment's order, including runs that do not count."""
        try:
            if name not in self._made:
                self._made[name] = self._joined(name)
        except UnusableError:
            self._read(None)
            self._made[name] = self._joined(name)
        return self._made[name]

    def _joined(self, name: str) -> pa.Table:
        tables = list(self._fresh[name])
        if self._index is not None:
            stored = self._index.table(name)
            if len(self._index.known) > len(self._others.unchanged):
                stored = of_runs(stored, self._others.unchanged)
            tables.insert(0, stored)
        table = stacked(tables, ROWS[name]([], self.types).schema)
        places = positions(table, self._names)
        if np.any(places[1:] < places[:-1]):
            table = table.take(pa.array(np.argsort(places, kind="stable")))
        return self._with_directories(table) if name == "runs" else table

    def _with_directories(self, table: pa.Table) -> pa.Table:
        """Write each run's directory relative to the path that this caller gave."""
        places = {run: str(place) for run, place in self.places.items()}
        number = table.schema.get_field_index("directory")
        found = pa.array([places[run] for run in table[RUN].to_pylist()], pa.string())
        return table.set_column(number, table.schema.field(number), found)

    def of(self, name: str, runs: Iterable[str]) -> pa.Table:
        """The rows of some runs in the table ``name``."""
        table = self.table(name)
        wanted = set(runs)
        if len(wanted) == len(self._names):
            return table
        return of_runs(table, wanted)

    def _write_index(self) -> None:
        """Write the index if it has changed. On failure the next reader opens the runs' files again."""
        if not self._indexed or len(self._others.names) < LEAST_RUNS:
            return
        kept = self._index.known if self._index else {}
        known = {run: each for run, each in kept.items() if run in self._others.unchanged}
        pieces = self._index.pieces if self._index else []
        if not self._settled and len(known) == len(kept) and len(pieces) < 2:
            return
        states = self._others.states
        known |= {run: IndexEntry(states[run], self._axes[run], self.counts[run]) for run in self._settled}
        known = {run: known[run] for run in self._names if run in known}
        if known and types_in(each.axes for each in known.values()) == self.types:
            with suppress(*WRITE_ERRORS):
                write_index(self._path, known, lambda name: self.of(name, known), pieces)
                if pieces:
                    self._index = Index.open(self._path)


def has_measures(run: Run) -> bool:
    return run.plan is not None


def rows_of(name: str, runs: list[Run], types: Types) -> pa.Table:
    """The rows of some runs in the table ``name`` of ``ROWS``. Runs without a plan are only in ``runs`` and
    ``checks``."""
    return ROWS[name]([run for run in runs if name in ("runs", "checks") or has_measures(run)], types)


def is_indexable(run: Run, state: bytes | None) -> bool:
    """Return whether the index may hold this run: it was read without problems, and no process may be writing it."""
    record = run.provenance
    if state is None or run.plan is None or not is_settled(state, time.time_ns()):
        return False
    if record.status == "finished":
        return record.digests is not None and is_current(record)
    return record.status == "failed"


def joined_table(name: str, parts: Sequence[ExperimentTables], *, every: bool) -> pa.Table:
    """The table ``name`` of ``ROWS`` over all parts, without ``RUN``; ``every`` includes runs that do not count."""
    _unify_types(parts)
    runs = _selected_runs(parts, every=every)
    table = _concatenated(name, parts, runs)
    if name == "exits":
        table = _without_absent_measures(table, _concatenated("metrics", parts, runs))
    return table.drop_columns([RUN])


def axes_of_parts(parts: Sequence[ExperimentTables]) -> list[str]:
    """Names of the columns that distinguish the runs of all parts."""
    _unify_types(parts)
    return list(parts[0].types)


def _unify_types(parts: Sequence[ExperimentTables]) -> None:
    if len(parts) > 1:
        types = parts[0].types_with(parts[1:])
        for part in parts:
            part.use_types(types)


def _concatenated(name: str, parts: Sequence[ExperimentTables], runs: list[list[str]]) -> pa.Table:
    tables = [part.of(name, mine) for part, mine in zip(parts, runs, strict=True)]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _selected_runs(parts: Sequence[ExperimentTables], *, every: bool) -> list[list[str]]:
    """The wanted runs of each part, each run only in the first part that has it."""
    seen: set[Path] = set()
    found = []
    for part in parts:
        mine = [run for run in part.places if every or part.counts[run]]
        if len(parts) > 1:
            places = {run: part.places[run].resolve() for run in mine}
            mine = [run for run in mine if places[run] not in seen]
            seen.update(places.values())
        found.append(mine)
    return found


def _without_absent_measures(exits: pa.Table, metrics: pa.Table) -> pa.Table:
    """Drop the columns of measures that no flow has from the exits."""
    there = set(pc.unique(metrics["metric"].filter(metrics["flow"].is_valid())).cast(pa.string()).to_pylist())
    return exits.drop_columns([name for name in exit_measures() if name not in there])
