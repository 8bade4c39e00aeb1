# SPDX-License-Identifier: Apache-2.0
"""TCP sockets as the kernel sees them (inet_diag, SOCK_DIAG_BY_FAMILY; include/uapi/linux/inet_diag.h)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.codec import planned
from howdah.linux.netlink.message import (
    NETLINK_SOCK_DIAG,
    NLM_F_REQUEST,
    Message,
    NetlinkSocket,
    build,
    parse_attributes,
)

SOCK_DIAG_BY_FAMILY = 20
TCP_ESTABLISHED = 1
TCP_SYN_SENT = 2
TCP_LISTEN = 10
_ALL_STATES = 0xFFF

# Extensions: bit n-1 requests attribute n.
INET_DIAG_INFO = 2
INET_DIAG_VEGASINFO = 3  # requests the congestion control's own structure, whichever it is
INET_DIAG_CONG = 4
INET_DIAG_BBRINFO = 16  # struct tcp_bbr_info, in answers only
_EXTENSIONS = 1 << (INET_DIAG_INFO - 1)
_NO_COOKIE = struct.pack("=II", 0xFFFFFFFF, 0xFFFFFFFF)

_REQUEST = struct.Struct("=BBBxI")  # struct inet_diag_req_v2 without its id
_ANSWER = struct.Struct("=BBBB")
INET_DIAG_MSG_BYTES = 72


@planned
class Endpoint:
    """The addresses and ports of a connection as the host at one end sees them."""

    local_address: str
    local_port: int
    remote_address: str
    remote_port: int

    def reversed(self) -> Endpoint:
        return Endpoint(self.remote_address, self.remote_port, self.local_address, self.local_port)


@planned
class SocketState:
    """The fixed part of struct inet_diag_msg."""

    state: int
    endpoint: Endpoint
    cookie: int


def _socket_id(endpoint: Endpoint | None) -> bytes:
    if endpoint is None:
        return struct.pack("!HH", 0, 0) + bytes(36) + _NO_COOKIE
    local = ipaddress.ip_address(endpoint.local_address).packed.ljust(16, b"\0")
    remote = ipaddress.ip_address(endpoint.remote_address).packed.ljust(16, b"\0")
    ports = struct.pack("!HH", endpoint.local_port, endpoint.remote_port)
    return ports + local + remote + struct.pack("=I", 0) + _NO_COOKIE


def diag_request(endpoint: Endpoint | None, extensions: int = _EXTENSIONS) -> bytes:
    """The body of a request for one connection, or with None for a dump of every IPv4 TCP socket."""
    family = socket.AF_INET
    if endpoint is not None and ipaddress.ip_address(endpoint.local_address).version == 6:
        family = socket.AF_INET6
    return _REQUEST.pack(family, socket.IPPROTO_TCP, extensions, _ALL_STATES) + _socket_id(endpoint)


def batch(endpoints: list[Endpoint]) -> bytes:
    """One datagram with a request for each connection; the kernel answers each in a datagram of its own.

    The sequence number of an answer is the position in the list; the answer for a closed connection is ENOENT.
    """
    return b"".join(
        build(SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, number, diag_request(endpoint))
        for number, endpoint in enumerate(endpoints)
    )


def parse_socket(message: Message) -> SocketState:
    family, state, _timer, _retransmits = _ANSWER.unpack_from(message.payload)
    local_port, remote_port = struct.unpack_from("!HH", message.payload, 4)
    length = 4 if family == socket.AF_INET else 16
    local = ipaddress.ip_address(message.payload[8 : 8 + length])
    remote = ipaddress.ip_address(message.payload[24 : 24 + length])
    low, high = struct.unpack_from("=II", message.payload, 44)
    return SocketState(state, Endpoint(str(local), local_port, str(remote), remote_port), high << 32 | low)


def open_diag() -> NetlinkSocket:
    return NetlinkSocket(NETLINK_SOCK_DIAG)


def sockets(netlink: NetlinkSocket) -> list[SocketState]:
    """Return every IPv4 TCP socket of the netlink socket's namespace."""
    return [parse_socket(message) for message in netlink.dump(SOCK_DIAG_BY_FAMILY, diag_request(None))]


def congestion_controls(netlink: NetlinkSocket) -> list[str]:
    """Return the congestion control of each IPv4 TCP socket in the netlink socket's namespace that has one."""
    answers = netlink.dump(SOCK_DIAG_BY_FAMILY, diag_request(None, 1 << (INET_DIAG_CONG - 1)))
    names = (parse_attributes(message.payload[INET_DIAG_MSG_BYTES:]).get(INET_DIAG_CONG) for message in answers)
    return [name.rstrip(b"\0").decode() for name in names if name]
