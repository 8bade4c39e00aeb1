# SPDX-License-Identifier: Apache-2.0
"""The round trip between two hosts over everything in between, wires included: ICMP echoes, answered by a kernel.

The emulator measures its own delays; this is what a flow sees.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

from howdah.agent.calibration.median import summary
from howdah.agent.calibration.udp import PROBE_PORT, SO_TIMESTAMPNS, open_unread, timestamp_ns, wall_ns
from howdah.agent.loop import Loop
from howdah.linux.clock import MS
from howdah.linux.namespace import Namespace
from howdah.plan.path import PROBES, Path
from howdah.plan.plan import CalibrationTarget
from howdah.record.calibration import RoundTrip

_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence
_REQUEST, _REPLY = 8, 0
_IDENTIFIER = 0x4844
_OFFSET_NS = 7 * MS  # after the emulator's own probes
_MARGIN_NS = 50 * MS


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (total & 0xFFFF) ^ 0xFFFF


def request(sequence: int) -> bytes:
    plain = _HEADER.pack(_REQUEST, 0, 0, _IDENTIFIER, sequence)
    return _HEADER.pack(_REQUEST, 0, checksum(plain), _IDENTIFIER, sequence)


def reply_sequence(data: bytes) -> int | None:
    """The sequence number of a reply to one of our requests, given its IPv4 packet; None for any other packet."""
    start = (data[0] & 0x0F) * 4 if data else 0
    if len(data) < start + _HEADER.size:
        return None
    kind, _code, _sum, identifier, sequence = _HEADER.unpack_from(data, start)
    return int(sequence) if kind == _REPLY and identifier == _IDENTIFIER else None


@dataclass
class _Echo:
    """The echoes of one target. ``number`` keeps targets apart: all raw sockets of a namespace receive every reply."""

    opened: socket.socket
    destination: str
    number: int
    sent_ns: list[int] = field(default_factory=list)

    def send(self, _now: int) -> None:
        self.sent_ns.append(wall_ns())
        self.opened.sendto(request(self.number * PROBES + len(self.sent_ns) - 1), (self.destination, 0))

    def round_trips_ns(self) -> list[int]:
        found: list[int] = []
        while True:
            try:
                data, ancillary, _flags, _sender = self.opened.recvmsg(256, 64)
            except BlockingIOError:
                self.opened.close()
                return found
            sequence = reply_sequence(data)
            if sequence is None or not 0 <= sequence - self.number * PROBES < len(self.sent_ns):
                continue
            if (time_ns := timestamp_ns(ancillary)) is not None:
                found.append(time_ns - self.sent_ns[sequence - self.number * PROBES])


def _open(namespace: Namespace, address: str) -> socket.socket:
    with namespace.entered():
        opened = socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMP)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    opened.bind((address, 0))
    return opened


def measure_round_trips(
    path: Path, targets: list[CalibrationTarget], namespaces: dict[str, Namespace], loop: Loop, start_ns: int
) -> list[RoundTrip]:
    """Measure each target whose sender is in ``namespaces``, while the emulator sends its probes. The targets take
    turns, so that no request waits for another on a slow path."""
    gap_ns = path.probe_gap_us(len(targets)) * 1000
    every_ns = len(targets) * gap_ns
    echoes = []
    for number, target in enumerate(targets):
        if target.sender not in namespaces:
            continue
        opened = _open(namespaces[target.sender], target.sender_address)
        echo = _Echo(opened, target.receiver_address, number)
        for probe in range(PROBES):
            loop.at(start_ns + _OFFSET_NS + number * gap_ns + probe * every_ns, echo.send)
        echoes.append((target, echo))
    longest_us = max(target.forward_delay_us + target.reverse_delay_us for target in targets)
    varies_us = max(target.variation_us + target.variation_reverse_us for target in targets)
    if echoes:
        loop.run_until(start_ns + PROBES * every_ns + (longest_us + varies_us) * 1000 + 2 * _MARGIN_NS)
    found = []
    for target, echo in echoes:
        trips = echo.round_trips_ns()
        found.append(RoundTrip(target.sender, target.receiver, summary(trips), len(echo.sent_ns), len(trips)))
    return found


def open_probe_ports(targets: list[CalibrationTarget], namespaces: dict[str, Namespace]) -> list[socket.socket]:
    """Open the ports that the emulator probes on the local hosts, so that no ICMP error returns."""
    found = {}
    for target in targets:
        for host, address in target.ends:
            if host in namespaces and (host, address) not in found:
                found[(host, address)] = open_unread(namespaces[host], address, PROBE_PORT)
    return list(found.values())
