# SPDX-License-Identifier: Apache-2.0
"""Packets of a run's captures, read without the project's own reader."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from howdah.ingest.capture import read_clock
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory


@dataclass(frozen=True)
class Packet:
    time_ns: int  # from the epoch
    ip_bytes: int
    identity: tuple[int, bytes]  # of IP, and what begins TCP's header


def frames(directory: RunDirectory, place: str) -> Iterator[tuple[int, bytes]]:
    """Time stamp in nanoseconds, and what was kept of each frame."""
    data = (directory.raw / "pcap" / f"{place}.pcap").read_bytes()
    offset = 24
    while offset < len(data):
        seconds, nanoseconds, length, _whole = struct.unpack_from("=IIII", data, offset)
        yield seconds * 10**9 + nanoseconds, data[offset + 16 : offset + 16 + length]
        offset += 16 + length


def captured(directory: RunDirectory, plan: Plan, place: str, source: str) -> Iterator[Packet]:
    """IPv4 packets of one host, in the time of the flows."""
    clock = read_clock(directory.raw / "pcap.json") or read_clock(directory.raw)
    assert clock is not None
    for stamp_ns, frame in frames(directory, place):
        if frame[26:30] != bytes(map(int, source.split("."))):
            continue
        time_ns = int(clock.monotonic(np.array([stamp_ns]))[0]) - plan.epoch_us * 1000
        size, identity = struct.unpack_from("!HH", frame, 16)
        if time_ns < plan.duration_us * 1000:
            yield Packet(time_ns, size, (identity, frame[34:54]))
