# SPDX-License-Identifier: Apache-2.0
"""The files of a tracepoint's collector to its records, and whose flow a record belongs to."""

from __future__ import annotations

import ipaddress
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Integers, Layout, Trace, read_trace
from howdah.ingest.source import Context, SourceReport
from howdah.ingest.trace_format import (
    EventFormat,
    TraceField,
    parse_event_format,
    parse_event_header,
    parse_page_header,
)
from howdah.plan.plan import Flow
from howdah.record.raw import raw_value, read_raw_bytes, read_raw_text

_UNKNOWN_SHOWN = 20


@dataclass(frozen=True)
class Tracepoint:
    """Names of the files of one tracepoint and the fields wanted of it.

    ``address`` is the field that holds the sender's IPv4 address in network order, ``address_offset`` where in it
    (bytes): sockaddr_in has it in its second word.
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
    """All processors' records, merged by time; the column ``address`` is the sender's address.

    What was lost or damaged goes into the report. Raises HowdahError if the kernel's description of the trace cannot
    be used.
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
    """Finds the records of one socket among those of thousands without looking at every record for each.

    Records are in buckets by their two ports, in 16 bits: numpy sorts those in linear time, and keeps their order.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        buckets = (trace.columns["sport"] ^ trace.columns["dport"]).astype(np.uint16)
        self._order = np.argsort(buckets, kind="stable")
        self._buckets = buckets[self._order]

    def of_sender(self, flow: Flow, port: int) -> Integers:
        """Positions of the records of the flow's sending socket, ascending; ``port`` is its own."""
        number = int.from_bytes(ipaddress.IPv4Address(flow.source_address).packed, "little")
        rows = self._between(port, flow.destination_port)
        ours: Integers = rows[self._trace.columns["address"][rows] == number]
        return ours

    def of_receiver(self, flow: Flow, port: int) -> Integers:
        """Positions of the records of the flow's receiving socket, ascending; ``port`` is the sender's."""
        return self._between(flow.destination_port, port)

    def _between(self, source: int, destination: int) -> Integers:
        bucket = np.uint16((source ^ destination) & 0xFFFF)
        begin, end = (int(np.searchsorted(self._buckets, bucket, side=side)) for side in ("left", "right"))
        rows = self._order[begin:end]
        columns = self._trace.columns
        found: Integers = rows[(columns["sport"][rows] == source) & (columns["dport"][rows] == destination)]
        return found


def report_unknown(trace: Trace, unknown: npt.NDArray[np.bool_], report: SourceReport) -> None:
    """Count records of sockets that belong to no flow, and name the sockets."""
    report.counts["unknown_rows"] = int(unknown.sum())
    pairs = Counter(
        zip(trace.columns["sport"][unknown].tolist(), trace.columns["dport"][unknown].tolist(), strict=True)
    )
    report.counts["unknown_sockets"] = [
        {"source_port": source, "destination_port": destination, "records": count}
        for (source, destination), count in pairs.most_common(_UNKNOWN_SHOWN)
    ]


def merge(parts: list[tuple[Flow, Integers]]) -> tuple[Integers, Integers]:
    """Positions of all flows' records in the order of the trace, and the flow each belongs to."""
    none = np.zeros(0, dtype=np.int64)
    rows = np.concatenate([none, *(rows for _flow, rows in parts)])
    flows = np.concatenate([none, *(np.full(rows.size, flow.id) for flow, rows in parts)])
    order = np.argsort(rows, kind="stable")
    return rows[order], flows[order]
