# SPDX-License-Identifier: Apache-2.0
"""Events of slow-start modules as the kernel hands them over: a sub-buffer of howdah:slow_start, record by record."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

from howdah.measure.event import SlowStartEvent
from howdah.record.directory import RunDirectory
from howdah.record.schema import EVENTS, REASONS
from tests.unit.recorded_run import EPOCH_NS, GOLDEN

SUBBUFFER_BYTES = 4096
_RECORD = struct.Struct("<HBBiQQIIIIIIIIHHHH")  # golden/raw/slow_start/slow_start.format
_FORMAT = GOLDEN.parent / "slow_start" / "slow_start.format"
_ID = 317  # of that file
_DEFAULTS: dict[str, Any] = {
    "event": 0,
    "reason": 3,
    "cwnd": 40,
    "ssthresh": 20,
    "quantity": 3,
    "threshold": 0,
    "round": 4,
    "min_rtt_us": 40_000,
    "saddr": "10.0.1.1",
    "daddr": "10.0.2.1",
    "sport": 40000,
    "dport": 5201,
}


def record(**fields: Any) -> bytes:
    """One record of the format; numbers of event and reason are those of the modules."""
    value = {**_DEFAULTS, **fields}
    addresses = [struct.unpack("<I", socket.inet_aton(value[name]))[0] for name in ("saddr", "daddr")]
    numbers = [value[name] for name in ("cwnd", "ssthresh", "quantity", "threshold", "round", "min_rtt_us")]
    ends = [value[name] for name in ("sport", "dport", "event", "reason")]
    return _RECORD.pack(_ID, 0, 0, 1, 77, 1_000_000, *addresses, *numbers, *ends)


def subbuffer(records: Sequence[tuple[int, bytes]]) -> bytes:
    """A sub-buffer of records with their times (ns); steps between them must stay below 2^27 ns."""
    begin = records[0][0] if records else 0
    body, last = b"", begin
    for time_ns, content in records:
        body += struct.pack("<I", len(content) // 4 | (time_ns - last) << 5) + content
        last = time_ns
    return (struct.pack("<QQ", begin, len(body)) + body).ljust(SUBBUFFER_BYTES, b"\0")


def add_events(run: RunDirectory, rows: Sequence[tuple[int, bytes]], **account: Any) -> None:
    """Files of the collector in ``raw/`` of a run; times (ns) count from the epoch."""
    data = subbuffer([(EPOCH_NS + time_ns, content) for time_ns, content in rows])
    (run.raw / "slow_start.bin").write_bytes(data)
    (run.raw / "slow_start.format").write_text(_FORMAT.read_text())
    counts = dict.fromkeys(("unread", "overrun", "dropped_events", "commit_overrun", "bytes_lost"), 0)
    whole = {"subbuffer_bytes": SUBBUFFER_BYTES, "clock": "mono", "entries": len(rows), **counts, **account}
    whole["cpus"] = [{"cpu": 0, "file": "slow_start.bin", "bytes": len(data)}]
    (run.raw / "slow_start.json").write_text(json.dumps(whole))


def told(time_ms: float, event: str, reason: str = "none", cwnd: int = 40, **changes: Any) -> SlowStartEvent:
    """An event as measures see it. ``ssthresh`` is the window unless it is given."""
    assert event in EVENTS
    assert reason in REASONS
    values: dict[str, Any] = {"ssthresh_packets": cwnd, "quantity": 0, "threshold": 0, "round": 3, "min_rtt_us": 40_000}
    return SlowStartEvent(int(time_ms * 1_000_000), event, reason, cwnd, **{**values, **changes})
