# SPDX-License-Identifier: Apache-2.0
"""QUIC senders' logs as rows of the tables that kernels fill: ``tcp_probe``, ``tcp_info``, ``slow_start``.

Windows are bytes in QUIC and packets in these tables: bytes divided by the largest packet that the sender sent, rounded
down. Sequence numbers are offsets of the stream that carries the data.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from howdah.ingest.capture import read_packets, udp_payload
from howdah.ingest.qlog import Qlog, SenderState, read_qlog
from howdah.ingest.source import Context, Made, SourceReport, add_rows
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.plan.plan import Flow
from howdah.plan.quic import STACKS
from howdah.record.schema import TABLES

NAME = "qlog"
Row = dict[str, int | str | None]  # of a table, or of what the judge is told of a flow
_UNIX_NS = 10**15  # times above are those of a clock, times below count from the connection's first packet
_LARGE = 2**31 - 1


def add_quic(context: Context, made: Made) -> SourceReport | None:
    """Append the rows of every flow of a QUIC stack, and return a report on their logs; None without such flows."""
    flows = [flow for flow in context.plan.flows if flow.quic is not None]
    if not flows:
        return None
    report = SourceReport(counts={"flows": []})
    rows: dict[str, list[Row]] = {"tcp_probe": [], "tcp_info": [], "slow_start": []}
    for flow in flows:
        files = _files(context.directory.raw / "program" / f"{flow.id}-server")
        if len(files) != 1:
            report.problems.append(f"{flow.title}: {len(files)} qlogs of its sender instead of 1")
            continue
        qlog = read_qlog(files[0])
        report.problems += [f"{flow.title}: {problem}" for problem in qlog.problems]
        report.rows += len(qlog.acks)
        report.counts["flows"].append(_account(context, flow, qlog))
        if not qlog.acks or not qlog.datagram_bytes:
            report.problems.append(f"{flow.title}: its qlog has no ACK")
            continue
        shift_ns = _shift_ns(context, flow, qlog)
        if context.plan.collect.tcp_probe:
            rows["tcp_probe"] += [_probe_row(flow, qlog, known, shift_ns) for known in qlog.acks]
        if context.plan.collect.tcp_info_us is not None:
            record = context.agent.flow(flow.id)
            end_ns = min(record.end_ns or context.plan.duration_us * 1000, flow.stop_us * 1000)
            rows["tcp_info"] += info_rows(flow, qlog, shift_ns, context.plan.collect.tcp_info_us * 1000, end_ns)
        if context.plan.collect.slow_start:
            rows["slow_start"] += _exit_rows(flow, qlog, shift_ns)
        made["flow"] = (_of_stream(made["flow"][0], flow, qlog, shift_ns), made["flow"][1])
    for name, more in rows.items():
        if more:
            add_rows(made, name, pa.Table.from_pylist(more, TABLES[name]), "qlog")
    return report


def _of_stream(table: pa.Table, flow: Flow, qlog: Qlog, shift_ns: int) -> pa.Table:
    """The table ``flow`` with the stream's bytes instead of those of UDP, to which HTTP/3 adds some, and with the time
    at which its first byte was sent."""
    assert qlog.last is not None
    most = flow.size_bytes or sys.maxsize
    bytes_of = {"bytes_sent_bytes": qlog.last.sent_bytes, "bytes_received_bytes": qlog.last.acknowledged_bytes}
    rows = table.to_pylist()
    for row in rows:
        if row["flow"] == flow.id:
            row |= {name: min(value, most) for name, value in bytes_of.items()}
            if flow.size_bytes is not None and row["complete"]:  # a client that has all may end without a last ACK
                row["bytes_received_bytes"] = flow.size_bytes
            row["connected_ns"] = None if qlog.first_data_ns is None else qlog.first_data_ns + shift_ns
    return pa.Table.from_pylist(rows, schema=table.schema)


def _files(directory: Path) -> list[Path]:
    """A sender's files, by their names without a suffix of compression."""
    names = {path.name.removesuffix(".zst").removesuffix(".xz") for path in directory.glob("*qlog*")}
    return [directory / name for name in sorted(names)]


def _shift_ns(context: Context, flow: Flow, qlog: Qlog) -> int:
    """The difference between times of a qlog and those of the tables.

    A log without a clock counts from the arrival of the client's first packet, one one-way delay after the flow's
    start.
    """
    record = context.agent.flow(flow.id)
    if qlog.acks[0].time_ns > _UNIX_NS:
        return -(record.realtime_offset_ns or 0) - context.epoch_ns
    return (record.start_ns or flow.start_us * 1000) + flow.reverse_delay_us * 1000


def _packets(size: int, qlog: Qlog) -> int:
    return size // qlog.datagram_bytes


def _threshold(known: SenderState, qlog: Qlog) -> int | None:
    return None if known.ssthresh_bytes is None else min(_packets(known.ssthresh_bytes, qlog), _LARGE)


def _probe_row(flow: Flow, qlog: Qlog, known: SenderState, shift_ns: int) -> Row:
    return {
        "flow": flow.id,
        "time_ns": known.time_ns + shift_ns,
        "data_len_bytes": 0,
        "snd_nxt_bytes": known.sent_bytes,
        "snd_una_bytes": known.acknowledged_bytes,
        "cwnd_packets": _packets(known.cwnd_bytes, qlog),
        "ssthresh_packets": _threshold(known, qlog),
        "snd_wnd_bytes": 0,
        "srtt_us": known.smoothed_rtt_us,
        "rcv_wnd_bytes": 0,
    }


def info_rows(flow: Flow, qlog: Qlog, shift_ns: int, interval_ns: int, end_ns: int) -> list[Row]:
    """The last state known at each reading from the first data until the flow's end; fields without a counterpart in
    QUIC are null."""
    assert qlog.last is not None
    states = [*qlog.acks, qlog.last]
    times = np.array([known.time_ns + shift_ns for known in states])
    found: list[Row] = []
    begin_ns = int(times[0]) if qlog.first_data_ns is None else min(int(times[0]), qlog.first_data_ns + shift_ns)
    first = -(-begin_ns // interval_ns)
    for number in range(first, max(int(times[-1]), end_ns) // interval_ns + 1):
        time_ns = number * interval_ns
        # A state is the one before its ACK: the next one is what the last ACK left.
        known = states[min(int(np.searchsorted(times, time_ns, side="right")), len(states) - 1)]
        found.append(
            {
                "flow": flow.id,
                "end": "sender",
                "time_ns": time_ns,
                "state": TCP_ESTABLISHED,
                "cwnd_packets": _packets(known.cwnd_bytes, qlog),
                "ssthresh_packets": _threshold(known, qlog),
                "rtt_us": known.smoothed_rtt_us,
                "min_rtt_us": known.min_rtt_us,
                "mss_bytes": qlog.stream_bytes,
                "unacked_packets": -(-known.in_flight_bytes // qlog.datagram_bytes),
                "lost_packets": 0,
                "total_retrans_packets": known.lost_packets,
                "bytes_acked_bytes": known.acknowledged_bytes,
            }
        )
    return found


def _exit_rows(flow: Flow, qlog: Qlog, shift_ns: int) -> list[Row]:
    """The first exit from slow start. Stacks log no reason: if packets were just lost, it is the loss, else the
    detector."""
    left = qlog.left
    if left is None or flow.quic is None:
        return []
    by_loss = left.lost_packets > 0
    reason = "loss" if by_loss else "rto" if left.is_cut else STACKS[flow.quic].detector
    return [
        {
            "flow": flow.id,
            "time_ns": left.time_ns + shift_ns,
            "event": "exit",
            "reason": reason,
            "cwnd_packets": _packets(left.cwnd_bytes, qlog),
            "ssthresh_packets": _packets(left.ssthresh_bytes, qlog),
            "quantity": left.lost_packets if by_loss else left.latest_rtt_us if reason == "delay" else None,
            "min_rtt_us": left.min_rtt_us,
        }
    ]


def _account(context: Context, flow: Flow, qlog: Qlog) -> Row:
    """For the judge: what the stack reports as sent, and what a capture at its interface saw of it."""
    captured = None
    for place in context.plan.collect.pcap:
        if place.partition(":")[0] == flow.sender:
            packets = read_packets(context.directory.raw / "pcap" / f"{place.replace(':', '-')}.pcap")
            if len(packets):
                captured = udp_payload(packets, flow.source_address, flow.source_port)
    return {
        "flow": flow.id,
        "packets": qlog.sent_packets,
        "bytes": qlog.sent_bytes,
        "padding_bytes": 0 if flow.quic is None or STACKS[flow.quic].logs_padding else qlog.unpadded_bytes,
        "lost_packets": qlog.lost_packets,
        "largest_packet_bytes": qlog.datagram_bytes,
        "stream_bytes_of_largest": qlog.stream_bytes,
        "initial_window_bytes": qlog.initial_cwnd_bytes,
        "captured_datagrams": None if captured is None else captured[0],
        "captured_bytes": None if captured is None else captured[1],
    }
