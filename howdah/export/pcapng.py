# SPDX-License-Identifier: Apache-2.0
"""The captures of a run as one pcapng file: each capture is an interface; comments name path, flow and exit.

A flow's first packet at each interface names the flow and its path; the first new segment that the sender sent after
the exit says when and why it left slow start. It is identified by its sequence number, so that it is the same packet at
every interface.
"""

from __future__ import annotations

import heapq
import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from howdah import __version__
from howdah.errors import HowdahError
from howdah.export.flow import FlowExit, exit_of, flow_text, path_text, plan_of, probed
from howdah.frame import ETHERNET_BYTES, IPV4_BYTES
from howdah.ingest.capture import CaptureClock, read_clock
from howdah.plan.plan import Flow, Plan
from howdah.record.directory import in_its_place
from howdah.record.raw import agent_or_empty, open_raw, raw_exists, read_raw_json
from howdah.record.result import Run

SUFFIX = ".pcapng"
_PCAP = struct.Struct("<IHHiIII")
_PACKET = struct.Struct("<IIII")
_MAGIC_NS = 0xA1B23C4D
_SECTION, _INTERFACE, _ENHANCED = 0x0A0D0D0A, 1, 6
_COMMENT, _NAME, _DESCRIPTION, _RESOLUTION, _APPLICATION = 1, 2, 3, 9, 4
_ETHERNET, _IPV4, _TCP, _SYN = 1, 0x0800, 6, 0x02

Ends = tuple[bytes, int, bytes, int]


@dataclass(frozen=True)
class _Clock:
    """Converts the guest's time of day, which is its own, so that the epoch is at the time when the run was made."""

    captures: CaptureClock
    epoch_monotonic_ns: int
    started_ns: int

    def published(self, realtime_ns: int) -> int:
        since_boot = self.captures.monotonic(np.array([realtime_ns], dtype=np.int64))
        return int(since_boot[0]) - self.epoch_monotonic_ns + self.started_ns


@dataclass(frozen=True)
class _CaptureFile:
    """A tcpdump file, captured at ``place`` (node:interface)."""

    place: str
    file: Path
    link_type: int
    snap_bytes: int
    clock: _Clock | None

    def packets(self, number: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield time (ns since 1970), the capture's number, wire length, and the captured bytes of each packet."""
        with open_raw(self.file) as opened:
            opened.read(_PCAP.size)
            while len(head := opened.read(_PACKET.size)) == _PACKET.size:
                seconds, nanoseconds, here, whole = _PACKET.unpack(head)
                data = opened.read(here)
                if len(data) < here:
                    return  # cut off; the judge has said so
                time_ns = seconds * 1_000_000_000 + nanoseconds
                yield self.clock.published(time_ns) if self.clock else time_ns, number, whole, data


@dataclass
class _Unsaid:
    """Which comments a flow still needs at one interface; ``base`` is the sequence number of its first data byte."""

    flow: Flow
    leaves: FlowExit | None
    after_bytes: int | None
    begun: bool = False
    base: int | None = None
    reported: bool = field(default=False)


def write_pcapng(run: Run, directory: Path) -> list[Path]:
    """Write the run's captures. Raises HowdahError for a run without any."""
    plan = plan_of(run)
    captures = _captures(run, plan)
    target = directory / f"{run.experiment}-{run.name}{SUFFIX}"
    with in_its_place(target) as temporary, temporary.open("wb") as out:
        about = f"howdah {run.experiment}/{run.name}: {run.algorithm}, kernel {run.kernel}; {path_text(plan)}"
        if any(capture.clock is None for capture in captures):
            about += "; times are those of the guest's own clock, because the run did not record its epoch by it"
        out.write(_section(about))
        for capture in captures:
            out.write(_interface(capture))
        _write_packets(run, plan, captures, out)
    return [target]


def _captures(run: Run, plan: Plan) -> list[_CaptureFile]:
    raw = run.directory.raw
    found = []
    for place in plan.collect.pcap:
        name = f"{place.replace(':', '-')}.pcap"
        folders = [raw, *(entry for entry in sorted(raw.iterdir()) if entry.is_dir())] if raw.is_dir() else []
        file = next((folder / "pcap" / name for folder in folders if raw_exists(folder / "pcap" / name)), None)
        if file is None:
            raise HowdahError(f"the capture of {place} is missing", where=str(raw))
        with open_raw(file) as opened:
            head = opened.read(_PCAP.size)
        if len(head) < _PCAP.size or _PCAP.unpack(head)[0] != _MAGIC_NS:
            raise HowdahError("this is not a capture with nanosecond timestamps", where=str(file))
        link_type, snap_bytes = _PCAP.unpack(head)[6] & 0xFFFF, _PCAP.unpack(head)[5]
        found.append(_CaptureFile(place, file, link_type, snap_bytes, _clock(run, file.parent.parent)))
    if not found:
        raise HowdahError(
            "the run captured no packets",
            where=str(run.directory.path),
            hint="Name interfaces in the profile: --set 'collect.pcap=[s1:s1-eth0]'.",
        )
    return found


def _clock(run: Run, folder: Path) -> _Clock | None:
    """The clock of the kernel whose raw files are in a folder; None if it did not record its clocks."""
    captures = read_clock(folder)
    try:
        epoch_ns = int(read_raw_json(folder / "agent.json")["epoch_monotonic_ns"])
    except (OSError, KeyError, TypeError, ValueError, HowdahError):
        return None
    return None if captures is None else _Clock(captures, epoch_ns, round(run.started_s * 1e9))


def _write_packets(run: Run, plan: Plan, captures: list[_CaptureFile], out: BinaryIO) -> None:
    told = [_flows(run, plan) for _capture in captures]
    path = path_text(plan)
    streams = [capture.packets(number) for number, capture in enumerate(captures)]
    merged = heapq.merge(*streams, key=lambda packet: packet[0])
    for time_ns, number, whole, data in merged:
        comment = _comment(told[number], data, path) if captures[number].link_type == _ETHERNET else None
        out.write(_enhanced(number, time_ns, whole, data, comment))


def _flows(run: Run, plan: Plan) -> dict[Ends, _Unsaid]:
    """The flows by the addresses and ports of their data."""
    agent = agent_or_empty(run.directory)
    after = _sent_at_exit(run)
    found = {}
    for flow in plan.flows:
        port = agent.flow(flow.id).source_port or flow.source_port
        ends = (_packed(flow.source_address), port, _packed(flow.destination_address), flow.destination_port)
        found[ends] = _Unsaid(flow, exit_of(run, flow), after.get(flow.id))
    return found


def _sent_at_exit(run: Run) -> dict[int, int]:
    """The number of bytes that each flow had sent when it left slow start, by flow id."""
    found = {}
    try:
        flows = list(probed(run))
    except HowdahError:
        return {}
    for flow, rows in flows:
        leaves = exit_of(run, flow)
        if leaves is not None:
            at = int(np.searchsorted(rows["time_ns"].to_numpy(), leaves.time_ns, side="right")) - 1
            sent = rows["snd_nxt_bytes"][max(at, 0)].as_py()
            if sent is not None:
                found[flow.id] = int(sent)
    return found


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _comment(told: dict[Ends, _Unsaid], data: bytes, path: str) -> str | None:
    """The comment for an Ethernet frame, or None."""
    if len(data) < ETHERNET_BYTES + IPV4_BYTES or int.from_bytes(data[12:14], "big") != _IPV4:
        return None
    header = (data[ETHERNET_BYTES] & 15) * 4
    transport = ETHERNET_BYTES + header
    if len(data) < transport + 8:
        return None
    source, destination = data[26:30], data[30:34]
    ports = struct.unpack_from("!HH", data, transport)
    mine = told.get((source, ports[0], destination, ports[1]))
    if mine is None:
        return None
    texts = []
    if not mine.begun:
        mine.begun = True
        texts.append(f"{flow_text(mine.flow)}; {path}")
    if data[ETHERNET_BYTES + 9] == _TCP and len(data) >= transport + 20:
        sequence, flags = struct.unpack_from("!I", data, transport + 4)[0], data[transport + 13]
        payload = int.from_bytes(data[16:18], "big") - header - (data[transport + 12] >> 4) * 4
        if flags & _SYN:
            mine.base = sequence + 1
        elif mine.base is None and payload > 0:
            mine.base = sequence
        if mine.base is not None and payload > 0 and not mine.reported and mine.leaves is not None:
            place = ((sequence - mine.base + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
            if mine.after_bytes is not None and place >= mine.after_bytes:
                mine.reported = True
                texts.append(mine.leaves.text(mine.flow))
    return "\n".join(texts) or None


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def _block(kind: int, body: bytes, options: list[tuple[int, bytes]]) -> bytes:
    said = b"".join(_option(code, value) for code, value in options)
    content = body + (said + _option(0, b"") if options else b"")
    size = struct.pack("<I", len(content) + 12)
    return struct.pack("<I", kind) + size + content + size


def _section(comment: str) -> bytes:
    body = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    return _block(_SECTION, body, [(_COMMENT, comment.encode()), (_APPLICATION, f"howdah {__version__}".encode())])


def _interface(capture: _CaptureFile) -> bytes:
    node, _, interface = capture.place.partition(":")
    named: list[tuple[int, bytes]] = [(_NAME, capture.place.encode())]
    named += [(_DESCRIPTION, f"{interface} of {node}".encode()), (_RESOLUTION, b"\x09")]
    return _block(_INTERFACE, struct.pack("<HHI", capture.link_type, 0, capture.snap_bytes), named)


def _enhanced(number: int, time_ns: int, whole: int, data: bytes, comment: str | None) -> bytes:
    head = struct.pack("<IIIII", number, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), whole)
    options: list[Any] = [] if comment is None else [(_COMMENT, comment.encode())]
    return _block(_ENHANCED, head + data + b"\0" * (-len(data) % 4), options)
