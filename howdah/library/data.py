# SPDX-License-Identifier: Apache-2.0
"""The tidy tables of runs and experiments: what ``howdah.load`` returns."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from howdah.errors import HowdahError
from howdah.library.gathered import ExperimentTables, axes_of_parts, joined_table
from howdah.library.rows import Rows, of_table, table_dataset, tables_there
from howdah.record.model import FilePart
from howdah.record.result import Experiment, Run
from howdah.record.schema import TABLES
from howdah.report.difference import PairedRow, difference_data
from howdah.report.ending import results
from howdah.report.source import TableSource
from howdah.report.subject import subjects_of
from howdah.report.transfer import CompletionRow, completion_data
from howdah.work.results import read_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Data:
    """Tidy tables of all runs of one or more experiments. Each row names its axes (algorithm, receiver, repetition,
    swept fields, the flow's name) in columns of their own.

    Each attribute is a ``Rows``, which reads its files on first use. Like every command of howdah, reading first
    recomputes results that an older analysis wrote and compares files with their recorded digests; it raises
    HowdahError for what does not match.
    """

    def __init__(self, paths: Iterable[Path], *, every: bool = False) -> None:
        self._paths = list(dict.fromkeys(paths))
        self._every = every

    @property
    def paths(self) -> list[Path]:
        return list(self._paths)

    @cached_property
    def _experiments(self) -> list[Experiment]:
        return [read_results(path, _warn) for path in self._paths]

    @cached_property
    def _all_runs(self) -> list[Run]:
        found: dict[Path, Run] = {}
        for experiment in self._experiments:
            for run in experiment.runs:
                found.setdefault(run.directory.path.resolve(), run)  # a run given twice appears once
        return list(found.values())

    @cached_property
    def _runs(self) -> list[Run]:
        return [run for run in self._all_runs if run.plan is not None and (run.counts or self._every)]

    @cached_property
    def _parts(self) -> list[ExperimentTables]:
        return [ExperimentTables(path, _warn) for path in self._paths]

    @cached_property
    def runs(self) -> Rows:
        """One row per run, whether it counts or not: axes, verdict, path, start time and duration."""
        return of_table("runs", lambda: joined_table("runs", self._parts, every=True))

    @cached_property
    def metrics(self) -> Rows:
        """One row per measure of each run and flow: a number in ``value`` or a word in ``text`` (such as the cause of
        an exit); ``why`` says why both are missing."""
        return of_table("metrics", lambda: joined_table("metrics", self._parts, every=self._every))

    @cached_property
    def exits(self) -> Rows:
        """One row per flow: when, where and why it left slow start."""
        return of_table("exits", lambda: joined_table("exits", self._parts, every=self._every))

    @cached_property
    def checks(self) -> Rows:
        """One row per check in each run's verdict, for all runs, whether they count or not."""
        return of_table("checks", lambda: joined_table("checks", self._parts, every=True))

    @cached_property
    def differences(self) -> Rows:
        """One row per main measure, point of the sweep and side other than the first. ``difference`` (side - other) and
        ``ratio`` (side / other) compare it with the first side over pairs of equal repetitions, each with ``_low`` and
        ``_high``."""
        return of_table("differences", lambda: difference_table(self._experiments))

    @cached_property
    def completion(self) -> Rows:
        """One row per percentile of completion times and size class: ``time_s``, ``slowdown``, with ``_low`` and
        ``_high``."""
        return of_table("completion", lambda: completion_table(self._experiments))

    @property
    def acks(self) -> Rows:
        """One row per ACK that a sender received (the table ``tcp_probe``)."""
        return self.table("tcp_probe")

    @property
    def tables(self) -> list[str]:
        """Names of the tables that at least one run has; ``table(name)``, or the attribute of that name, is the
        table."""
        return tables_there(self._runs)

    def table(self, name: str) -> Rows:
        """The table ``name`` of all runs: ``tcp_probe``, ``tcp_info``, ``qdisc`` … (docs/data-format.md)."""
        if name not in TABLES:
            raise HowdahError(f"there is no table {name!r}", hint=f"The tables are {', '.join(TABLES)}.")
        return Rows(name, lambda: table_dataset(name, self._runs))

    @property
    def tcp_probe(self) -> Rows:
        """One row per ACK that a sender received; the same as ``acks``."""
        return self.table("tcp_probe")

    @property
    def slow_start(self) -> Rows:
        """One row per event that a slow-start module reported."""
        return self.table("slow_start")

    @property
    def tcp_info(self) -> Rows:
        """Readings of struct tcp_info at both ends of every flow."""
        return self.table("tcp_info")

    @property
    def qdisc(self) -> Rows:
        """Readings of every queue."""
        return self.table("qdisc")

    @property
    def two_queues(self) -> Rows:
        """One row per reading of a dual queue: a low-latency queue beside a classic one."""
        return self.table("two_queues")

    @property
    def interface(self) -> Rows:
        """Readings of every interface's counters."""
        return self.table("interface")

    @property
    def counter(self) -> Rows:
        """Readings of the kernel's network counters, by name."""
        return self.table("counter")

    @property
    def flow(self) -> Rows:
        """One row per flow: its endpoints, times and bytes."""
        return self.table("flow")

    @property
    def cpu(self) -> Rows:
        """Processor time by function, if it was collected."""
        return self.table("cpu")

    @property
    def cpu_sample(self) -> Rows:
        """Processor time by function from the second source, if there are two."""
        return self.table("cpu_sample")

    @property
    def processor(self) -> Rows:
        """Activity of the modelled processors, for profiles that give hosts one."""
        return self.table("processor")

    @property
    def segment(self) -> Rows:
        """Every TCP segment at the flows' endpoints, if their interfaces were captured."""
        return self.table("segment")

    @property
    def sack_block(self) -> Rows:
        """Every SACK block in the captured segments."""
        return self.table("sack_block")

    @property
    def opportunities(self) -> Rows:
        """Periodic readings of what each trace-driven link let pass."""
        return self.table("opportunities")

    @property
    def axes(self) -> list[str]:
        """Names of the columns that distinguish runs, the swept fields last."""
        return axes_of_parts(self._parts)

    def plot(self, what: str = "cwnd_packets", **options: Any) -> Axes:
        """Draw a column of the ACKs over time, or a metric over an axis, with matplotlib; see ``howdah.library.plot``.

        Raises HowdahError for an unknown name, and if matplotlib is not installed.
        """
        from howdah.library.plot import plot

        options.setdefault("by", self._differing_axes(options))
        return plot(self.acks, self.metrics, what, **options)

    def _differing_axes(self, options: dict[str, Any]) -> list[str]:
        """The algorithm, and every other axis except the repetition and ``x`` that differs between the runs drawn."""
        axes = [name for name in self.axes if name not in ("algorithm", "run", "repetition")]
        drawn = self.runs.where(**{name: value for name, value in options.items() if name in self.axes})
        rows = drawn.select(*axes).to_pylist()
        differ = [name for name in axes if len({str(row[name]) for row in rows}) > 1]
        return ["algorithm", *(name for name in differ if name != options.get("x"))]

    def __repr__(self) -> str:
        return f"<howdah: {', '.join(path.name for path in self._paths)}>"


def _warn(text: str) -> None:
    warnings.warn(f"howdah: {text}", stacklevel=2)


def difference_table(experiments: list[Experiment]) -> pa.Table:
    """Compare each side with the first at each point of the sweep, over the runs that count. Empty for a single
    side."""
    return _table(PairedRow, difference_data(subjects_of(results(experiments, TableSource()))))


def completion_table(experiments: list[Experiment]) -> pa.Table:
    """Completion times of the runs that count; ``point`` is JSON. Empty if no measured flow has a fixed size."""
    return _table(CompletionRow, completion_data(experiments))


def _table(kind: type[FilePart], rows: Sequence[FilePart]) -> pa.Table:
    schema = pa.schema([(name, _type_of(field.annotation)) for name, field in kind.model_fields.items()])
    columns = {name: [_cell(getattr(row, name)) for row in rows] for name in schema.names}
    return pa.Table.from_pydict(columns, schema=schema)


def _type_of(annotation: object) -> pa.DataType:
    for kind, type_ in ((float, pa.float64()), (int, pa.int64())):
        if annotation in (kind, kind | None):
            return type_
    return pa.string()


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value
