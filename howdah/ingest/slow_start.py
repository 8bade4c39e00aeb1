# SPDX-License-Identifier: Apache-2.0
"""slow_start.bin to the table ``slow_start``: what the slow-start modules reported of their decisions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from howdah.ingest.ring_buffer import Integers, Trace
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.ingest.tracepoint import (
    Sockets,
    Tracepoint,
    merge,
    read_tracepoint,
    report_unknown,
)
from howdah.record import table as store
from howdah.record.event import EVENTS, REASONS, name_of
from howdah.record.raw import raw_exists
from howdah.record.schema import INFINITE_SSTHRESH, SLOW_START

NO_RTT = 0xFFFFFFFF  # SLOW_START_NO_RTT
MODULE = "howdah_slow_start"
_TRACEPOINT = Tracepoint(
    name="slow_start",
    account="slow_start.json",
    fields=(
        *("sport", "dport", "event", "reason", "cwnd", "ssthresh"),
        *("quantity", "threshold", "round", "min_rtt_us"),
    ),
    address="saddr",
)


def ingest_slow_start(context: Context) -> tuple[pa.Table, SourceReport]:
    """Decode and name events; rows are in the order of the reports.

    The table is empty where the module was not loaded. Events and reasons without a name here are kept as
    ``unknown-N`` and counted. Raises HowdahError if the kernel's description of the trace cannot be used.
    """
    report = SourceReport()
    if not (context.plan.collect.slow_start and _was_collected(context)):
        return SLOW_START.empty_table(), report
    trace = read_tracepoint(context, _TRACEPOINT, report)
    taken = np.zeros(trace.time_ns.size, dtype=bool)
    sockets = Sockets(trace)
    parts = []
    for flow in context.plan.flows:
        port = context.source_port(flow)
        ours = sockets.of_sender(flow, port)
        parts.append((flow, ours))
        taken[ours] = True
        taken[sockets.of_receiver(flow, port)] = True
    report_unknown(trace, ~taken, report)
    rows, flows = merge(parts)
    table = _table(trace, rows, flows, context.epoch_ns)
    report.rows = table.num_rows
    report.counts["other_rows"] = int(taken.sum()) - table.num_rows
    report.counts["unknown_names"] = _unknown(trace)
    return table, report


def _was_collected(context: Context) -> bool:
    """The module was loaded, or a file of the collector is there; a missing account is then a problem."""
    raw = context.directory.raw
    loaded = MODULE in (context.agent.modules or {}) and bool(context.plan.flows)
    return loaded or raw_exists(raw / _TRACEPOINT.account) or raw_exists(raw / "slow_start.bin")


def _table(trace: Trace, rows: Integers, flows: Integers, epoch_ns: int) -> pa.Table:
    columns = {name: column[rows] for name, column in trace.columns.items()}
    return store.table_of(
        "slow_start",
        {
            "flow": flows,
            "time_ns": trace.time_ns[rows] - epoch_ns,
            "event": _named(columns["event"], EVENTS),
            "reason": _named(columns["reason"], REASONS),
            "cwnd_packets": columns["cwnd"],
            "ssthresh_packets": nullable(columns["ssthresh"], columns["ssthresh"] < INFINITE_SSTHRESH),
            "quantity": columns["quantity"],
            "threshold": columns["threshold"],
            "round": columns["round"],
            "min_rtt_us": nullable(columns["min_rtt_us"], columns["min_rtt_us"] != NO_RTT),
        },
    )


def _named(numbers: Integers, names: tuple[str, ...]) -> pa.DictionaryArray:
    known, codes = np.unique(numbers, return_inverse=True)
    return texts(np.asarray(codes, dtype=np.int64), [name_of(number, names) for number in known.tolist()])


def _unknown(trace: Trace) -> list[str]:
    """Names of events and reasons that this program does not know, as the table has them."""
    found = set()
    for column, names in (("event", EVENTS), ("reason", REASONS)):
        numbers = np.unique(trace.columns[column])
        found |= {f"{column} {name_of(number, names)}" for number in numbers[numbers >= len(names)].tolist()}
    return sorted(found)
