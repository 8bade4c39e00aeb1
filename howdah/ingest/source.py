# SPDX-License-Identifier: Apache-2.0
"""What every source of raw data needs to make its table: the run, its plan, the epoch, and a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howdah.plan.plan import Flow, Plan
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory

_Kind = TypeVar("_Kind")
Integers = npt.NDArray[np.int64]


@dataclass
class SourceReport:
    """The report of one source. ``problems`` are data that were lost or cannot be trusted; ``counts`` has further
    facts, by their names in tables/ingest.json."""

    rows: int = 0
    counts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


Made = dict[str, tuple[pa.Table, SourceReport]]  # by the name of a table


@dataclass
class IngestReport:
    """tables/ingest.json: one report per table, and problems of the whole run."""

    format: int = field(default=1, kw_only=True)
    sources: dict[str, SourceReport] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def all_problems(self) -> list[str]:
        return self.problems + [f"{name}: {text}" for name, source in self.sources.items() for text in source.problems]


@dataclass(frozen=True)
class Context:
    """The run as its sources see it. ``epoch_ns`` is the guest's CLOCK_MONOTONIC at time zero of the plan."""

    directory: RunDirectory
    plan: Plan
    agent: AgentRecord
    epoch_ns: int
    _made: dict[Callable[[Context], Any], Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, make: Callable[[Context], _Kind]) -> _Kind:
        """The result of ``make`` for this run, computed once for all tables that use it."""
        if make not in self._made:
            self._made[make] = make(self)
        made: _Kind = self._made[make]
        return made

    def source_port(self, flow: Flow) -> int:
        """The port that the sender really used; the kernel may have assigned it to iperf3 or a passive sender."""
        return self.agent.flow(flow.id).source_port or flow.source_port

    def node_names(self) -> list[str]:
        return [host.name for host in self.plan.hosts]


def add_rows(made: Made, name: str, rows: pa.Table, origin: str) -> None:
    """Add rows from another ``origin`` than the kernel to a table of the run, in order of time."""
    table, report = made[name]
    report.counts[f"{origin}_rows"] = report.counts.get(f"{origin}_rows", 0) + rows.num_rows
    whole = pa.concat_tables([table, rows]).unify_dictionaries().combine_chunks()
    made[name] = (whole.take(pc.sort_indices(whole, sort_keys=[("time_ns", "ascending")])), report)


def texts(codes: Integers, values: list[str]) -> pa.DictionaryArray:
    """A dictionary column from codes and their texts, which may repeat."""
    unique = sorted(set(values))
    number = {text: index for index, text in enumerate(unique)}
    table = np.array([number[text] for text in values], dtype=np.int16)
    indices = table[codes] if len(values) else np.zeros(0, dtype=np.int16)
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int16()), pa.array(unique, pa.string()))


def nullable(values: Integers, known: npt.NDArray[np.bool_]) -> pa.Array:
    """An integer column with nulls where ``known`` is false."""
    return pa.array(values, pa.int64(), mask=~known)
