# SPDX-License-Identifier: Apache-2.0
"""Runs on several kernels in one virtual time: counters that all of them have of one thing, as one row.

Each kernel has the whole network and reads its counters at the same instants, and a packet is in one kernel at a time:
a queue's or an interface's row is the sum over them. What left by a wire less what arrived, modulo 2^32, is its queue.
A kernel that went silent earlier than the others was asked no more; rows that not all of them have are left out.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from howdah.ingest.source import Made, SourceReport
from howdah.plan.line import WIRE_HANDLE, delay_lines
from howdah.plan.plan import Plan
from howdah.record.schema import TABLES

_U32 = 2**32
_KEYS = {
    "qdisc": ("time_ns", "node", "interface", "handle"),
    "interface": ("time_ns", "node", "interface"),
    "counter": ("time_ns", "node", "source", "name"),
}
_MODULO = ("backlog_bytes", "backlog_packets")


def own_counters(plan: Plan, part: str, table: pa.Table) -> pa.Table:
    """Of a kernel's counters those of hosts that live in it, of routers, and of the kernel itself."""
    foreign = [host for other in plan.parts if other.name != part for host in other.hosts]
    elsewhere = pc.is_in(table["node"].cast(pa.string()), value_set=pa.array(foreign, pa.string()))
    return table.filter(pc.invert(elsewhere))


def add_up(plan: Plan, made: Made) -> Made:
    """The same tables; those of counters with one row for each reading of each thing."""
    hosts = [host for part in plan.parts for host in part.hosts]
    found = dict(made)
    for name, keys in _KEYS.items():
        table, report = made[name]
        times = _read_by_all(table, keys, len(plan.parts))
        if name == "qdisc":
            table = _whole_lines(plan, table)
        summed = _sum(name, table, keys, times, hosts if name == "counter" else [])
        found[name] = (summed, SourceReport(summed.num_rows, report.counts, report.problems))
    return found


def _whole_lines(plan: Plan, table: pa.Table) -> pa.Table:
    """A wire below a netem with the handle of that: both are one line."""
    handles = {line.handle for line in delay_lines(plan)}
    names = [next(iter(handles)) if name == WIRE_HANDLE else name for name in table["handle"].to_pylist()]
    column = pa.array(names, pa.string()).dictionary_encode()
    field = TABLES["qdisc"].field("handle")
    return table.set_column(table.column_names.index("handle"), field, column.cast(field.type))


def _read_by_all(table: pa.Table, keys: tuple[str, ...], parts: int) -> pa.Array:
    """Times at which all kernels read something that all have; those of other releases count other things, too."""
    found = table.group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
    return pc.unique(found.filter(pc.equal(found["count_all"], parts))["time_ns"])


def _sum(name: str, table: pa.Table, keys: tuple[str, ...], times: pa.Array, hosts: list[str]) -> pa.Table:
    """Of ``times``. ``hosts`` have rows in one kernel alone, at any time, and so have kernels themselves."""
    values = [column for column in table.column_names if column not in keys and pa.types.is_integer(table[column].type)]
    texts = [column for column in table.column_names if column not in keys and column not in values]
    plain = pa.table(
        {
            column: table[column].cast(pa.string()) if pa.types.is_dictionary(table[column].type) else table[column]
            for column in table.column_names
        }
    )
    plain = plain.append_column("position", pa.array(range(plain.num_rows), pa.int64()))
    grouped = plain.group_by(list(keys), use_threads=False).aggregate(
        [(value, "sum") for value in values]
        + [(text, "min") for text in texts]  # of netem and howdah_wire it is the former's name that comes last
        + [("position", "min")]
    )
    whole = pc.is_in(grouped["time_ns"], value_set=times)
    alone = pc.is_in(grouped["node"], value_set=pa.array(hosts, pa.string()))
    if hosts:
        alone = pc.or_(alone, pc.starts_with(grouped["node"], "@"))
    grouped = grouped.filter(pc.or_(whole, alone)).sort_by("position_min")
    columns = {}
    for column in table.column_names:
        if column in values:
            summed = grouped[f"{column}_sum"]
            columns[column] = _wrapped(summed) if column in _MODULO else summed
        else:
            columns[column] = grouped[column] if column in keys else grouped[f"{column}_min"]
    return pa.table(columns).cast(TABLES[name])


def _wrapped(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.bit_wise_and(values, pa.scalar(_U32 - 1, pa.int64()))
