# SPDX-License-Identifier: Apache-2.0
"""Ingest counters.jsonl into the table ``counter``: one row per counter and reading."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from howdah.errors import HowdahError
from howdah.hooks import Reader
from howdah.ingest.source import Context, SourceReport
from howdah.record import table as store
from howdah.record.raw import raw_value, read_raw_bytes
from howdah.record.schema import COUNTER

_LARGEST = (1 << 63) - 1  # what a column holds; larger values saturate


def ingest_counters(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table, in the order of the file. A line that is not a reading is reported with its number and left out.

    ``node`` is null for a counter of the whole kernel.
    """
    report = SourceReport()
    path = context.directory.raw / "counters.jsonl"
    try:
        lines = read_raw_bytes(path).splitlines()  # each is decoded alone: a bad byte costs its line
    except FileNotFoundError:
        lines = []
        report.problems.append("counters.jsonl is missing")
    except OSError as error:
        raise HowdahError(f"cannot be read: {error.strerror}", where=str(path)) from error
    nodes: list[str | None] = []
    sources: list[str] = []
    times: list[int] = []
    sizes: list[int] = []
    names: list[str] = []
    values: list[int] = []
    for number, line in enumerate(lines, 1):
        try:
            reading = raw_value(line)
            counters = reading["values"]
            time_ns, node, source = int(reading["time_ns"]), reading["node"], str(reading["source"])
            numbers = [max(min(int(value), _LARGEST), -_LARGEST) for value in counters.values()]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            report.problems.append(f"counters.jsonl line {number} is not a reading: {type(error).__name__}: {error}")
            continue
        times.append(time_ns - context.epoch_ns)
        nodes.append(node)
        sources.append(source)
        sizes.append(len(numbers))
        names.extend(counters)
        values.extend(numbers)
    repeat = pa.array(np.repeat(np.arange(len(sizes)), sizes), pa.int64())
    table = store.table_of(
        "counter",
        {
            "node": pa.array(nodes, pa.string()).dictionary_encode().take(repeat),
            "source": pa.array(sources, pa.string()).dictionary_encode().take(repeat),
            "name": pa.array(names, pa.string()).dictionary_encode(),
            "time_ns": pa.array(times, pa.int64()).take(repeat),
            "value": pa.array(values, pa.int64()),
        },
    )
    report.rows = table.num_rows
    return table, report


READER = Reader(COUNTER, ingest_counters, table="counter")
