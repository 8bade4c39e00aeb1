# SPDX-License-Identifier: Apache-2.0
"""Lies of tables and of results: what one run says against what it, or another one, really was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from howdah.errors import HowdahError
from howdah.judge.run import judge
from howdah.measure.run import measure
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest import guest_run
from tests.liars.bench import Bench
from tests.liars.breaking import options, values
from tests.liars.liar import About, Catch, ToldLiar

Doctor = Callable[[RunDirectory], object]
Told = Callable[[Bench, Path], list[Catch]]


def _difference(first: RunDirectory, second: RunDirectory) -> list[Catch]:
    found = store.equal(first, second)
    return [] if found is None else [Catch("state", "difference", str(found))]


def _compared(name: str, about: About, lie: str, words: str, doctor: Doctor) -> ToldLiar:
    """A copy of a run that claims to be the same run."""

    def told(bench: Bench, path: Path) -> list[Catch]:
        directory, _plan = bench.copy("plain", path)
        doctor(directory)
        return _difference(bench.honest("plain").directory, directory)

    return ToldLiar(name, about, lie, Catch("state", "difference", words), "the same run again", told)


def _read(name: str, lie: str, words: str, doctor: Doctor) -> ToldLiar:
    """A table that cannot be what it claims to be: measure and judge must refuse it."""

    def told(bench: Bench, path: Path) -> list[Catch]:
        directory, plan = bench.copy("plain", path)
        doctor(directory)
        return _refused(directory, plan)

    return ToldLiar(name, "table", lie, Catch("error", "HowdahError", words), "the tables as they are", told)


def _refused(directory: RunDirectory, plan: Plan) -> list[Catch]:
    found = []
    for stage in (measure, judge):
        try:
            stage(directory, plan)
        except HowdahError as error:
            found.append(Catch("error", type(error).__name__, str(error)))
    return found


def _cell(table: str, column: str, row: int, more: int) -> Doctor:
    def doctor(directory: RunDirectory) -> None:
        found = store.read(directory, table)
        index = found.schema.get_field_index(column)
        values = found[column].to_pylist()
        values[row] += more
        store.write(
            directory,
            table,
            found.set_column(index, found.schema.field(index), pa.array(values, found.schema.field(index).type)),
        )

    return doctor


def _without_last(table: str) -> Doctor:
    def doctor(directory: RunDirectory) -> None:
        found = store.read(directory, table)
        store.write(directory, table, found.slice(0, found.num_rows - 1))

    return doctor


def _version(directory: RunDirectory) -> None:
    path = directory.table("tcp_probe")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"howdah.schema": b"999"}), path)


def _halved(directory: RunDirectory) -> None:
    path = directory.table("tcp_probe")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _same_run(bench: Bench, path: Path) -> list[Catch]:
    plan = bench.plan("plain")
    return _difference(bench.honest("plain").directory, bench.carry_out(plan, plan, path))


def _meddled(bench: Bench, path: Path) -> list[Catch]:
    with guest_run.agent_in(MEDDLING):
        return _same_run(bench, path)


MEDDLING = """
import runpy, sys
sys.path.insert(0, "/howdah/in")
from collectors.interval.qdisc import QdiscCollector

sample = QdiscCollector.sample

def meddle(self, now_ns):
    with open("/sys/module/tcp_cubic/parameters/hystart", "w") as file:
        file.write("0")
    sample(self, now_ns)

QdiscCollector.sample = meddle
runpy.run_module("howdah.agent", run_name="__main__", alter_sys=True)
"""


def _other_seed(bench: Bench, path: Path) -> list[Catch]:
    plan = bench.plan("lossy")
    other = options("qdisc", {"seed": 12345}, kind="netem", node="right")(plan)
    return _difference(bench.honest("lossy").directory, bench.carry_out(plan, other, path))


def _other_kernel_parameter(bench: Bench, path: Path) -> list[Catch]:
    """The judge believes the plan; the tables do not."""
    plan = bench.plan("plain")
    other = values("sysctl", {"value": "4096 16384 131072"}, node="r1", name="net.ipv4.tcp_rmem")(plan)
    return _difference(bench.honest("plain").directory, bench.carry_out(other, other, path))


def _as_they_are(bench: Bench, path: Path) -> list[Catch]:
    return _refused(*bench.copy("plain", path))


HONEST_RESULTS: dict[str, Told] = {"the same run again": _same_run, "the tables as they are": _as_they_are}

_DIFFERENCE = "the same run again"

RESULTS = [
    _compared(
        "one-window-changed",
        "table",
        "One window of one acknowledgement is a packet larger in a copy of the run.",
        "tcp_probe.cwnd_packets row 100",
        _cell("tcp_probe", "cwnd_packets", 100, 1),
    ),
    _compared(
        "one-record-less",
        "table",
        "The last record is missing from a copy of the run.",
        "rows against",
        _without_last("tcp_probe"),
    ),
    _compared(
        "table-missing-from-a-copy",
        "table",
        "A copy of the run lacks a table.",
        "has this table",
        lambda directory: directory.table("counter").unlink(),
    ),
    ToldLiar(
        "collector-that-meddles",
        "result",
        "A collector switches HyStart off while it reads the queue.",
        Catch("state", "difference", "tcp_probe"),
        _DIFFERENCE,
        _meddled,
    ),
    ToldLiar(
        "another-seed",
        "result",
        "A run with other random losses calls itself the same run.",
        Catch("state", "difference", "tcp_probe"),
        _DIFFERENCE,
        _other_seed,
    ),
    ToldLiar(
        "another-window",
        "result",
        "A run whose plan gives the receiver a small window calls itself the same run.",
        Catch("state", "difference", "tcp_probe"),
        _DIFFERENCE,
        _other_kernel_parameter,
    ),
    _read("table-missing", "A table is gone.", "table tcp_probe is missing", lambda d: d.table("tcp_probe").unlink()),
    _read("table-cut-short", "A table's file ends in its middle.", "table tcp_probe cannot be read", _halved),
    _read("table-of-another-release", "A table was written by another release.", "schema version 999", _version),
]
