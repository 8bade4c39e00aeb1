# SPDX-License-Identifier: Apache-2.0
"""Ingest runs on several machines: each machine's raw files like a run of its own, with corrected times; then join the
tables.

Several kernels in one virtual time each have the whole network and read its counters at the same instants, and a packet
is in one kernel at a time. So a row of a queue or an interface is the sum over the kernels. What left by a wire less
what arrived, modulo 2^32, is the wire's queue. A kernel that fell silent early is no longer read; rows that not all
kernels have are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.errors import HowdahError
from howdah.ingest.source import Context, Made, SourceReport
from howdah.plan.line import WIRE_HANDLE, delay_lines
from howdah.plan.plan import Plan, collect_of
from howdah.record.clock import ClockRecord, Correction
from howdah.record.directory import RunDirectory
from howdah.record.raw import raw_value, read_agent, read_raw_bytes
from howdah.record.schema import TABLES

_U32 = 2**32
_KEYS = {
    "qdisc": ("time_ns", "node", "interface", "handle"),
    "interface": ("time_ns", "node", "interface"),
    "counter": ("time_ns", "node", "source", "name"),
}
_MODULO = ("backlog_bytes", "backlog_packets")


def own_counters(plan: Plan, part: str, table: pa.Table) -> pa.Table:
    """Select a kernel's counters of hosts that live in it, of routers, and of the kernel itself."""
    foreign = [host for other in plan.parts if other.name != part for host in other.hosts]
    elsewhere = pc.is_in(table["node"].cast(pa.string()), value_set=pa.array(foreign, pa.string()))
    return table.filter(pc.invert(elsewhere))


def add_up(plan: Plan, made: Made) -> Made:
    """Sum the tables of counters over all kernels: one row per reading and object. Other tables stay as they are."""
    hosts = [host for part in plan.parts for host in part.hosts]
    found = dict(made)
    for name, keys in _KEYS.items():
        table, report = made[name]
        times = _read_by_all(table, keys, len(plan.parts))
        if name == "qdisc":
            table = _whole_lines(plan, table)
        summed = _total(name, table, keys, times, hosts if name == "counter" else [])
        found[name] = (summed, SourceReport(summed.num_rows, report.counts, report.problems))
    return found


def _whole_lines(plan: Plan, table: pa.Table) -> pa.Table:
    """Give a wire below a netem the handle of the netem, so that both are one line."""
    handles = {line.handle for line in delay_lines(plan)}
    names = [next(iter(handles)) if name == WIRE_HANDLE else name for name in table["handle"].to_pylist()]
    column = pa.array(names, pa.string()).dictionary_encode()
    field = TABLES["qdisc"].field("handle")
    return table.set_column(table.column_names.index("handle"), field, column.cast(field.type))


def _read_by_all(table: pa.Table, keys: tuple[str, ...], parts: int) -> pa.Array:
    """Times at which all kernels read an object that all have; kernels of different releases count different things."""
    found = table.group_by(list(keys), use_threads=False).aggregate([([], "count_all")])
    return pc.unique(found.filter(pc.equal(found["count_all"], parts))["time_ns"])


def _total(name: str, table: pa.Table, keys: tuple[str, ...], times: pa.Array, hosts: list[str]) -> pa.Table:
    """Sum the rows at ``times``. Rows of ``hosts`` and of whole kernels are in one kernel only and are kept at any
    time."""
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


@dataclass(frozen=True)
class MachineDirectory(RunDirectory):
    """A run directory whose raw/ is one machine's."""

    machine: str = ""

    @property
    def raw(self) -> Path:
        return self.path / "raw" / self.machine


def ingest_machines(
    directory: RunDirectory, plan: Plan, clocks: ClockRecord, sources: Callable[[Context], Made]
) -> Made:
    """Make the tables of ``sources`` for every machine and join them in the order of the experiment's time.

    A counter of a whole kernel has ``@MACHINE`` as its node. Raise HowdahError if a machine's part cannot be read.
    """
    parts = []
    for name, entry in clocks.machines.items():
        place = MachineDirectory(directory.path, name)
        context = Context(place, _part_of(plan, place), read_agent(place), entry.epoch_monotonic_ns)
        own = {table: _put_right(name, table, made, entry.correction) for table, made in sources(context).items()}
        if plan.parts:
            own["counter"] = (own_counters(plan, name, own["counter"][0]), own["counter"][1])
        parts.append((name, own))
    tables = dict.fromkeys(table for _, made in parts for table in made)  # not each machine captures packets
    joined = {table: _join(table, [(name, made[table]) for name, made in parts if table in made]) for table in tables}
    return add_up(plan, joined) if plan.parts else joined


def _part_of(plan: Plan, place: MachineDirectory) -> Plan:
    """The plan with what was collected on that machine, and with the flows that may have rows there."""
    path = place.raw / "part.json"
    try:
        value = raw_value(read_raw_bytes(path))
    except (OSError, ValueError) as error:
        raise HowdahError(f"cannot be read: {error}", where=str(path)) from error
    try:
        part = collect_of((value if isinstance(value, dict) else {})["collect"])
        collect = dataclasses.replace(
            plan.collect.at(qdisc=part.qdisc_us), tcp_probe=part.tcp_probe, slow_start=part.slow_start, pcap=part.pcap
        )
        here = {flow["id"] for flow in value["flows"]}
    except (KeyError, TypeError) as error:
        raise HowdahError(f"this is not a part of a plan: {error}", where=str(path)) from error
    return dataclasses.replace(plan, collect=collect, flows=[flow for flow in plan.flows if flow.id in here])


def _put_right(
    machine: str, name: str, made: tuple[pa.Table, SourceReport], correction: Correction
) -> tuple[pa.Table, SourceReport]:
    table, report = made
    if "time_ns" in table.column_names:
        moved = correction.apply(table["time_ns"].to_numpy().astype(np.int64))
        table = table.set_column(table.column_names.index("time_ns"), TABLES[name].field("time_ns"), pa.array(moved))
    if name == "counter":
        nodes = pc.fill_null(table["node"].cast(pa.string()), f"@{machine}").dictionary_encode()
        field = TABLES[name].field("node")
        table = table.set_column(table.column_names.index("node"), field, nodes.cast(field.type))
    return table, report


def _join(name: str, parts: list[tuple[str, tuple[pa.Table, SourceReport]]]) -> tuple[pa.Table, SourceReport]:
    table = pa.concat_tables([made[0] for _, made in parts]).unify_dictionaries()
    if "time_ns" in table.column_names and sum(made[0].num_rows > 0 for _, made in parts) > 1:
        order = np.argsort(table["time_ns"].to_numpy(), kind="stable")
        table = table.take(pa.array(order))
    table = table.combine_chunks()
    report = SourceReport(rows=table.num_rows)
    for machine, (_, own) in parts:
        report.problems += [f"{machine}: {problem}" for problem in own.problems]
        for key, value in own.counts.items():
            report.counts[key] = _sum(report.counts.get(key), value)
    return table.cast(TABLES[name]), report


def _sum(one: Any, other: Any) -> Any:
    """Combine two reported values: add numbers, concatenate lists without repetitions, and keep the first of others."""
    if one is None:
        return other
    if isinstance(one, list) and isinstance(other, list):
        return one + [item for item in other if item not in one]
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one + other
    return one
