# SPDX-License-Identifier: Apache-2.0
"""A socket's segment counters, read before it is closed: a short connection may end between two samples."""

from __future__ import annotations

import socket
import struct

from howdah.codec import planned

# Offsets of tcpi_total_retrans and tcpi_data_segs_out in struct tcp_info (include/uapi/linux/tcp.h).
_RETRANSMITTED_AT, _SENT_AT, _INFO_BYTES = 100, 156, 160


@planned
class Segments:
    """Segments with data that were sent (retransmissions included), and those that were retransmitted."""

    sent: int
    retransmitted: int


def segments_of(connection: socket.socket) -> Segments | None:
    """Read a connected or closed socket's counters; None if the kernel has none (before 4.6)."""
    return segments_in(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))


def segments_in(info: bytes) -> Segments | None:
    """Parse a struct tcp_info; None if it is too short."""
    if len(info) < _INFO_BYTES:
        return None
    (retransmitted,) = struct.unpack_from("=I", info, _RETRANSMITTED_AT)
    (sent,) = struct.unpack_from("=I", info, _SENT_AT)
    return Segments(sent, retransmitted)
