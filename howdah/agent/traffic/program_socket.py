# SPDX-License-Identifier: Apache-2.0
"""Sockets of programs, found by the server's port, and the kernel's counters of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from howdah.agent.traffic.segments import Segments, segments_in
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import (
    INET_DIAG_CONG,
    INET_DIAG_INFO,
    INET_DIAG_MSG_BYTES,
    SOCK_DIAG_BY_FAMILY,
    TCP_LISTEN,
    Endpoint,
    diag_request,
    open_diag,
    parse_socket,
)
from howdah.linux.netlink.message import Message, parse_attributes

_EXTENSIONS = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
_ACKNOWLEDGED_AT, _RECEIVED_AT = 120, 128  # offsets of tcpi_bytes_acked and tcpi_bytes_received
_UDP = "/proc/net/udp"
_INTERFACES = "/proc/net/dev"


@dataclass(frozen=True)
class ProgramSocket:
    """A program's TCP socket as its host's kernel sees it; ``algorithm`` is None if the kernel does not report it."""

    endpoint: Endpoint
    state: int
    cookie: int
    acknowledged_bytes: int
    received_bytes: int
    segments: Segments | None
    algorithm: str | None

    @property
    def moved_bytes(self) -> int:
        return self.acknowledged_bytes + self.received_bytes


def tcp_sockets(namespace: Namespace) -> list[ProgramSocket]:
    """Every IPv4 TCP socket of a host."""
    with namespace.entered():
        netlink = open_diag()
    try:
        return [_socket_of(answer) for answer in netlink.dump(SOCK_DIAG_BY_FAMILY, diag_request(None, _EXTENSIONS))]
    finally:
        netlink.close()


def _socket_of(answer: Message) -> ProgramSocket:
    plain = parse_socket(answer)
    found = parse_attributes(answer.payload[INET_DIAG_MSG_BYTES:])
    info, name = found.get(INET_DIAG_INFO, b""), found.get(INET_DIAG_CONG)
    return ProgramSocket(
        plain.endpoint,
        plain.state,
        plain.cookie,
        _counter(info, _ACKNOWLEDGED_AT),
        _counter(info, _RECEIVED_AT),
        segments_in(info),
        name.rstrip(b"\0").decode("ascii", "replace") if name else None,
    )


def _counter(info: bytes, at: int) -> int:
    return int(struct.unpack_from("=Q", info, at)[0]) if len(info) >= at + 8 else 0


def connections_of(namespace: Namespace, local_port: int) -> list[ProgramSocket]:
    """Connections at a host's port; the one that moved the most bytes comes first."""
    found = [
        item for item in tcp_sockets(namespace) if item.state != TCP_LISTEN and item.endpoint.local_port == local_port
    ]
    return sorted(found, key=lambda item: -item.moved_bytes)


def is_listening(namespace: Namespace, protocol: str, port: int) -> bool:
    """Whether a socket of the host listens at the port, or for UDP is bound to it."""
    if protocol == "tcp":
        return any(item.state == TCP_LISTEN and item.endpoint.local_port == port for item in tcp_sockets(namespace))
    return port in bound_udp_ports(_read(namespace, _UDP))


def bound_udp_ports(text: str) -> set[int]:
    """Parse the local ports of /proc/net/udp."""
    return {int(line.split()[1].rpartition(":")[2], 16) for line in text.splitlines()[1:] if line.split()}


@dataclass(frozen=True)
class InterfaceTotals:
    """Counters of a host's interfaces without the loopback: bytes of frames, and packets."""

    received_bytes: int
    received_packets: int
    sent_bytes: int
    sent_packets: int

    def since(self, earlier: InterfaceTotals) -> InterfaceTotals:
        return InterfaceTotals(
            self.received_bytes - earlier.received_bytes,
            self.received_packets - earlier.received_packets,
            self.sent_bytes - earlier.sent_bytes,
            self.sent_packets - earlier.sent_packets,
        )


def interface_totals(namespace: Namespace) -> InterfaceTotals:
    return parse_interfaces(_read(namespace, _INTERFACES))


def parse_interfaces(text: str) -> InterfaceTotals:
    """Sum the counters of /proc/net/dev."""
    sums = [0, 0, 0, 0]
    for line in text.splitlines()[2:]:
        name, _, counters = line.partition(":")
        if name.strip() == "lo":
            continue
        fields = [int(field) for field in counters.split()]
        for index, value in enumerate((fields[0], fields[1], fields[8], fields[9])):
            sums[index] += value
    return InterfaceTotals(*sums)


def _read(namespace: Namespace, path: str) -> str:
    with namespace.entered(), open(path, encoding="ascii") as file:  # noqa: PTH123
        return file.read()
