# SPDX-License-Identifier: Apache-2.0
"""The kernel's policer (net/sched/act_police.c): a token bucket that drops excess packets and delays nothing.

It is the action of a matchall filter on the egress hook of clsact (sch_handle_egress of net/core/dev.c). Each packet
that leaves the interface passes it once, before the interface's queue. A frame counts with its Ethernet header. Layouts
are those of include/uapi/linux/pkt_cls.h.
"""

from __future__ import annotations

import socket
import struct

from howdah.linux.netlink.discipline.rate import TICK_NS, U32_MAX, rate_specification, ticks
from howdah.linux.netlink.message import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NetlinkSocket,
    attribute,
    nested,
    parse_attributes,
    text,
    u32,
    u64,
)

RTM_NEWTFILTER = 44
RTM_GETTFILTER = 46

# The filter's priority: before the filters that select marked packets for a queue.
PRIORITY = 1
LARGEST_PACKET_BYTES = 1 << 20  # larger packets would always be dropped; the kernel makes none

_TCMSG = struct.Struct("=BxxxiIII")
_CLSACT_EGRESS = 0xFFFFFFF3
_INFO = PRIORITY << 16 | socket.htons(0x0003)  # ETH_P_ALL
_TCA_KIND, _TCA_OPTIONS = 1, 2
_MATCHALL_ACT = 2
_FIRST_ACTION = 1
_ACT_KIND, _ACT_OPTIONS = 1, 2
_POLICE_TBF, _POLICE_RATE, _POLICE_RESULT, _POLICE_RATE64 = 1, 2, 5, 8
# struct tc_police: index, action, limit, burst (in ticks), mtu; then two struct tc_ratespec, references, capabilities.
_POLICE = struct.Struct("=IiIII12s12siiI")
_TABLE_BYTES = 1024  # required by the kernel, but not read since Linux 3.8
_SHOT, _CONTINUE = 2, U32_MAX  # TC_ACT_SHOT, TC_ACT_UNSPEC: conforming packets pass to later filters


def police_request(index: int, rate_bits_per_second: int, burst_bytes: int) -> bytes:
    bytes_per_second = rate_bits_per_second // 8
    burst_ticks = min(ticks(burst_bytes, bytes_per_second), U32_MAX)
    rate = rate_specification(bytes_per_second)
    police = _POLICE.pack(0, _SHOT, 0, burst_ticks, LARGEST_PACKET_BYTES, rate, bytes(12), 0, 0, 0)
    options = [attribute(_POLICE_TBF, police), attribute(_POLICE_RATE, bytes(_TABLE_BYTES))]
    options += [u64(_POLICE_RATE64, bytes_per_second)] * (bytes_per_second > U32_MAX)
    action = nested(
        _FIRST_ACTION, text(_ACT_KIND, "police"), nested(_ACT_OPTIONS, *options, u32(_POLICE_RESULT, _CONTINUE))
    )
    place = _TCMSG.pack(0, index, 0, _CLSACT_EGRESS, _INFO)
    return place + text(_TCA_KIND, "matchall") + nested(_TCA_OPTIONS, nested(_MATCHALL_ACT, action))


def add_policer(netlink: NetlinkSocket, index: int, rate_bits_per_second: int, burst_bytes: int) -> None:
    """Add a policer to an interface that has clsact."""
    netlink.request(RTM_NEWTFILTER, police_request(index, rate_bits_per_second, burst_bytes), NLM_F_CREATE | NLM_F_EXCL)


def parse_policer(payload: bytes) -> tuple[int, int] | None:
    """Return rate (bits per second) and burst (bytes) of the policer in an RTM_NEWTFILTER answer; None for another
    filter."""
    outer = parse_attributes(payload[_TCMSG.size :])
    options = parse_attributes(outer.get(_TCA_OPTIONS, b""))
    actions = parse_attributes(options.get(_MATCHALL_ACT, b"")) if outer.get(_TCA_KIND) == b"matchall\0" else {}
    action = parse_attributes(actions.get(_FIRST_ACTION, b""))
    found = parse_attributes(action.get(_ACT_OPTIONS, b""))
    police = found.get(_POLICE_TBF, b"")
    if action.get(_ACT_KIND) != b"police\0" or len(police) < _POLICE.size:
        return None
    values = _POLICE.unpack_from(police)
    rate = struct.unpack_from("=I", values[5], 8)[0]
    if _POLICE_RATE64 in found:
        rate = int.from_bytes(found[_POLICE_RATE64][:8], "little")
    burst_bytes = values[3] * TICK_NS * rate // 1_000_000_000
    return rate * 8, burst_bytes


def policers(netlink: NetlinkSocket, index: int) -> list[tuple[int, int]]:
    """Read rate and burst of each policer of an interface that has clsact."""
    answers = netlink.dump(RTM_GETTFILTER, _TCMSG.pack(0, index, 0, _CLSACT_EGRESS, 0))
    found = (parse_policer(message.payload) for message in answers if message.kind == RTM_NEWTFILTER)
    return [each for each in found if each is not None]
