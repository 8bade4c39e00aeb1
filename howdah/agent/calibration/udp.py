# SPDX-License-Identifier: Apache-2.0
"""UDP sockets with kernel time stamps, and the numbered packets sent between them."""

from __future__ import annotations

import errno
import socket
import struct
import time
from dataclasses import dataclass

from howdah.linux.namespace import Namespace

PROBE_PORT = 9001
SAMPLED_PORT = 9002
UNREAD_PORT = 9003

NUMBER = struct.Struct("=Q")

SO_TIMESTAMPNS = 35
_SO_SNDBUFFORCE = 32
SO_RCVBUFFORCE = 33
_SOL_UDP = 17
_UDP_SEGMENT = 103
_SO_TIMESTAMPING = 37
_TX_SOFTWARE, _REPORT_SOFTWARE, _OPT_ID, _OPT_TSONLY = 1 << 1, 1 << 4, 1 << 7, 1 << 11
_IP_RECVERR = 11
_EE_DATA_OFFSET = 12  # in struct sock_extended_err
_TIMESPEC = struct.Struct("=qq")
SEND_BUFFER_BYTES = 4 << 20
_RECEIVE_BUFFER_BYTES = 64 << 20


@dataclass(frozen=True)
class Arrival:
    """A received packet: its number, and the CLOCK_REALTIME at which the receiver's interface got it."""

    number: int
    time_ns: int


def wall_ns() -> int:
    """The clock of the kernel's receive time stamps."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def open_receiver(namespace: Namespace, address: str, port: int) -> socket.socket:
    opened = namespace.socket(socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    opened.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
    opened.bind((address, port))
    return opened


def open_unread(namespace: Namespace, address: str, port: int) -> socket.socket:
    """Open a port only to prevent ICMP errors; its receive buffer holds next to nothing."""
    opened = namespace.socket(socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    opened.bind((address, port))
    return opened


def open_sender(namespace: Namespace, address: str, segment_bytes: int | None = None) -> socket.socket:
    """Open a sending socket. With ``segment_bytes``, one send of up to 64 kB leaves as datagrams of that payload
    (UDP_SEGMENT, udp(7))."""
    opened = namespace.socket(socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, SEND_BUFFER_BYTES)
    if segment_bytes is not None:
        opened.setsockopt(_SOL_UDP, _UDP_SEGMENT, segment_bytes)
    opened.bind((address, 0))
    return opened


def send(sender: socket.socket, payload: bytearray | memoryview, address: str, port: int) -> bool:
    """Send a datagram; return False if the socket's send buffer is full."""
    try:
        sender.sendto(payload, (address, port))
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
            raise
        return False
    return True


def timestamp_ns(ancillary: list[tuple[int, int, bytes]], kind: int = SO_TIMESTAMPNS) -> int | None:
    """The kernel's time stamp in a packet's ancillary data; None without one."""
    for level, its_kind, value in ancillary:
        if (level, its_kind) == (socket.SOL_SOCKET, kind):
            seconds, nanoseconds = _TIMESPEC.unpack_from(value)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return None


def arrivals(receiver: socket.socket) -> list[Arrival]:
    """Read every packet that waits in the socket."""
    found: list[Arrival] = []
    while True:
        try:
            data, ancillary, _flags, _address = receiver.recvmsg(NUMBER.size, 64)
        except BlockingIOError:
            return found
        (number,) = NUMBER.unpack(data)
        if (time_ns := timestamp_ns(ancillary)) is not None:
            found.append(Arrival(number, time_ns))


def stamp_departures(sender: socket.socket) -> None:
    """Make the kernel note when each packet leaves the interface, after the sender's own queue (SO_TIMESTAMPING)."""
    flags = _TX_SOFTWARE | _REPORT_SOFTWARE | _OPT_ID | _OPT_TSONLY
    sender.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, flags)
    sender.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)


def departures(sender: socket.socket) -> dict[int, int]:
    """Return the CLOCK_REALTIME at which each packet left, by its position among those sent on this socket."""
    found: dict[int, int] = {}
    while True:
        try:
            _data, ancillary, _flags, _address = sender.recvmsg(0, 256, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            return found
        time_ns, number = timestamp_ns(ancillary, _SO_TIMESTAMPING), None
        for level, kind, value in ancillary:
            if level == socket.IPPROTO_IP and kind == _IP_RECVERR:
                (number,) = struct.unpack_from("=I", value, _EE_DATA_OFFSET)
        if time_ns is not None and number is not None:
            found[number] = time_ns
