# SPDX-License-Identifier: Apache-2.0
"""Routes and their TCP metrics (RTM_NEWROUTE)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.codec import planned
from howdah.linux.netlink.message import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    Message,
    NetlinkSocket,
    attribute,
    nested,
    parse_attributes,
    u32,
)

RTM_NEWROUTE = 24
RTM_GETROUTE = 26
_RTA_DST = 1
_RTA_OIF = 4
_RTA_GATEWAY = 5
_RTA_METRICS = 8
_RTA_TABLE = 15
RTAX_INITCWND = 11
RTAX_INITRWND = 14
RTAX_QUICKACK = 15

_RT_TABLE_MAIN = 254
_RTPROT_KERNEL = 2
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
    """A request for a route with protocol ``boot``, like ip's; arguments have the form of ``RouteState``'s fields."""
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


@planned
class RouteState:
    """A unicast route of the main table; ``destination`` is ``default`` or a prefix, ``metrics`` are by RTAX_*."""

    destination: str
    via: str | None
    index: int | None
    metrics: dict[int, int]


def parse_route(message: Message) -> RouteState | None:
    """Return the route; None if it is not a unicast route of the main table, or if the kernel made it itself."""
    family, length, _source, _tos, table, protocol, _scope, kind, _flags = _HEADER.unpack_from(message.payload)
    found = parse_attributes(message.payload[_HEADER.size :])
    if _RTA_TABLE in found:
        (table,) = struct.unpack("=I", found[_RTA_TABLE])
    if table != _RT_TABLE_MAIN or kind != _RTN_UNICAST or protocol == _RTPROT_KERNEL:
        return None
    network = found.get(_RTA_DST)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    gateway = found.get(_RTA_GATEWAY)
    destination = f"{ipaddress.ip_address(network)}/{length}" if network and length else "default"
    index = struct.unpack("=I", found[_RTA_OIF])[0] if _RTA_OIF in found else None
    metrics = {
        number: struct.unpack("=I", value)[0]
        for number, value in parse_attributes(found.get(_RTA_METRICS, b"")).items()
        if len(value) == 4
    }
    return RouteState(destination, str(ipaddress.ip_address(gateway)) if gateway else None, index, metrics)


def routes(netlink: NetlinkSocket) -> list[RouteState]:
    """Read the routes of both families that somebody set, without those that the kernel makes for its addresses."""
    answers = netlink.dump(RTM_GETROUTE, _HEADER.pack(socket.AF_UNSPEC, 0, 0, 0, 0, 0, 0, 0, 0))
    return [route for message in answers if (route := parse_route(message)) is not None]
