# SPDX-License-Identifier: Apache-2.0
"""The host's side: softirq.jsonl becomes the table ``softirq``."""

from __future__ import annotations

import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.source import Context, SourceReport
from howdah.record import table as store
from howdah.record.raw import raw_value, read_raw_bytes

SCHEMA = pa.schema(
    [
        ("kind", pa.dictionary(pa.int16(), pa.string())),
        ("time_ns", pa.int64()),  # from the run's beginning, as in every table
        ("count", pa.int64()),  # since the kernel booted
    ]
)


def read(context: Context) -> tuple[pa.Table, SourceReport]:
    """One row a reading and kind. A line that cannot be read is a problem, and a run with problems is invalid."""
    report = SourceReport()
    columns: dict[str, list[object]] = {"kind": [], "time_ns": [], "count": []}
    try:
        lines = read_raw_bytes(context.directory.raw / "softirq.jsonl").splitlines()
    except FileNotFoundError:
        lines = []
        report.problems.append("softirq.jsonl is missing")
    for number, line in enumerate(lines, 1):
        try:
            reading = raw_value(line)
            rows = [(str(kind), int(reading["time_ns"]), int(count)) for kind, count in reading["counts"].items()]
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            report.problems.append(f"softirq.jsonl line {number} is not a reading: {error}")
            continue
        for kind, time_ns, count in rows:
            columns["kind"].append(kind)
            columns["time_ns"].append(time_ns - context.epoch_ns)
            columns["count"].append(count)
    table = store.table_of("softirq", columns)
    report.rows = table.num_rows
    return table, report


READER = Reader(SCHEMA, read)
