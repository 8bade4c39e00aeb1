# SPDX-License-Identifier: Apache-2.0
"""Packets of recorded flows as the tables ``tcp_probe``, ``segment`` and ``sack_block``, whose columns are those of
howdah/record/schema.py. Times count from the first packet of each flow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from howdah.explain.connection import TapConnection
from howdah.explain.delay import MIDDLE, RECEIVER, SENDER
from howdah.explain.read import Read
from howdah.explain.seen import Seen
from howdah.ingest.capture import SYN, Headers, TcpOptions
from howdah.ingest.segment import EndSegments, block_table, end_segments, segment_table
from howdah.ingest.source import Integers, nullable
from howdah.library.recorded_rows import began_ns, in_front
from howdah.record.schema import TCP_PROBE
from howdah.record.table import table_of

_PLACES = (SENDER, RECEIVER, MIDDLE, "unknown")


def ack_rows(read: Read) -> pa.Table:
    """The state before each ACK, as the kernel's own trace has it; its windows and thresholds are its own secret."""
    parts = []
    for number, flow in enumerate(read.flows, 1):
        if flow.parts is None:
            continue
        seen, _, way, _ = flow.parts
        count = len(way)
        unseen = pa.nulls(count, pa.int64())
        payload = seen.connection.column("payload_bytes")[seen.acks.place]
        known = np.full(count, way.of_sender)
        columns = {
            "flow": np.full(count, number),
            "time_ns": way.time_ns - began_ns(seen),
            "data_len_bytes": payload,
            "snd_nxt_bytes": nullable(way.nxt, known),
            "snd_una_bytes": way.una,
            "snd_wnd_bytes": nullable(way.window_bytes, way.window_bytes >= 0),
            "cwnd_packets": unseen,
            "ssthresh_packets": unseen,
            "srtt_us": unseen,
            "rcv_wnd_bytes": unseen,
        }
        parts.append(table_of("tcp_probe", columns))
    return in_front(read, pa.concat_tables(parts) if parts else TCP_PROBE.empty_table())


def segment_rows(read: Read) -> pa.Table:
    return in_front(read, segment_table(list(_segments(read)), _PLACES))


def block_rows(read: Read) -> pa.Table:
    return in_front(read, block_table(list(_segments(read)), _PLACES))


def _segments(read: Read) -> Iterator[EndSegments]:
    for number, flow in enumerate(read.flows, 1):
        if flow.parts is None:
            continue
        seen: Seen = flow.parts[0]
        headers = _headers(seen.connection)
        rows = np.arange(headers.sequence.size)
        place = _PLACES.index(flow.at or "unknown")
        time_ns = headers.realtime_ns - began_ns(seen)
        yield end_segments(number, place, headers, time_ns, rows, seen.connection.ours)


def _headers(connection: TapConnection) -> Headers:
    """What a capture of a run would have of the same segments."""
    column = connection.column
    nothing = np.zeros(connection.ours.size, np.int64)
    syn = (column("flags") & SYN) != 0

    def said(name: str, of: str) -> Integers:
        found = np.full(connection.ours.size, -1, np.int64)
        for side, mine in (("sender", connection.ours), ("receiver", ~connection.ours)):
            options = connection.options[side]
            value = getattr(options, name) if options is not None else None
            found[syn & mine] = -1 if value is None else value
        return found if of == "value" else np.maximum(found, 0)

    options = TcpOptions(
        mss_bytes=said("mss_bytes", "value"),
        scale=said("scale", "value"),
        sack_permitted=said("sack_permitted", "flag"),
        time_stamps=column("has_stamps"),
        stamp=column("stamp"),
        echo=column("echo"),
        sack_blocks=column("sack_blocks"),
        sack=connection.sack,
    )
    return Headers(
        realtime_ns=column("time_ns"),
        addresses=nothing,
        ports=nothing,
        sequence=column("sequence"),
        acknowledged=column("acknowledged"),
        flags=column("flags"),
        window=column("window"),
        payload_bytes=column("payload_bytes"),
        options=options,
    )
