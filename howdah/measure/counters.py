# SPDX-License-Identifier: Apache-2.0
"""Counters of one host over time, and how much each grew around an instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.measure.trace import Integers


@dataclass(frozen=True)
class CounterSeries:
    """Readings of one counter, by time (ns from the epoch)."""

    time_ns: Integers
    value: Integers

    def growth(self, after_ns: int, until_ns: int) -> int:
        """Growth from the last reading at or before ``after_ns`` to the first at or after ``until_ns``.

        The first and the last reading stand in for one beyond them.
        """
        if self.time_ns.size < 2:
            return 0
        begin = max(int(np.searchsorted(self.time_ns, after_ns, side="right")) - 1, 0)
        end = min(int(np.searchsorted(self.time_ns, until_ns, side="left")), self.time_ns.size - 1)
        return int(self.value[end] - self.value[begin]) if end > begin else 0

    def around(self, after_ns: int, until_ns: int) -> int | None:
        """As :meth:`growth`, but None where no reading is before the interval, or none after it."""
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
        """Readings of ``name`` (as nstat prints it: ``TcpExtTCPTimeouts``), or None if there are none.

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
        """As :meth:`Series.growth`; 0 where the counter does not exist in this kernel."""
        series = self.series(node, name)
        return 0 if series is None else series.growth(after_ns, until_ns)

    def total(self, node: str | None, name: str) -> int | None:
        series = self.series(node, name)
        return None if series is None else series.total
