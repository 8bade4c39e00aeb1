# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: veth pairs across namespaces, state, MTU, GSO limits, counters (RTM_*LINK); their addresses
(RTM_NEWADDR); and permanent neighbours, so that a run has no address resolution (RTM_NEWNEIGH)."""

from __future__ import annotations

import ipaddress
import socket
import struct

from howdah.codec import planned
from howdah.linux.netlink.message import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    Message,
    NetlinkSocket,
    attribute,
    nested,
    parse_attributes,
    text,
    u32,
)

RTM_NEWLINK = 16
RTM_DELLINK = 17
RTM_GETLINK = 18
RTM_NEWNEIGH = 28
RTM_NEWADDR = 20

_IFLA_ADDRESS = 1
_IFLA_LINK = 5
IFLA_IFNAME = 3
_IFLA_MTU = 4
_IFLA_TXQLEN = 13
_IFLA_LINKINFO = 18
IFLA_STATS64 = 23
_IFLA_NET_NS_FD = 28
_IFLA_GSO_MAX_SEGS = 40
_IFLA_GSO_MAX_SIZE = 41
_IFLA_PERM_ADDRESS = 54
_IFLA_INFO_KIND = 1
_IFLA_INFO_DATA = 2
_VETH_INFO_PEER = 1
_VLAN_ID = 1

_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_BROADCAST = 4
_ADDRESS_HEADER = struct.Struct("=BBBBI")  # struct ifaddrmsg

_NDA_DST = 1
_NDA_LLADDR = 2
_NUD_PERMANENT = 0x80
_NEIGHBOUR_HEADER = struct.Struct("=BxxxiHBB")  # struct ndmsg

_IFF_UP = 0x1
_IFF_RUNNING = 0x40

_INTERFACE = struct.Struct("=BxHiII")  # struct ifinfomsg
_STATISTICS_FIELDS = (
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
)


@planned
class LinkState:
    """An interface according to an RTM_NEWLINK answer; ``running``: it has a carrier and its qdisc works.

    ``statistics`` holds the first fields of struct rtnl_link_stats64.
    """

    index: int
    name: str
    up: bool
    running: bool
    mtu_bytes: int
    gso_max_segs: int
    gso_max_size_bytes: int
    mac: str
    statistics: dict[str, int]
    queue_packets: int = 0  # txqueuelen
    permanent_mac: str = ""  # of a NIC; empty if the kernel reports none


def interface_header(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    return _INTERFACE.pack(0, 0, index, flags, change)


def mac_bytes(mac: str) -> bytes:
    value = bytes.fromhex(mac.replace(":", ""))
    if len(value) != 6:
        raise ValueError(f"{mac!r} is not an Ethernet address")
    return value


def veth_request(
    interface: str, mac: str | None, peer_interface: str, peer_mac: str | None, peer_namespace: int
) -> bytes:
    """A request for a veth pair: one end in the socket's namespace, the peer in ``peer_namespace`` (a descriptor)."""
    peer = interface_header() + text(IFLA_IFNAME, peer_interface)
    if peer_mac:
        peer += attribute(_IFLA_ADDRESS, mac_bytes(peer_mac))
    peer += u32(_IFLA_NET_NS_FD, peer_namespace)
    own = interface_header() + text(IFLA_IFNAME, interface)
    if mac:
        own += attribute(_IFLA_ADDRESS, mac_bytes(mac))
    return own + nested(
        _IFLA_LINKINFO,
        text(_IFLA_INFO_KIND, "veth"),
        nested(_IFLA_INFO_DATA, attribute(_VETH_INFO_PEER, peer)),
    )


def create_veth(
    netlink: NetlinkSocket,
    interface: str,
    mac: str | None,
    peer_interface: str,
    peer_mac: str | None,
    peer_namespace: int,
) -> None:
    request = veth_request(interface, mac, peer_interface, peer_mac, peer_namespace)
    netlink.request(RTM_NEWLINK, request, NLM_F_CREATE | NLM_F_EXCL)


def set_up(netlink: NetlinkSocket, index: int) -> None:
    netlink.request(RTM_NEWLINK, interface_header(index, _IFF_UP, _IFF_UP))


def set_down(netlink: NetlinkSocket, index: int) -> None:
    netlink.request(RTM_NEWLINK, interface_header(index, 0, _IFF_UP))


def set_name(netlink: NetlinkSocket, index: int, name: str) -> None:
    """Rename an interface, which must be down."""
    netlink.request(RTM_NEWLINK, interface_header(index) + text(IFLA_IFNAME, name))


def set_mac(netlink: NetlinkSocket, index: int, mac: str) -> None:
    netlink.request(RTM_NEWLINK, interface_header(index) + attribute(_IFLA_ADDRESS, mac_bytes(mac)))


def move(netlink: NetlinkSocket, index: int, namespace: int, name: str) -> None:
    """Move an interface to another namespace (a descriptor), under a name that is free there."""
    netlink.request(RTM_NEWLINK, interface_header(index) + u32(_IFLA_NET_NS_FD, namespace) + text(IFLA_IFNAME, name))


def create_vlan(netlink: NetlinkSocket, parent: int, tag: int, interface: str) -> None:
    """Create an interface for a NIC's frames with one 802.1Q tag."""
    information = nested(
        _IFLA_LINKINFO,
        text(_IFLA_INFO_KIND, "vlan"),
        nested(_IFLA_INFO_DATA, attribute(_VLAN_ID, struct.pack("=H", tag))),
    )
    request = interface_header() + u32(_IFLA_LINK, parent) + text(IFLA_IFNAME, interface) + information
    netlink.request(RTM_NEWLINK, request, NLM_F_CREATE | NLM_F_EXCL)


def delete_link(netlink: NetlinkSocket, index: int) -> None:
    netlink.request(RTM_DELLINK, interface_header(index))


def set_mtu(netlink: NetlinkSocket, index: int, mtu_bytes: int) -> None:
    netlink.request(RTM_NEWLINK, interface_header(index) + u32(_IFLA_MTU, mtu_bytes))


def set_gso_max_segs(netlink: NetlinkSocket, index: int, gso_max_segs: int) -> None:
    netlink.request(RTM_NEWLINK, interface_header(index) + u32(_IFLA_GSO_MAX_SEGS, gso_max_segs))


def set_queue_length(netlink: NetlinkSocket, index: int, packets: int) -> None:
    """Set ``txqueuelen``."""
    netlink.request(RTM_NEWLINK, interface_header(index) + u32(_IFLA_TXQLEN, packets))


def parse_link(message: Message) -> LinkState:
    _family, _kind, index, flags, _change = _INTERFACE.unpack_from(message.payload)
    found = parse_attributes(message.payload[_INTERFACE.size :])
    statistics = dict.fromkeys(_STATISTICS_FIELDS, 0)
    if IFLA_STATS64 in found:
        values = struct.unpack_from(f"={len(_STATISTICS_FIELDS)}Q", found[IFLA_STATS64])
        statistics = dict(zip(_STATISTICS_FIELDS, values, strict=True))

    def number(kind: int) -> int:
        return int.from_bytes(found.get(kind, b"\0"), "little")

    return LinkState(
        index=index,
        name=found.get(IFLA_IFNAME, b"").rstrip(b"\0").decode(),
        up=bool(flags & _IFF_UP),
        running=bool(flags & _IFF_RUNNING),
        mtu_bytes=number(_IFLA_MTU),
        gso_max_segs=number(_IFLA_GSO_MAX_SEGS),
        gso_max_size_bytes=number(_IFLA_GSO_MAX_SIZE),
        mac=found.get(_IFLA_ADDRESS, b"").hex(":"),
        statistics=statistics,
        queue_packets=number(_IFLA_TXQLEN),
        permanent_mac=found.get(_IFLA_PERM_ADDRESS, b"").hex(":"),
    )


def links(netlink: NetlinkSocket) -> list[LinkState]:
    return [parse_link(message) for message in netlink.dump(RTM_GETLINK, interface_header())]


def index_of(netlink: NetlinkSocket, interface: str) -> int:
    """Return the interface's index. Raises NetlinkError (ENODEV) if no interface has this name."""
    answers = netlink.request(RTM_GETLINK, interface_header() + text(IFLA_IFNAME, interface))
    return parse_link(answers[0]).index


def address_request(index: int, address: str) -> bytes:
    """A request to add an address like ``10.1.0.1/24``. The broadcast address is the network's last one."""
    value = ipaddress.ip_interface(address)
    family = socket.AF_INET if value.version == 4 else socket.AF_INET6
    has_broadcast = value.version == 4 and value.network.prefixlen < 31
    return (
        _ADDRESS_HEADER.pack(family, value.network.prefixlen, 0, 0, index)
        + attribute(_IFA_LOCAL, value.ip.packed)
        + attribute(_IFA_ADDRESS, value.ip.packed)
        + (attribute(_IFA_BROADCAST, value.network.broadcast_address.packed) if has_broadcast else b"")
    )


def add_address(netlink: NetlinkSocket, index: int, address: str) -> None:
    netlink.request(RTM_NEWADDR, address_request(index, address), NLM_F_CREATE | NLM_F_EXCL)


def neighbour_request(index: int, address: str, mac: str) -> bytes:
    value = ipaddress.ip_address(address)
    family = socket.AF_INET if value.version == 4 else socket.AF_INET6
    return (
        _NEIGHBOUR_HEADER.pack(family, index, _NUD_PERMANENT, 0, 0)
        + attribute(_NDA_DST, value.packed)
        + attribute(_NDA_LLADDR, mac_bytes(mac))
    )


def add_neighbour(netlink: NetlinkSocket, index: int, address: str, mac: str) -> None:
    netlink.request(RTM_NEWNEIGH, neighbour_request(index, address, mac), NLM_F_CREATE | NLM_F_REPLACE)
