# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines and classes (RTM_*QDISC, RTM_*TCLASS): installing, changing in place, reading.

Their options are the fields of the classes in howdah/linux/netlink/discipline.
"""

from __future__ import annotations

import struct
from dataclasses import field

from howdah.codec import planned
from howdah.linux.netlink.discipline import statistics_of
from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue, HostQueue
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
)

RTM_NEWQDISC = 36
RTM_GETQDISC = 38
RTM_NEWTCLASS = 40

_TC_H_ROOT = 0xFFFFFFFF
_TC_H_INGRESS = 0xFFFFFFF1
TCA_KIND = 1
_TCA_OPTIONS = 2
_NLA_F_NESTED = 1 << 15
TCA_STATS = 3
TCA_STATS2 = 7
_TCA_STAB = 8
TCA_STATS_BASIC = 1
TCA_STATS_QUEUE = 3
TCA_STATS_APP = 4
TCA_STATS_PKT64 = 8

TCMSG = struct.Struct("=BxxxiIII")  # family, interface index, handle, parent, info


@planned
class QdiscState:
    """A qdisc according to an RTM_NEWQDISC answer; counters as in gnet_stats_basic and gnet_stats_queue."""

    index: int
    handle: str
    parent: str
    kind: str
    bytes: int
    packets: int
    drops: int
    overlimits: int
    backlog_bytes: int
    backlog_packets: int
    marked: int = 0  # packets that an active queue marked instead of dropping
    causes: dict[str, int] = field(default_factory=dict)  # drops by cause, if the kind reports them
    limits: dict[str, int] = field(default_factory=dict)  # of a host's queue
    settings: dict[str, int | str] = field(default_factory=dict)  # of a hop's queue of a kind that tc may not know


def parse_handle(value: str) -> int:
    """Convert ``root``, ``ingress``, ``1:`` or ``1:10`` (hexadecimal, as everywhere in tc) to a number."""
    if value == "root":
        return _TC_H_ROOT
    if value == "ingress":
        return _TC_H_INGRESS
    major, _, minor = value.partition(":")
    return int(major or "0", 16) << 16 | int(minor or "0", 16)


def format_handle(value: int) -> str:
    if value == _TC_H_ROOT:
        return "root"
    if value == _TC_H_INGRESS:
        return "ingress"
    minor = value & 0xFFFF
    return f"{value >> 16:x}:{minor:x}" if minor else f"{value >> 16:x}:"


def header(index: int, handle: str = "0:", parent: str = "0:") -> bytes:
    return TCMSG.pack(0, index, parse_handle(handle), parse_handle(parent), 0)


def qdisc_request(index: int, parent: str, handle: str, discipline: Discipline) -> bytes:
    kind, nests = text(TCA_KIND, discipline.kind), _NLA_F_NESTED if discipline.strict else 0
    request = header(index, handle, parent) + kind + attribute(_TCA_OPTIONS | nests, discipline.encode())
    sizes = discipline.size_table()
    return request + nested(_TCA_STAB, sizes) if sizes else request


def class_request(index: int, parent: str, classid: str, kind: str, of_class: Discipline) -> bytes:
    """A request for a class of a discipline of that kind."""
    return header(index, classid, parent) + text(TCA_KIND, kind) + nested(_TCA_OPTIONS, of_class.encode())


def add_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, discipline: Discipline) -> None:
    """Install a qdisc where the interface still has its default one, which is replaced."""
    netlink.request(RTM_NEWQDISC, qdisc_request(index, parent, handle, discipline), NLM_F_CREATE | NLM_F_EXCL)
    for encoded in discipline.further():
        ask_qdisc(netlink, index, parent, handle, discipline.kind, encoded)


def ask_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, kind: str, encoded: bytes) -> None:
    """Change a qdisc in place with options that are already encoded."""
    netlink.request(
        RTM_NEWQDISC, header(index, handle, parent) + text(TCA_KIND, kind) + attribute(_TCA_OPTIONS, encoded)
    )


def change_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, discipline: Discipline) -> None:
    """Change a qdisc in place, keeping its queue (``tc qdisc change``)."""
    netlink.request(RTM_NEWQDISC, qdisc_request(index, parent, handle, discipline))


def replace_qdisc(netlink: NetlinkSocket, index: int, parent: str, handle: str, discipline: Discipline) -> None:
    """Replace a qdisc by a new one; the packets in the old one are lost (``tc qdisc replace``)."""
    netlink.request(RTM_NEWQDISC, qdisc_request(index, parent, handle, discipline), NLM_F_CREATE | NLM_F_REPLACE)


def add_class(netlink: NetlinkSocket, index: int, parent: str, classid: str, kind: str, of_class: Discipline) -> None:
    netlink.request(RTM_NEWTCLASS, class_request(index, parent, classid, kind, of_class), NLM_F_CREATE | NLM_F_EXCL)


def change_class(
    netlink: NetlinkSocket, index: int, parent: str, classid: str, kind: str, of_class: Discipline
) -> None:
    netlink.request(RTM_NEWTCLASS, class_request(index, parent, classid, kind, of_class))


def parse_qdisc(message: Message) -> QdiscState:
    _family, index, handle, parent, _info = TCMSG.unpack_from(message.payload)
    found = parse_attributes(message.payload[TCMSG.size :])
    statistics = parse_attributes(found.get(TCA_STATS2, b""))
    sent_bytes, sent_packets = struct.unpack_from("=QI", statistics.get(TCA_STATS_BASIC, bytes(12)))
    if TCA_STATS_PKT64 in statistics:
        (sent_packets,) = struct.unpack_from("=Q", statistics[TCA_STATS_PKT64])
    queue = struct.unpack_from("=IIIII", statistics.get(TCA_STATS_QUEUE, bytes(20)))
    kind_name = found.get(TCA_KIND, b"").rstrip(b"\0").decode()
    own = statistics.get(TCA_STATS_APP, b"")
    options = found.get(_TCA_OPTIONS, b"")
    of_kind = statistics_of(kind_name) if own or options else None
    counted = of_kind if own else None
    return QdiscState(
        index=index,
        handle=format_handle(handle),
        parent=format_handle(parent),
        kind=kind_name,
        bytes=sent_bytes,
        packets=sent_packets,
        drops=queue[2],
        overlimits=queue[4],
        backlog_bytes=queue[1],
        backlog_packets=queue[0],
        marked=counted.marks(own) if counted else 0,
        causes=counted.causes(own) if counted else {},
        limits=of_kind.limits(options) if of_kind and issubclass(of_kind, HostQueue) else {},
        settings=of_kind.settings(options) if of_kind and issubclass(of_kind, HopQueue) else {},
    )


def qdiscs(netlink: NetlinkSocket) -> list[QdiscState]:
    return [parse_qdisc(message) for message in netlink.dump(RTM_GETQDISC, header(0))]
