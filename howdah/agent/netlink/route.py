# SPDX-License-Identifier: Apache-2.0
"""Routes and their TCP metrics (RTM_NEWROUTE)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.agent.netlink.message import NLM_F_CREATE, NLM_F_EXCL, NetlinkSocket, attribute, nested, u32

RTM_NEWROUTE = 24
_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_RTA_METRICS = 8
RTAX_INITCWND = 11
RTAX_INITRWND = 14
RTAX_QUICKACK = 15

_RT_TABLE_MAIN = 254
_RTPROT_BOOT = 3
_RT_SCOPE_UNIVERSE = 0
_RT_SCOPE_LINK = 253
_RTN_UNICAST = 1
_HEADER = struct.Struct("=BBBBBBBBI")  # struct rtmsg


def route_request(
    index: int | None,
    destination: str,
    via: str | None,
    metrics: dict[int, int],
) -> bytes:
    """``destination`` is ``default`` or a prefix; ``metrics`` maps RTAX_* to values. Protocol ``boot``, as by ip."""
    gateway = ipaddress.ip_address(via) if via else None
    network = None if destination == "default" else ipaddress.ip_network(destination)
    version = network.version if network else gateway.version if gateway else 4
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    scope = _RT_SCOPE_UNIVERSE if gateway else _RT_SCOPE_LINK
    prefix_length = network.prefixlen if network else 0
    request = _HEADER.pack(family, prefix_length, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, scope, _RTN_UNICAST, 0)
    if network:
        request += attribute(_RTA_DST, network.network_address.packed)
    if gateway:
        request += attribute(_RTA_GATEWAY, gateway.packed)
    if index is not None:
        request += u32(_RTA_OIF, index)
    if metrics:
        request += nested(_RTA_METRICS, *(u32(kind, value) for kind, value in sorted(metrics.items())))
    return request


def add_route(
    netlink: NetlinkSocket, index: int | None, destination: str, via: str | None, metrics: dict[int, int]
) -> None:
    netlink.request(RTM_NEWROUTE, route_request(index, destination, via, metrics), NLM_F_CREATE | NLM_F_EXCL)
