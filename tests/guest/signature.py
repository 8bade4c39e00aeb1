# SPDX-License-Identifier: Apache-2.0
"""The signature of a slow start, for tests: what one flow of a run did, round by round, and what its module said."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.measured import load
from howdah.measure.rounds import rounds
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import TABLES
from howdah.record.verdict import Verdict
from tests.guest.guest_run import ROOT, plan_of
from tests.guest.shared_run import counting_run

SIGNATURE = ROOT / "tests" / "guest" / "signature.yaml"
_ETHERNET_BYTES = 14
_TCP = 6


@dataclass(frozen=True)
class Sent:
    """A segment with payload, as tcpdump saw it: time and sequence number (bytes) count from the first one."""

    time_ns: int
    sequence: int
    payload_bytes: int
    dscp: int


@dataclass(frozen=True)
class SlowStart:
    """One flow of a finished run."""

    directory: RunDirectory
    verdict: Verdict
    trace: FlowTrace
    source_port: int
    events: list[dict[str, Any]]  # rows of the table slow_start that belong to the flow, in order of time

    @property
    def exits(self) -> list[dict[str, Any]]:
        return [row for row in self.events if row["event"] == "exit"]

    def round_windows(self) -> npt.NDArray[np.int64]:
        """cwnd (packets) at the first record of each round: the state the round began with, shape (rounds,)."""
        return self.trace.cwnd[rounds(self.trace)]

    def growth(self) -> npt.NDArray[np.float64]:
        """cwnd at the end of each round / at its start, shape (rounds - 1,)."""
        windows = self.round_windows()
        return windows[1:] / windows[:-1]

    def cwnd_at(self, time_ns: int) -> int:
        """cwnd after every ACK that arrived until then."""
        index = int(np.searchsorted(self.trace.time_ns, time_ns, side="right"))
        return int(self.trace.cwnd[min(index, len(self.trace) - 1)])

    def sent(self, place: str = "s1:s1-eth0") -> list[Sent]:
        """Data segments of the flow in a capture that the plan asked for (``collect.pcap``)."""
        found: list[Sent] = []
        begin: tuple[int, int] | None = None
        for time_ns, frame in _frames(self.directory.raw / "pcap" / f"{place.replace(':', '-')}.pcap"):
            header_bytes = (frame[_ETHERNET_BYTES] & 15) * 4
            tcp = _ETHERNET_BYTES + header_bytes
            if frame[_ETHERNET_BYTES + 9] != _TCP:
                continue
            port, sequence = struct.unpack("!H2xI", frame[tcp : tcp + 8])
            total_bytes = struct.unpack("!H", frame[_ETHERNET_BYTES + 2 : _ETHERNET_BYTES + 4])[0]
            payload_bytes = total_bytes - header_bytes - (frame[tcp + 12] >> 4) * 4
            if payload_bytes <= 0 or port != self.source_port:
                continue
            dscp = frame[_ETHERNET_BYTES + 1] >> 2
            begin = begin or (time_ns, sequence)
            found.append(Sent(time_ns - begin[0], (sequence - begin[1]) % 2**32, payload_bytes, dscp))
        return found


def _frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Time (ns) and captured bytes of every packet of a nanosecond pcap file."""
    data = path.read_bytes()
    assert struct.unpack("<I", data[:4])[0] == 0xA1B23C4D, "not a little-endian nanosecond capture"
    position = 24
    while position < len(data):
        seconds, nanoseconds, length = struct.unpack("<III", data[position : position + 12])
        yield seconds * 10**9 + nanoseconds, data[position + 16 : position + 16 + length]
        position += 16 + length


def slow_start(
    engine: UmlEngine, path: Path, algorithm: str, *overrides: str, parameters: dict[str, str] | None = None
) -> SlowStart:
    """Run ``signature.yaml`` with an algorithm of the table; ``parameters`` are its module's, over the table's own.

    ``path`` becomes a link to the run, which other tests may share: it is for reading only.
    The run must be valid: an invalid one proves nothing about an algorithm.
    """
    plan = plan_of(f"algorithm={algorithm}", *overrides, profile=SIGNATURE)
    plan = with_parameters(plan, parameters)
    directory, verdict = counting_run(engine, plan)
    if not path.exists():
        path.symlink_to(directory.path)
    return read(directory, verdict)


def with_parameters(plan: Plan, parameters: dict[str, str] | None) -> Plan:
    """Of the module of the first flow's algorithm, over those that the plan sets."""
    if not parameters:
        return plan
    module = f"ss_{plan.flows[0].kernel_algorithm.rpartition('_')[0]}"
    given = {**plan.module_parameters.get(module, {}), **parameters}
    return dataclasses.replace(plan, module_parameters={**plan.module_parameters, module: given})


def carried_out(engine: UmlEngine, plan: Plan, flow: int = 1) -> SlowStart:
    """A flow of a run of the plan, which must be valid."""
    return read(*counting_run(engine, plan), flow)


def event(seen: SlowStart, name: str) -> dict[str, int]:
    """The only one of that name."""
    (found,) = [row for row in seen.events if row["event"] == name]
    return found


@dataclass
class Shared:
    """Runs that the tests of a file share: each is made when it is first asked for."""

    engine: UmlEngine
    directories: pytest.TempPathFactory
    done: dict[tuple[str, ...], SlowStart] = field(default_factory=dict)

    def __call__(self, algorithm: str, *overrides: str, **parameters: int) -> SlowStart:
        values = {name: str(value) for name, value in parameters.items()}
        key = (algorithm, *overrides, *(f"{name}={value}" for name, value in sorted(values.items())))
        if key not in self.done:
            path = self.directories.mktemp("run")
            self.done[key] = slow_start(self.engine, path, algorithm, *overrides, parameters=values)
        return self.done[key]


def read(directory: RunDirectory, verdict: Verdict, flow: int = 1) -> SlowStart:
    """The flow with that number, of a run that went through every stage."""
    plan = Plan.from_json(directory.plan.read_text())
    measured = load(directory, plan)
    events = store.read(directory, "slow_start").to_pylist() if "slow_start" in TABLES else []
    return SlowStart(
        directory=directory,
        verdict=verdict,
        trace=measured.traces[flow - 1],
        source_port=plan.flows[flow - 1].source_port,
        events=[row for row in events if row["flow"] == flow],
    )
