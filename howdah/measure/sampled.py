# SPDX-License-Identifier: Apache-2.0
"""Readings of a run: samples of tcp_info and queues; counters of a host, and their growth around an instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from howdah.measure.trace import SECOND_NS, Integers, Reals

MISSING = -1
_FEWEST_READINGS = 2


@dataclass(frozen=True)
class Samples:
    """Readings in order of time; a column that the kernel lacks is all :data:`MISSING`."""

    time_ns: Integers
    columns: Mapping[str, Integers]

    def __len__(self) -> int:
        return self.time_ns.size

    def __getitem__(self, name: str) -> Integers:
        return self.columns[name]

    def has(self, name: str) -> bool:
        return bool(len(self)) and bool((self.columns[name] != MISSING).all())

    def least(self, name: str, until_ns: int | None = None) -> int | None:
        """Return the smallest value, without missing ones and those after ``until_ns``."""
        there = self.columns[name] != MISSING
        if until_ns is not None:
            there = there & (self.time_ns <= until_ns)
        values = self.columns[name][there]
        return int(values.min()) if values.size else None

    def growth(self, name: str, after_ns: int, until_ns: int) -> int | None:
        """Return a counter's growth between the readings that enclose the interval; None without two of them."""
        if not self.has(name):
            return None
        begin = max(int(np.searchsorted(self.time_ns, after_ns, side="right")) - 1, 0)
        end = min(int(np.searchsorted(self.time_ns, until_ns, side="left")), len(self) - 1)
        return int(self.columns[name][end] - self.columns[name][begin]) if end > begin else None

    def grown(self, name: str, begin_ns: int, end_ns: int) -> float | None:
        """Return a counter's growth in an interval, linear between two readings.

        None unless the readings cover the interval, up to a gap of their own usual length at either end.
        """
        if not self.has(name) or len(self) < _FEWEST_READINGS or end_ns <= begin_ns:
            return None
        gap = int(np.diff(self.time_ns).max())
        if self.time_ns[0] > begin_ns + gap or self.time_ns[-1] < end_ns - gap:
            return None
        begin, end = np.interp([begin_ns, end_ns], self.time_ns, self.columns[name])
        return float(end - begin)


@dataclass(frozen=True, slots=True)
class _Part(Mapping[str, Integers]):
    """The same rows of every column, sliced on access: for thousands of flows, only few columns are used."""

    whole: dict[str, Integers]
    begin: int
    stop: int

    def __getitem__(self, name: str) -> Integers:
        return self.whole[name][self.begin : self.stop]

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole)

    def __len__(self) -> int:
        return len(self.whole)


def tcp_info_samples(table: pa.Table, flows: list[int], end: str) -> dict[int, Samples]:
    """Return the readings of one end (``sender`` or ``receiver``) of each flow, in the order of the table."""
    table = _where(table, {"end": end})
    order = np.argsort(table["flow"].to_numpy(), kind="stable")
    columns = {name: column[order] for name, column in _integers(table).items()}
    # With another type, each search copies all.
    ids = np.array(flows, dtype=np.int64)
    edges = (np.searchsorted(columns["flow"], ids, side=side).tolist() for side in ("left", "right"))
    parts = {flow: _Part(columns, begin, stop) for flow, begin, stop in zip(flows, *edges, strict=True)}
    return {flow: Samples(part["time_ns"], part) for flow, part in parts.items()}


def qdisc_samples(table: pa.Table, node: str, interface: str, handle: str) -> Samples:
    """Return the readings of one queue."""
    columns = _integers(_where(table, {"node": node, "interface": interface, "handle": handle}))
    return Samples(columns["time_ns"], columns)


def interface_samples(table: pa.Table, node: str, interface: str) -> Samples:
    """Return the readings of one interface."""
    columns = _integers(_where(table, {"node": node, "interface": interface}))
    return Samples(columns["time_ns"], columns)


def node_samples(table: pa.Table, node: str) -> Samples:
    """Return the readings of one node, from a table with one row per reading and node."""
    columns = _integers(_where(table, {"node": node}))
    return Samples(columns["time_ns"], columns)


def _where(table: pa.Table, where: dict[str, str]) -> pa.Table:
    for name, value in where.items():
        column = table[name]
        column = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        table = table.filter(pc.equal(column, value))
    return table


def _integers(table: pa.Table) -> dict[str, Integers]:
    """Return the columns of integers and booleans."""
    columns: dict[str, Integers] = {}
    for name in table.schema.names:
        column = table[name]
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
            columns[name] = column.cast(pa.int64()).fill_null(MISSING).to_numpy().astype(np.int64)
    return columns


BUSY_SHARE = 0.9


@dataclass(frozen=True)
class Busy:
    """Whether the link was busy between the readings at ``time_ns``; shapes (readings,) and (readings - 1,)."""

    time_ns: Integers
    busy: npt.NDArray[np.bool_]

    def at(self, time_ns: Integers) -> npt.NDArray[np.bool_]:
        """Whether it was busy at each time; never without readings."""
        if not self.busy.size:
            return np.zeros(time_ns.size, dtype=bool)
        place = np.searchsorted(self.time_ns, time_ns) - 1
        inside = (place >= 0) & (place < self.busy.size)
        return np.asarray(inside & self.busy[np.clip(place, 0, self.busy.size - 1)])


NEVER = Busy(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))


def busy_of(readings: Samples, sent: str, carries: Callable[[Integers, Integers], Reals]) -> Busy:
    """Return where a counter of bytes ``sent``, as frames, grew by 90 % or more of what the link ``carries`` then."""
    if len(readings) < 2 or not readings.has(sent):
        return NEVER
    most = carries(readings.time_ns[:-1], readings.time_ns[1:])
    return Busy(readings.time_ns, np.asarray(np.diff(readings[sent]) >= BUSY_SHARE * most))


def steady(bits_per_second: float) -> Callable[[Integers, Integers], Reals]:
    """Return what a link of constant rate carries."""
    return lambda begin_ns, end_ns: np.asarray((end_ns - begin_ns) * (bits_per_second / 8 / SECOND_NS))


@dataclass(frozen=True)
class CounterSeries:
    """Readings of one counter, by time (ns from the epoch)."""

    time_ns: Integers
    value: Integers

    def growth(self, after_ns: int, until_ns: int) -> int:
        """Return the growth from the last reading at or before ``after_ns`` to the first at or after ``until_ns``.

        The first and the last reading replace readings beyond them.
        """
        if self.time_ns.size < 2:
            return 0
        begin = max(int(np.searchsorted(self.time_ns, after_ns, side="right")) - 1, 0)
        end = min(int(np.searchsorted(self.time_ns, until_ns, side="left")), self.time_ns.size - 1)
        return int(self.value[end] - self.value[begin]) if end > begin else 0

    def around(self, after_ns: int, until_ns: int) -> int | None:
        """As :meth:`growth`, but None unless there are readings before and after the interval."""
        if not self.time_ns.size or self.time_ns[0] > after_ns or self.time_ns[-1] < until_ns:
            return None
        return self.growth(after_ns, until_ns)

    @property
    def total(self) -> int:
        """Growth from the first to the last reading."""
        return int(self.value[-1] - self.value[0]) if self.value.size else 0


class Counters:
    """The table ``counter``."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.select(["node", "name", "time_ns", "value"])
        self._names: dict[str, pa.Table] = {}

    def series(self, node: str | None, name: str) -> CounterSeries | None:
        """Return the readings of ``name`` (in nstat's form: ``TcpExtTCPTimeouts``), or None if there are none.

        ``node`` None is the whole kernel.
        """
        if name not in self._names:
            self._names[name] = self._table.filter(pc.equal(self._table["name"].cast(pa.string()), name))
        rows = self._names[name]
        column = rows["node"].cast(pa.string())
        rows = rows.filter(pc.is_null(column) if node is None else pc.equal(column, node))
        if not rows.num_rows:
            return None
        time = rows["time_ns"].to_numpy().astype(np.int64)
        order = np.argsort(time, kind="stable")
        return CounterSeries(time[order], rows["value"].to_numpy().astype(np.int64)[order])

    def growth(self, node: str | None, name: str, after_ns: int, until_ns: int) -> int:
        """As :meth:`CounterSeries.growth`; 0 if this kernel lacks the counter."""
        series = self.series(node, name)
        return 0 if series is None else series.growth(after_ns, until_ns)

    def total(self, node: str | None, name: str) -> int | None:
        series = self.series(node, name)
        return None if series is None else series.total
