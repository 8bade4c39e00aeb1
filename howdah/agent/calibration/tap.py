# SPDX-License-Identifier: Apache-2.0
"""Packets as they leave an interface, after its queue and before the wire, with kernel time stamps (packet(7))."""

from __future__ import annotations

import errno
import socket

from howdah.agent.calibration.udp import NUMBER, SO_RCVBUFFORCE, SO_TIMESTAMPNS, Arrival, timestamp_ns
from howdah.frame import UDP_BYTES
from howdah.linux.namespace import Namespace

_EVERY_PROTOCOL = 0x0003  # ETH_P_ALL: only such sockets see outgoing packets
_BUFFER_BYTES = 64 << 20
_UDP = 17
_HEADERS_BYTES = 128


class Tap:
    """Captures packets that an interface sends from now on."""

    def __init__(self, namespace: Namespace, interface: str) -> None:
        self._socket = namespace.socket(socket.SOCK_DGRAM, socket.AF_PACKET)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.bind((interface, _EVERY_PROTOCOL))

    def departures(self, address: str, port: int) -> list[Arrival]:
        """Return number and CLOCK_REALTIME of each waiting packet that was sent to this address and UDP port."""
        found: list[Arrival] = []
        wanted_address = socket.inet_aton(address)
        while True:
            try:
                data, ancillary, _flags, sender = self._socket.recvmsg(_HEADERS_BYTES, 64)
            except BlockingIOError:
                return found
            except OSError as error:
                if error.errno == errno.ENETDOWN:  # reported once if the interface went down meanwhile
                    continue
                raise
            if sender[2] != socket.PACKET_OUTGOING:
                continue
            number = _number(data, wanted_address, port)
            time_ns = timestamp_ns(ancillary)
            if number is not None and time_ns is not None:
                found.append(Arrival(number, time_ns))

    def close(self) -> None:
        self._socket.close()


def _number(data: bytes, address: bytes, port: int) -> int | None:
    """The number that a probe carries (udp.py); None for any other packet."""
    if len(data) < 20 or data[0] >> 4 != 4 or data[9] != _UDP or data[16:20] != address:
        return None
    payload = (data[0] & 0x0F) * 4 + UDP_BYTES
    if len(data) < payload + NUMBER.size or int.from_bytes(data[payload - 6 : payload - 4], "big") != port:
        return None
    (number,) = NUMBER.unpack_from(data, payload)
    return int(number)
