# SPDX-License-Identifier: Apache-2.0
"""Header sizes in bytes. Standard library only: guests use it, too."""

from __future__ import annotations

ETHERNET_BYTES, IPV4_BYTES, TCP_BYTES, UDP_BYTES = 14, 20, 20, 8
TIME_STAMP_BYTES = 12  # TCP's option, padded
IP_AND_UDP_BYTES = IPV4_BYTES + UDP_BYTES
IP_AND_TCP_BYTES = IPV4_BYTES + TCP_BYTES
STAMPED_TCP_BYTES = IP_AND_TCP_BYTES + TIME_STAMP_BYTES  # a kernel's segment between Ethernet header and payload
UDP_FRAME_BYTES = ETHERNET_BYTES + IP_AND_UDP_BYTES  # a datagram's frame without the payload


def frame_bytes(mtu_bytes: int) -> int:
    """Return the size of a full Ethernet frame."""
    return mtu_bytes + ETHERNET_BYTES
