# SPDX-License-Identifier: Apache-2.0
"""What a socket counted of its segments, read before it is closed: a short connection may fall between two readings."""

from __future__ import annotations

import socket
import struct

from howdah.codec import planned

# struct tcp_info of include/uapi/linux/tcp.h: tcpi_total_retrans and tcpi_data_segs_out.
_RETRANSMITTED_AT, _SENT_AT, _INFO_BYTES = 100, 156, 160


@planned
class Segments:
    """Segments with data that were sent, retransmissions included, and retransmissions alone."""

    sent: int
    retransmitted: int


def segments_of(connection: socket.socket) -> Segments | None:
    """Of a connected or closed socket; None if the kernel tells less (before 4.6)."""
    return segments_in(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES))


def segments_in(info: bytes) -> Segments | None:
    """Of a struct tcp_info; None if it is too short."""
    if len(info) < _INFO_BYTES:
        return None
    (retransmitted,) = struct.unpack_from("=I", info, _RETRANSMITTED_AT)
    (sent,) = struct.unpack_from("=I", info, _SENT_AT)
    return Segments(sent, retransmitted)
