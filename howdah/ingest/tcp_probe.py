# SPDX-License-Identifier: Apache-2.0
"""tcp_probe.bin to the table ``tcp_probe``: one row a segment that a sender received."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Integers, Layout, Trace, read_trace
from howdah.ingest.source import Context, SourceReport, nullable
from howdah.ingest.trace_format import parse_event_format, parse_event_header, parse_page_header
from howdah.plan.plan import Flow
from howdah.tables import store
from howdah.tables.schema import TCP_PROBE

INFINITE_SSTHRESH = 0x7FFFFFFF  # TCP_INFINITE_SSTHRESH
_NAMES = ("sport", "dport", "data_len", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt", "rcv_wnd")
_UNKNOWN_SHOWN = 20


def ingest_tcp_probe(context: Context) -> tuple[pa.Table, SourceReport]:
    """Decode, sort out whose records they are, and make sequence numbers relative.

    Rows are in the order of arrival. Records of receivers are counted and left out; so are those of sockets that
    belong to no flow, which are also reported. Raises HowdahError if the kernel's description of the trace cannot be
    used.
    """
    report = SourceReport()
    raw = context.directory.raw
    if not context.plan.collect.tcp_probe:
        return TCP_PROBE.empty_table(), report
    trace = _read(context, report)
    counts = report.counts
    addresses = trace.columns.pop("address")
    taken = np.zeros(trace.time_ns.size, dtype=bool)
    senders = []
    for flow in context.plan.flows:
        ours = _of_sender(trace, addresses, flow, context.source_port(flow))
        senders.append((flow, np.flatnonzero(ours)))
        theirs = _of_receiver(trace, flow, context.source_port(flow))
        counts["receiver_rows"] = counts.get("receiver_rows", 0) + int((theirs & ~taken).sum())
        taken |= ours | theirs
        if flow.traffic == "iperf3":
            # Its control connection shares the server's port and is not measured.
            control = ~taken & (
                (trace.columns["dport"] == flow.destination_port) | (trace.columns["sport"] == flow.destination_port)
            )
            counts["control_rows"] = counts.get("control_rows", 0) + int(control.sum())
            taken |= control
    _report_unknown(trace, ~taken, report)
    rows, flows = _merge(senders)
    table = _table(trace, rows, flows, context.epoch_ns)
    report.rows = table.num_rows
    counts["lost_events"] = trace.lost_events
    counts["gaps_of_unknown_size"] = trace.lost_uncounted
    counts["damaged"] = trace.damaged
    counts["damaged_bytes"] = trace.damaged_bytes
    report.problems.extend(str(item) for item in trace.damage)
    if trace.damaged > len(trace.damage):
        report.problems.append(f"{trace.damaged - len(trace.damage)} more damaged places in {raw.name}/tcp_probe.bin")
    return table, report


def _read(context: Context, report: SourceReport) -> Trace:
    """All processors' records, merged by time."""
    raw = context.directory.raw
    try:
        described = json.loads((raw / "trace.json").read_text(encoding="utf-8"))
        texts = {
            name: (raw / name).read_text(encoding="ascii")
            for name in ("header_page", "header_event", "tcp_probe.format")
        }
        subbuffer_bytes = int(described["subbuffer_bytes"])
        files = [item["file"] for item in described["cpus"]]
        expected = {item["file"]: int(item["bytes"]) for item in described["cpus"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        report.problems.append(f"the trace cannot be read: {error}")
        return _nothing()
    layout = Layout(
        parse_page_header(texts["header_page"], str(raw / "header_page")),
        parse_event_header(texts["header_event"], str(raw / "header_event")),
        parse_event_format(texts["tcp_probe.format"], str(raw / "tcp_probe.format")),
        subbuffer_bytes,
    )
    if described.get("clock") != "mono":
        report.problems.append(f"the trace clock is {described.get('clock')!r}, not mono: its times mean nothing here")
    # sockaddr_in holds the address in its second word; the rest of saddr is of no use.
    saddr = layout.format.field("saddr")
    layout.format.fields["address"] = type(saddr)("address", saddr.offset + 4, 4, False)
    total = _nothing()
    for name in files:
        try:
            part = read_trace(raw / name, layout, (*_NAMES, "address"))
        except HowdahError as error:
            report.problems.append(str(error))
            continue
        size = (raw / name).stat().st_size
        if size != expected[name]:
            report.problems.append(f"{name} has {size} bytes, the collector wrote {expected[name]}")
        total = _join(total, part)
    if len(files) > 1:
        order = np.argsort(total.time_ns, kind="stable")
        total.time_ns = total.time_ns[order]
        total.columns = {name: column[order] for name, column in total.columns.items()}
    backwards = int((np.diff(total.time_ns) < 0).sum())
    if backwards:
        report.problems.append(f"time runs backwards at {backwards} places of the trace: sub-buffers are out of order")
    return total


def _nothing() -> Trace:
    none = np.zeros(0, dtype=np.int64)
    return Trace(none, dict.fromkeys((*_NAMES, "address"), none))


def _join(a: Trace, b: Trace) -> Trace:
    if not a.time_ns.size and not a.damaged:
        return b
    return Trace(
        np.concatenate([a.time_ns, b.time_ns]),
        {name: np.concatenate([a.columns[name], b.columns[name]]) for name in a.columns},
        a.lost_events + b.lost_events,
        a.lost_uncounted + b.lost_uncounted,
        a.foreign_events + b.foreign_events,
        a.damaged + b.damaged,
        a.damaged_bytes + b.damaged_bytes,
        a.damage + b.damage,
    )


def _of_sender(trace: Trace, addresses: Integers, flow: Flow, port: int) -> Any:
    number = int.from_bytes(ipaddress.IPv4Address(flow.source_address).packed, "little")
    columns = trace.columns
    return (columns["sport"] == port) & (columns["dport"] == flow.destination_port) & (addresses == number)


def _of_receiver(trace: Trace, flow: Flow, port: int) -> Any:
    return (trace.columns["dport"] == port) & (trace.columns["sport"] == flow.destination_port)


def _report_unknown(trace: Trace, unknown: Any, report: SourceReport) -> None:
    """Count records of sockets that belong to no flow, and name the sockets."""
    report.counts["unknown_rows"] = int(unknown.sum())
    pairs = Counter(
        zip(trace.columns["sport"][unknown].tolist(), trace.columns["dport"][unknown].tolist(), strict=True)
    )
    report.counts["unknown_sockets"] = [
        {"source_port": source, "destination_port": destination, "records": count}
        for (source, destination), count in pairs.most_common(_UNKNOWN_SHOWN)
    ]


def _merge(senders: list[tuple[Flow, Integers]]) -> tuple[Integers, Integers]:
    """Positions of all flows' records in the order of the trace, and the flow each belongs to."""
    none = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([none, *(rows for _flow, rows in senders)])
    flows = np.concatenate([none, *(np.full(rows.size, flow.id) for flow, rows in senders)])
    order = np.argsort(rows, kind="stable")
    return rows[order], flows[order]


def unwrap(sequence: Integers) -> Integers:
    """32-bit sequence numbers as a continuous series that starts at 0 (differences are taken modulo 2^32, signed)."""
    if not sequence.size:
        return sequence
    steps = np.diff(sequence).astype(np.int32).astype(np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps)])


def _table(trace: Trace, rows: Integers, flows: Integers, epoch_ns: int) -> pa.Table:
    columns = {name: column[rows] for name, column in trace.columns.items()}
    una = np.zeros(rows.size, dtype=np.int64)
    for flow in np.unique(flows).tolist():
        mine = flows == flow
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
