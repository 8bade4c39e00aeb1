# SPDX-License-Identifier: Apache-2.0
"""Recorded transfers with the same tables as runs: ``howdah.load("slow.pcap")``.

Packets are in the tables ``tcp_probe``, ``segment`` and ``sack_block``, with the columns of howdah/record/schema.py.
Times count from each flow's first packet.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from howdah.errors import HowdahError
from howdah.explain.connection import TapConnection
from howdah.explain.delay import MIDDLE, RECEIVER, SENDER
from howdah.explain.read import MOST_FLOWS, Read, read_files
from howdah.explain.seen import Seen
from howdah.ingest.capture import SYN, Headers, TcpOptions
from howdah.ingest.segment import EndSegments, block_table, end_segments, segment_table
from howdah.ingest.source import Integers, nullable
from howdah.library.data import Data
from howdah.library.recorded_rows import (
    axis_columns,
    began_ns,
    exit_rows,
    in_front,
    leg_rows,
    metric_rows,
    path_rows,
    round_rows,
    sample_rows,
)
from howdah.library.rows import Rows, of_table
from howdah.record.schema import TCP_PROBE
from howdah.record.table import table_of

_PLACES = (SENDER, RECEIVER, MIDDLE, "unknown")


def ack_rows(read: Read) -> pa.Table:
    """The sender's state before each ACK, in the form of the kernel's trace. cwnd, ssthresh, srtt and the sender's own
    receive window are null: a recording does not show them."""
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
    """The connection's segment headers in the form that a run's capture has."""
    column = connection.column
    nothing = np.zeros(connection.ours.size, np.int64)
    syn = (column("flags") & SYN) != 0

    def option(name: str, of: str) -> Integers:
        found = np.full(connection.ours.size, -1, np.int64)
        for side, mine in (("sender", connection.ours), ("receiver", ~connection.ours)):
            options = connection.options[side]
            value = getattr(options, name) if options is not None else None
            found[syn & mine] = -1 if value is None else value
        return found if of == "value" else np.maximum(found, 0)

    options = TcpOptions(
        mss_bytes=option("mss_bytes", "value"),
        scale=option("scale", "value"),
        sack_permitted=option("sack_permitted", "flag"),
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


_TABLES: dict[str, Callable[[Read], pa.Table]] = {
    "tcp_probe": ack_rows,
    "segment": segment_rows,
    "sack_block": block_rows,
    "rounds": round_rows,
    "samples": sample_rows,
    "legs": leg_rows,
}


class Recording(Data):
    """Tables of the flows that ``howdah explain`` finds in files: the experiment is ``recorded``, and each file is a
    run.

    Columns have the same names as for runs; what a recording cannot show is null. The files are read when the first
    table is used. Problems in a recording become warnings; any other file raises HowdahError.
    """

    @cached_property
    def _read(self) -> Read:
        read = read_files(self.paths, MOST_FLOWS)
        for problem in read.problems:
            warnings.warn(f"howdah: {problem}", stacklevel=2)
        return read

    @cached_property
    def runs(self) -> Rows:
        """One row per flow: the estimated properties of its path."""
        return of_table("runs", lambda: path_rows(self._read))

    @cached_property
    def metrics(self) -> Rows:
        """One row per measure and flow: a number ``value`` between ``low`` and ``high``, or a word in ``text``. ``how``
        names the method of the estimate; ``why`` says why a value is missing."""
        return of_table("metrics", lambda: metric_rows(self._read))

    @cached_property
    def exits(self) -> Rows:
        """One row per flow that left slow start: when, where and why."""
        return of_table("exits", lambda: exit_rows(self._read))

    @property
    def rounds(self) -> Rows:
        """One row per round of each flow: the data in flight at its start, and the data sent in it."""
        return self.table("rounds")

    @property
    def samples(self) -> Rows:
        """One row per round-trip sample that the recording shows."""
        return self.table("samples")

    @property
    def legs(self) -> Rows:
        """One row per pair of adjacent taps of a connection: the losses and delays between them."""
        return self.table("legs")

    @property
    def tables(self) -> list[str]:
        """Names of the tables that have rows."""
        return [name for name in _TABLES if len(self.table(name))]

    def table(self, name: str) -> Rows:
        if name not in _TABLES:
            raise HowdahError(f"a recording has no table {name!r}", hint=f"Its tables are {', '.join(_TABLES)}.")
        if name not in self._made:
            self._made[name] = of_table(name, partial(_TABLES[name], self._read))
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, Rows]:
        return {}

    @property
    def axes(self) -> list[str]:
        return list(axis_columns())

    def _differing_axes(self, options: dict[str, Any]) -> list[str]:
        return ["algorithm", *(["run"] if len(self.paths) > 1 and options.get("x") != "run" else [])]

    @property
    def checks(self) -> NoReturn:
        """Raises HowdahError: a recording has no checks."""
        _has_none("checks")

    @property
    def differences(self) -> NoReturn:
        """Raises HowdahError: a recording has no differences."""
        _has_none("differences")

    @property
    def completion(self) -> NoReturn:
        """Raises HowdahError: a recording has no completion times."""
        _has_none("completion")


def _has_none(name: str) -> NoReturn:
    raise HowdahError(f"a recording has no {name}", hint="Runs have them: 'howdah new --from' writes a profile of one.")
