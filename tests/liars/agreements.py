# SPDX-License-Identifier: Apache-2.0
"""Lies of one source, which another one contradicts."""

from __future__ import annotations

import json

import pyarrow as pa

from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.liars.doctor import Doctor, change_column, doctored, rows
from tests.liars.liar import check

_TRAIN = "TcpExtTCPHystartTrainCwnd"
_DELAY = "TcpExtTCPHystartDelayCwnd"


def _infinite(table: str) -> Doctor:
    """No threshold is left in the table."""

    def doctor(directory: RunDirectory) -> None:
        found = store.read(directory, table)
        index = found.schema.get_field_index("ssthresh_packets")
        nothing = pa.nulls(found.num_rows, pa.int64())
        store.write(directory, table, found.set_column(index, found.schema.field(index), nothing))

    return doctor


def _noted_at_another_window(directory: RunDirectory) -> None:
    """HyStart's last note of a window is of a larger one."""
    file = directory.raw / "counters.jsonl"
    readings = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    first = next(reading["values"] for reading in readings if reading["node"] == "s1" and _TRAIN in reading["values"])
    for reading in readings:
        values = reading["values"]
        for name in (_TRAIN, _DELAY):
            if reading["node"] == "s1" and values.get(name, 0) > first[name]:
                values[name] += 1000
    file.write_text("".join(f"{json.dumps(reading)}\n" for reading in readings), encoding="utf-8")


AGREEMENTS = [
    doctored(
        "transfer-traced-until-its-last-write",
        "The per-ACK trace has only the first round trips of a transfer of fixed size, as if its sender closed then.",
        check("collection", "bytes of trace and receiver", "the last ACKs are missing"),
        rows("tcp_probe", 0.4),
        about="capture",
        honest="transfer",
        table=True,
    ),
    doctored(
        "bytes-that-nobody-received",
        "The per-ACK trace has bytes acknowledged that the receiver never got.",
        check("collection", "bytes of trace and receiver", "the receiver got"),
        change_column("tcp_probe", "snd_una_bytes", lambda values: values * 2),
        about="capture",
        honest="transfer",
        table=True,
    ),
    doctored(
        "bytes-of-another-connection",
        "tcp_info has a megabyte more acknowledged than the per-ACK trace.",
        check("collection", "bytes of trace and tcp_info", "tcp_probe around it"),
        change_column("tcp_info", "bytes_acked_bytes", lambda values: values + 1_000_000),
        about="capture",
        table=True,
    ),
    doctored(
        "window-of-half-the-size",
        "The windows of the per-ACK trace are half of those that tcp_info shows.",
        check("collection", "windows of trace and tcp_info", "tcp_info has a window of"),
        change_column("tcp_probe", "cwnd_packets", lambda values: values // 2),
        about="capture",
        table=True,
    ),
    doctored(
        "exit-that-tcp-info-lacks",
        "tcp_info shows no threshold of slow start, the per-ACK trace does.",
        check("collection", "exits of trace and tcp_info", "only one of them shows an exit"),
        _infinite("tcp_info"),
        about="capture",
        table=True,
    ),
    doctored(
        "exit-that-the-trace-lacks",
        "HyStart's counters moved, and the per-ACK trace shows no exit from slow start.",
        check("collection", "HyStart's counters and the trace, s1", "tcp_probe shows none"),
        _infinite("tcp_probe"),
        about="capture",
        table=True,
    ),
    doctored(
        "exit-at-another-window",
        "HyStart noted another window than any at which the per-ACK trace shows an exit.",
        check("collection", "HyStart's counters and the trace, s1", "tcp_probe shows none at that window"),
        _noted_at_another_window,
        about="capture",
    ),
    doctored(
        "retransmissions-that-no-counter-has",
        "A socket tells of fifty retransmissions more than its host counted.",
        check("collection", "retransmissions of counters and tcp_info, s1", "tcp_info of its sockets"),
        change_column("tcp_info", "total_retrans_packets", lambda values: values + 50),
        about="capture",
        honest="lossy",
        table=True,
    ),
]
