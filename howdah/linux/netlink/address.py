# SPDX-License-Identifier: Apache-2.0
"""Interface addresses (RTM_NEWADDR)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.linux.netlink.message import NLM_F_CREATE, NLM_F_EXCL, NetlinkSocket, attribute

RTM_NEWADDR = 20
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_BROADCAST = 4
_HEADER = struct.Struct("=BBBBI")  # struct ifaddrmsg


def address_request(index: int, address: str) -> bytes:
    """``address`` reads ``10.1.0.1/24``. The broadcast address is the network's last one."""
    value = ipaddress.ip_interface(address)
    family = socket.AF_INET if value.version == 4 else socket.AF_INET6
    has_broadcast = value.version == 4 and value.network.prefixlen < 31
    return (
        _HEADER.pack(family, value.network.prefixlen, 0, 0, index)
        + attribute(_IFA_LOCAL, value.ip.packed)
        + attribute(_IFA_ADDRESS, value.ip.packed)
        + (attribute(_IFA_BROADCAST, value.network.broadcast_address.packed) if has_broadcast else b"")
    )


def add_address(netlink: NetlinkSocket, index: int, address: str) -> None:
    netlink.request(RTM_NEWADDR, address_request(index, address), NLM_F_CREATE | NLM_F_EXCL)
