# SPDX-License-Identifier: Apache-2.0
"""Permanent neighbours, so that no address resolution happens during a run (RTM_NEWNEIGH)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.linux.netlink.link import mac_bytes
from howdah.linux.netlink.message import NLM_F_CREATE, NLM_F_REPLACE, NetlinkSocket, attribute

RTM_NEWNEIGH = 28
_NDA_DST = 1
_NDA_LLADDR = 2
_NUD_PERMANENT = 0x80
_HEADER = struct.Struct("=BxxxiHBB")  # struct ndmsg


def neighbour_request(index: int, address: str, mac: str) -> bytes:
    value = ipaddress.ip_address(address)
    family = socket.AF_INET if value.version == 4 else socket.AF_INET6
    return (
        _HEADER.pack(family, index, _NUD_PERMANENT, 0, 0)
        + attribute(_NDA_DST, value.packed)
        + attribute(_NDA_LLADDR, mac_bytes(mac))
    )


def add_neighbour(netlink: NetlinkSocket, index: int, address: str, mac: str) -> None:
    netlink.request(RTM_NEWNEIGH, neighbour_request(index, address, mac), NLM_F_CREATE | NLM_F_REPLACE)
