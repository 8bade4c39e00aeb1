# SPDX-License-Identifier: Apache-2.0
"""tcp_probe.bin to the table ``tcp_probe``: one row a segment that a sender received."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from howdah.ingest.ring_buffer import Integers, Trace
from howdah.ingest.source import Context, SourceReport, nullable
from howdah.ingest.tracepoint import (
    Sockets,
    Tracepoint,
    merge,
    read_tracepoint,
    report_unknown,
)
from howdah.plan.plan import Flow
from howdah.record import table as store
from howdah.record.schema import INFINITE_SSTHRESH, TCP_PROBE

_TRACEPOINT = Tracepoint(
    name="tcp_probe",
    account="trace.json",
    fields=("sport", "dport", "data_len", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt", "rcv_wnd"),
    address="saddr",
    address_offset=4,
)


def ingest_tcp_probe(context: Context) -> tuple[pa.Table, SourceReport]:
    """Decode, sort out whose records they are, and make sequence numbers relative.

    Rows are in the order of arrival. Records of receivers are counted and left out; so are those of sockets that
    belong to no flow, which are also reported. Raises HowdahError if the kernel's description of the trace cannot be
    used.
    """
    report = SourceReport()
    if not context.plan.collect.tcp_probe:
        return TCP_PROBE.empty_table(), report
    trace = read_tracepoint(context, _TRACEPOINT, report)
    counts = report.counts
    taken = np.zeros(trace.time_ns.size, dtype=bool)
    sockets = Sockets(trace)
    senders = []
    for flow in context.plan.flows:
        ours = sockets.of_sender(flow, context.source_port(flow))
        senders.append((flow, ours))
        theirs = sockets.of_receiver(flow, context.source_port(flow))
        counts["receiver_rows"] = counts.get("receiver_rows", 0) + int((~taken[theirs]).sum())
        taken[ours] = True
        taken[theirs] = True
    # A program's port is also that of its further connections, which are not measured; and, on another host,
    # maybe that of another flow.
    for flow in context.plan.flows:
        for port in _other_ports(flow):
            control = ~taken & ((trace.columns["dport"] == port) | (trace.columns["sport"] == port))
            counts["control_rows"] = counts.get("control_rows", 0) + int(control.sum())
            taken |= control
    report_unknown(trace, ~taken, report)
    rows, flows = merge(senders)
    table = _table(trace, rows, flows, context.epoch_ns)
    report.rows = table.num_rows
    return table, report


def _other_ports(flow: Flow) -> list[int]:
    """Ports of further connections of the programs that make a flow."""
    if flow.kind.control_connection:
        return [flow.destination_port]
    if flow.program is None or not flow.is_tcp:
        return []
    server = flow.source_port if flow.program.sends == "server" else flow.destination_port
    return [server, *flow.program.ports]


def unwrap(sequence: Integers) -> Integers:
    """32-bit sequence numbers as a continuous series that starts at 0 (differences are taken modulo 2^32, signed)."""
    if not sequence.size:
        return sequence
    steps = np.diff(sequence).astype(np.int32).astype(np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps)])


def _table(trace: Trace, rows: Integers, flows: Integers, epoch_ns: int) -> pa.Table:
    columns = {name: column[rows] for name, column in trace.columns.items()}
    una = np.zeros(rows.size, dtype=np.int64)
    by_flow = np.argsort(flows, kind="stable")
    for mine in np.split(by_flow, np.flatnonzero(np.diff(flows[by_flow])) + 1):
        # A sender's first record is its first ACK of data before processing: snd_una is the first data byte.
        una[mine] = unwrap(columns["snd_una"][mine])
    ahead = (columns["snd_nxt"] - columns["snd_una"]).astype(np.int32).astype(np.int64)
    finite = columns["ssthresh"] < INFINITE_SSTHRESH
    return store.table_of(
        "tcp_probe",
        {
            "flow": flows,
            "time_ns": trace.time_ns[rows] - epoch_ns,
            "data_len_bytes": columns["data_len"],
            "snd_nxt_bytes": una + ahead,
            "snd_una_bytes": una,
            "cwnd_packets": columns["snd_cwnd"],
            "ssthresh_packets": nullable(columns["ssthresh"], finite),
            "snd_wnd_bytes": columns["snd_wnd"],
            "srtt_us": columns["srtt"],
            "rcv_wnd_bytes": columns["rcv_wnd"],
        },
    )
