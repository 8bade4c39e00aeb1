# SPDX-License-Identifier: Apache-2.0
"""Concatenates tables of several experiments: an axis has one type in all, and a run appears once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from howdah.library.gathered import Gathered
from howdah.library.result import RUN, exit_measures


def joined_table(name: str, parts: Sequence[Gathered], *, every: bool) -> pa.Table:
    """The table ``name`` of ``ROWS`` without the column ``RUN``; without ``every`` of the runs that count alone."""
    _agree(parts)
    runs = _wanted(parts, every=every)
    table = _below(name, parts, runs)
    if name == "exits":
        table = _measured(table, _below("metrics", parts, runs))
    return table.drop_columns([RUN])


def axes_of_all(parts: Sequence[Gathered]) -> list[str]:
    """Columns that tell runs apart."""
    _agree(parts)
    return list(parts[0].types)


def _agree(parts: Sequence[Gathered]) -> None:
    if len(parts) > 1:
        types = parts[0].types_with(parts[1:])
        for part in parts:
            part.take_types(types)


def _below(name: str, parts: Sequence[Gathered], runs: list[list[str]]) -> pa.Table:
    tables = [part.of(name, mine) for part, mine in zip(parts, runs, strict=True)]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _wanted(parts: Sequence[Gathered], *, every: bool) -> list[list[str]]:
    """The wanted runs of each part, without those of earlier parts."""
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


def _measured(exits: pa.Table, metrics: pa.Table) -> pa.Table:
    """Drop measures without any row from the exits."""
    there = set(pc.unique(metrics["metric"].filter(metrics["flow"].is_valid())).cast(pa.string()).to_pylist())
    return exits.drop_columns([name for name in exit_measures() if name not in there])
