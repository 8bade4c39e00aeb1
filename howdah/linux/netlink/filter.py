# SPDX-License-Identifier: Apache-2.0
"""Egress filters (RTM_NEWTFILTER) that assign IPv4 packets with a DSCP to a virtual queue of GRED.

The filter is a u32 filter on the egress hook of clsact (include/uapi/linux/pkt_cls.h). It sets a matching packet's
tc_index to the number of the queue, which GRED reads.
"""

from __future__ import annotations

import socket
import struct

from howdah.linux.netlink.message import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NetlinkSocket,
    attribute,
    nested,
    parse_attributes,
    text,
    u32,
)

RTM_NEWTFILTER = 44
RTM_GETTFILTER = 46

_TCMSG = struct.Struct("=BxxxiIII")
_TCA_KIND, _TCA_OPTIONS = 1, 2
_U32_CLASSID, _U32_SEL = 1, 5
_CLSACT_EGRESS = 0xFFFFFFF3
MARKS_PRIORITY = 2  # after the policer, which passes packets that it does not drop to later filters
_INFO = MARKS_PRIORITY << 16 | socket.htons(0x0800)  # ETH_P_IP
_SELECTOR = struct.Struct("=BBBxHHhhI")  # struct tc_u32_sel: flags, shift, keys, unused offsets
_KEY = struct.Struct(">IIii")  # struct tc_u32_key: mask and value in network order, at the first word of the header
_TERMINAL = 1
_DSCP_SHIFT = 18  # position of the six bits in the header's first word
_DSCP_MASK = 0x3F << _DSCP_SHIFT


def _place(index: int) -> bytes:
    return _TCMSG.pack(0, index, 0, _CLSACT_EGRESS, _INFO)


def filter_request(index: int, dscp: int, queue: int) -> bytes:
    key = _KEY.pack(_DSCP_MASK, dscp << _DSCP_SHIFT, 0, 0)
    selector = _SELECTOR.pack(_TERMINAL, 0, 1, 0, 0, 0, 0, 0) + key
    options = nested(_TCA_OPTIONS, u32(_U32_CLASSID, queue), attribute(_U32_SEL, selector))
    return _place(index) + text(_TCA_KIND, "u32") + options


def add_filter(netlink: NetlinkSocket, index: int, dscp: int, queue: int) -> None:
    netlink.request(RTM_NEWTFILTER, filter_request(index, dscp, queue), NLM_F_CREATE | NLM_F_EXCL)


def filters(netlink: NetlinkSocket, index: int) -> list[tuple[int, int]]:
    """Read DSCP and queue of each filter of an interface that has clsact."""
    found = []
    for message in netlink.dump(RTM_GETTFILTER, _TCMSG.pack(0, index, 0, _CLSACT_EGRESS, 0)):
        if message.kind != RTM_NEWTFILTER:
            continue
        options = parse_attributes(parse_attributes(message.payload[_TCMSG.size :]).get(_TCA_OPTIONS, b""))
        selector, number = options.get(_U32_SEL, b""), options.get(_U32_CLASSID)
        if len(selector) < _SELECTOR.size + _KEY.size or number is None:
            continue  # this entry is the filters' hash table
        _mask, value, _at, _more = _KEY.unpack_from(selector, _SELECTOR.size)
        found.append((value >> _DSCP_SHIFT, int.from_bytes(number, "little")))
    return found
