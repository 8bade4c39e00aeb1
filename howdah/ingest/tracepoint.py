# SPDX-License-Identifier: Apache-2.0
"""Read the files of a tracepoint's collector, and assign the records to flows.

They make the tables ``tcp_probe``, one row per segment that a sender received, and ``slow_start``, the decisions that
the slow-start modules reported.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Integers, Layout, Trace, read_trace
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.ingest.trace_format import (
    EventFormat,
    TraceField,
    parse_event_format,
    parse_event_header,
    parse_page_header,
)
from howdah.plan.plan import Flow
from howdah.record import table as store
from howdah.record.raw import raw_exists, raw_value, read_raw_bytes, read_raw_text
from howdah.record.schema import EVENTS, INFINITE_SSTHRESH, REASONS, SLOW_START, TCP_PROBE, name_of

_UNKNOWN_SHOWN = 20


@dataclass(frozen=True)
class Tracepoint:
    """The names of one tracepoint's files, and the fields to read.

    ``address`` is the field with the sender's IPv4 address in network byte order, ``address_offset`` its byte offset in
    that field: in sockaddr_in it is the second word.
    """

    name: str
    account: str
    fields: tuple[str, ...]
    address: str
    address_offset: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.fields, "address")


def read_tracepoint(context: Context, tracepoint: Tracepoint, report: SourceReport) -> Trace:
    """Read the records of all processors, merged by time; the column ``address`` is the sender's address.

    Losses and damage go into the report. Raise HowdahError if the kernel's description of the trace cannot be used.
    """
    raw = context.directory.raw
    name = tracepoint.name
    try:
        described = raw_value(read_raw_bytes(raw / tracepoint.account))
        texts = {file: read_raw_text(raw / file, "ascii") for file in ("header_page", "header_event", f"{name}.format")}
        subbuffer_bytes = int(described["subbuffer_bytes"])
        files = [item["file"] for item in described["cpus"]]
        expected = {item["file"]: int(item["bytes"]) for item in described["cpus"]}
        if len(expected) < len(files):
            raise ValueError(f"{tracepoint.account} names a file twice, whose records would count twice")
        if any(Path(file).name != file for file in files):
            raise ValueError(f"{tracepoint.account} names a file that is not in {raw.name}/")
    except (OSError, ValueError, KeyError, TypeError) as error:
        report.problems.append(f"the trace cannot be read: {error}")
        return _nothing(tracepoint)
    layout = Layout(
        parse_page_header(texts["header_page"], str(raw / "header_page")),
        parse_event_header(texts["header_event"], str(raw / "header_event")),
        _with_address(parse_event_format(texts[f"{name}.format"], str(raw / f"{name}.format")), tracepoint),
        subbuffer_bytes,
    )
    if described.get("clock") != "mono":
        report.problems.append(f"the trace clock is {described.get('clock')!r}, not mono: its times mean nothing here")
    total = _nothing(tracepoint)
    for file in files:
        try:
            part = read_trace(raw / file, layout, tracepoint.columns)
        except HowdahError as error:
            report.problems.append(str(error))
            continue
        if part.file_bytes != expected[file]:
            report.problems.append(f"{file} has {part.file_bytes} bytes, the collector wrote {expected[file]}")
        total = _join(total, part)
    if len(files) > 1:
        order = np.argsort(total.time_ns, kind="stable")
        total.time_ns = total.time_ns[order]
        total.columns = {column: values[order] for column, values in total.columns.items()}
    backwards = int((np.diff(total.time_ns) < 0).sum())
    if backwards:
        report.problems.append(f"time runs backwards at {backwards} places of the trace: sub-buffers are out of order")
    _account(total, tracepoint, raw.name, report)
    return total


def _with_address(format_: EventFormat, tracepoint: Tracepoint) -> EventFormat:
    source = format_.field(tracepoint.address)
    format_.fields["address"] = TraceField("address", source.offset + tracepoint.address_offset, 4, False)
    return format_


def _account(trace: Trace, tracepoint: Tracepoint, place: str, report: SourceReport) -> None:
    report.counts["lost_events"] = trace.lost_events
    report.counts["gaps_of_unknown_size"] = trace.lost_uncounted
    report.counts["damaged"] = trace.damaged
    report.counts["damaged_bytes"] = trace.damaged_bytes
    report.problems.extend(str(item) for item in trace.damage)
    if trace.damaged > len(trace.damage):
        more = trace.damaged - len(trace.damage)
        report.problems.append(f"{more} more damaged places in {place}/{tracepoint.name}.bin")


def _nothing(tracepoint: Tracepoint) -> Trace:
    none = np.zeros(0, dtype=np.int64)
    return Trace(none, dict.fromkeys(tracepoint.columns, none))


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


class Sockets:
    """Finds the records of one socket among thousands of sockets without scanning all records.

    Records are in buckets by their two ports, in 16 bits, which numpy sorts stably in linear time.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        buckets = (trace.columns["sport"] ^ trace.columns["dport"]).astype(np.uint16)
        self._order = np.argsort(buckets, kind="stable")
        self._buckets = buckets[self._order]

    def of_sender(self, flow: Flow, port: int) -> Integers:
        """Positions of the records of the flow's sending socket, ascending; ``port`` is its own port."""
        number = int.from_bytes(ipaddress.IPv4Address(flow.source_address).packed, "little")
        rows = self._between(port, flow.destination_port)
        ours: Integers = rows[self._trace.columns["address"][rows] == number]
        return ours

    def of_receiver(self, flow: Flow, port: int) -> Integers:
        """Positions of the records of the flow's receiving socket, ascending; ``port`` is the sender's port."""
        return self._between(flow.destination_port, port)

    def _between(self, source: int, destination: int) -> Integers:
        bucket = np.uint16((source ^ destination) & 0xFFFF)
        begin, end = (int(np.searchsorted(self._buckets, bucket, side=side)) for side in ("left", "right"))
        rows = self._order[begin:end]
        columns = self._trace.columns
        found: Integers = rows[(columns["sport"][rows] == source) & (columns["dport"][rows] == destination)]
        return found


def report_unknown(trace: Trace, unknown: npt.NDArray[np.bool_], report: SourceReport) -> None:
    """Count the records of sockets that belong to no flow, and name these sockets."""
    report.counts["unknown_rows"] = int(unknown.sum())
    pairs = Counter(
        zip(trace.columns["sport"][unknown].tolist(), trace.columns["dport"][unknown].tolist(), strict=True)
    )
    report.counts["unknown_sockets"] = [
        {"source_port": source, "destination_port": destination, "records": count}
        for (source, destination), count in pairs.most_common(_UNKNOWN_SHOWN)
    ]


def merge(parts: list[tuple[Flow, Integers]]) -> tuple[Integers, Integers]:
    """Positions of all flows' records in the order of the trace, and the flow of each."""
    none = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([none, *(rows for _flow, rows in parts)])
    flows = np.concatenate([none, *(np.full(rows.size, flow.id) for flow, rows in parts)])
    order = np.argsort(rows, kind="stable")
    return rows[order], flows[order]


_TCP_PROBE = Tracepoint(
    name="tcp_probe",
    account="trace.json",
    fields=("sport", "dport", "data_len", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt", "rcv_wnd"),
    address="saddr",
    address_offset=4,
)


def ingest_tcp_probe(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table, in order of arrival: decode, assign records to flows, and make sequence numbers relative.

    Records of receivers are counted and left out, as are those of sockets that belong to no flow, which are also
    reported. Raise HowdahError if the kernel's description of the trace cannot be used.
    """
    report = SourceReport()
    if not context.plan.collect.tcp_probe:
        return TCP_PROBE.empty_table(), report
    trace = read_tracepoint(context, _TCP_PROBE, report)
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
    table = _tcp_probe_table(trace, rows, flows, context.epoch_ns)
    report.rows = table.num_rows
    return table, report


def _other_ports(flow: Flow) -> list[int]:
    """Ports of further connections of a flow's programs."""
    if flow.kind.control_connection:
        return [flow.destination_port]
    if flow.program is None or not flow.is_tcp:
        return []
    server = flow.source_port if flow.program.sends == "server" else flow.destination_port
    return [server, *flow.program.ports]


def unwrap(sequence: Integers) -> Integers:
    """32-bit sequence numbers as a continuous series from 0 (differences are taken modulo 2^32, signed)."""
    if not sequence.size:
        return sequence
    steps = np.diff(sequence).astype(np.int32).astype(np.int64)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(steps)])


def _tcp_probe_table(trace: Trace, rows: Integers, flows: Integers, epoch_ns: int) -> pa.Table:
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


NO_RTT = 0xFFFFFFFF  # SLOW_START_NO_RTT
MODULE = "howdah_slow_start"
_SLOW_START = Tracepoint(
    name="slow_start",
    account="slow_start.json",
    fields=(
        *("sport", "dport", "event", "reason", "cwnd", "ssthresh"),
        *("quantity", "threshold", "round", "min_rtt_us"),
    ),
    address="saddr",
)


def ingest_slow_start(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table, in the order of the reports: decode and name events.

    It is empty if the module was not loaded. Unknown events and reasons are kept as ``unknown-N`` and counted. Raise
    HowdahError if the kernel's description of the trace cannot be used.
    """
    report = SourceReport()
    if not (context.plan.collect.slow_start and _was_collected(context)):
        return SLOW_START.empty_table(), report
    trace = read_tracepoint(context, _SLOW_START, report)
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
    table = _slow_start_table(trace, rows, flows, context.epoch_ns)
    report.rows = table.num_rows
    report.counts["other_rows"] = int(taken.sum()) - table.num_rows
    report.counts["unknown_names"] = _unknown(trace)
    return table, report


def _was_collected(context: Context) -> bool:
    """Whether the module was loaded or the collector left a file; only then is a missing account a problem."""
    raw = context.directory.raw
    loaded = MODULE in (context.agent.modules or {}) and bool(context.plan.flows)
    return loaded or raw_exists(raw / _SLOW_START.account) or raw_exists(raw / "slow_start.bin")


def _slow_start_table(trace: Trace, rows: Integers, flows: Integers, epoch_ns: int) -> pa.Table:
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
    """Names of events and reasons unknown to this program, as in the table."""
    found = set()
    for column, names in (("event", EVENTS), ("reason", REASONS)):
        numbers = np.unique(trace.columns[column])
        found |= {f"{column} {name_of(number, names)}" for number in numbers[numbers >= len(names)].tolist()}
    return sorted(found)
