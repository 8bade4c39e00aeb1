# SPDX-License-Identifier: Apache-2.0
"""An experiment, a run, or several of them, as tidy tables."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from howdah.errors import HowdahError
from howdah.library.gathered import Gathered, axes_of_all, joined_table
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
    """Tidy tables of all runs of some experiments: a row has its axes (algorithm, receiver, repetition, what was
    swept, the flow's name) in columns of their own.

    Each attribute is a ``Rows``: nothing is read before it is asked for. Reading brings results up to date and checks
    files against their digests, as every command of howdah does; HowdahError says what does not hold.
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
                found.setdefault(run.directory.path.resolve(), run)  # one that was named twice is there once
        return list(found.values())

    @cached_property
    def _runs(self) -> list[Run]:
        """The runs that the tables contain."""
        return [run for run in self._all_runs if run.plan is not None and (run.counts or self._every)]

    @cached_property
    def _gathered(self) -> list[Gathered]:
        return [Gathered(path, _warn) for path in self._paths]

    @cached_property
    def runs(self) -> Rows:
        """A row for every run, whether it counts or not: axes, verdict, path, when and how fast it was made."""
        return of_table("runs", lambda: joined_table("runs", self._gathered, every=True))

    @cached_property
    def metrics(self) -> Rows:
        """A row for every measure of every run and flow: ``value`` is a number, ``text`` a word (an exit's cause),
        ``why`` says why there is neither."""
        return of_table("metrics", lambda: joined_table("metrics", self._gathered, every=self._every))

    @cached_property
    def exits(self) -> Rows:
        """A row for every flow: when, where and why it left slow start."""
        return of_table("exits", lambda: joined_table("exits", self._gathered, every=self._every))

    @cached_property
    def checks(self) -> Rows:
        """A row for every check of every verdict, of all runs."""
        return of_table("checks", lambda: joined_table("checks", self._gathered, every=True))

    @cached_property
    def differences(self) -> Rows:
        """A row for every main measure of each side against the first, at each point: ``difference`` (side - other) and
        ``ratio`` (side / other) over pairs of equal repetitions, each with ``_low`` and ``_high``."""
        return of_table("differences", lambda: difference_table(self._experiments))

    @cached_property
    def completion(self) -> Rows:
        """A row for each percentile of the times in which transfers of a class of size were completed: ``time_s`` and
        ``slowdown``, each with ``_low`` and ``_high``."""
        return of_table("completion", lambda: completion_table(self._experiments))

    @property
    def acks(self) -> Rows:
        """A row for every ACK that a sender received (the table ``tcp_probe``)."""
        return self.table("tcp_probe")

    @property
    def tables(self) -> list[str]:
        """Names of the tables that at least one run has; ``table(name)``, or an attribute of the name, is the table."""
        return tables_there(self._runs)

    def table(self, name: str) -> Rows:
        """A table of the runs by its name: ``tcp_probe``, ``tcp_info``, ``qdisc`` … (docs/data-format.md)."""
        if name not in TABLES:
            raise HowdahError(f"there is no table {name!r}", hint=f"The tables are {', '.join(TABLES)}.")
        return Rows(name, lambda: table_dataset(name, self._runs))

    @property
    def tcp_probe(self) -> Rows:
        """A row for every ACK that a sender received; also called ``acks``."""
        return self.table("tcp_probe")

    @property
    def slow_start(self) -> Rows:
        """A row for every event that a slow-start module reported."""
        return self.table("slow_start")

    @property
    def tcp_info(self) -> Rows:
        """Readings of struct tcp_info of both ends of every flow."""
        return self.table("tcp_info")

    @property
    def qdisc(self) -> Rows:
        """Readings of every queue."""
        return self.table("qdisc")

    @property
    def two_queues(self) -> Rows:
        """A row for each reading of a queue with one of low latency beside a classic one."""
        return self.table("two_queues")

    @property
    def interface(self) -> Rows:
        """Readings of the counters of every interface."""
        return self.table("interface")

    @property
    def counter(self) -> Rows:
        """Readings of the kernel's counters, by name."""
        return self.table("counter")

    @property
    def flow(self) -> Rows:
        """A row for every flow: its ends, times and bytes."""
        return self.table("flow")

    @property
    def cpu(self) -> Rows:
        """Processor time by function, where it was collected."""
        return self.table("cpu")

    @property
    def cpu_sample(self) -> Rows:
        """Processor time by function from the second source, where there are two."""
        return self.table("cpu_sample")

    @property
    def processor(self) -> Rows:
        """What the processors of hosts did, where a profile gives hosts one."""
        return self.table("processor")

    @property
    def segment(self) -> Rows:
        """Every TCP segment at the ends of flows, where their interfaces were captured."""
        return self.table("segment")

    @property
    def sack_block(self) -> Rows:
        """Every SACK block in these segments."""
        return self.table("sack_block")

    @property
    def opportunities(self) -> Rows:
        """What each link that follows a trace let pass, read at intervals."""
        return self.table("opportunities")

    @property
    def axes(self) -> list[str]:
        """Columns that distinguish runs; the swept fields are the last of them."""
        return axes_of_all(self._gathered)

    def plot(self, what: str = "cwnd_packets", **options: Any) -> Axes:
        """Draw a column of the ACKs over time, or a metric over an axis, with matplotlib; see ``howdah.library.plot``.

        Raises HowdahError for an unknown name, and without matplotlib.
        """
        from howdah.library.plot import plot

        options.setdefault("by", self._told_apart(options))
        return plot(self.acks, self.metrics, what, **options)

    def _told_apart(self, options: dict[str, Any]) -> list[str]:
        """The algorithm and every other axis that differs between the runs drawn, save repetitions and ``x``."""
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
    """Each side against the first at each point of the sweep, of the runs that count; without rows where there is one
    side alone."""
    return _table(PairedRow, difference_data(subjects_of(results(experiments, TableSource()))))


def completion_table(experiments: list[Experiment]) -> pa.Table:
    """Of the runs that count; ``point`` is JSON. Without rows where no measured flow has a fixed size."""
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
