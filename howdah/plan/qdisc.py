# SPDX-License-Identifier: Apache-2.0
"""The qdisc layer: what makes veth pairs a path.

- *bottleneck*: htb (rate) with a bfifo (buffer, exact in bytes) or another queue on the router's interface into the
  bottleneck link; further hops likewise;
- *policer*: a filter in front of the bottleneck's queue (howdah/linux/netlink/police.py);
- *delay*: netem on the last router's interface towards each host, so that every host has its own delay; the delay is a
  hop apart from the buffer, and no sender has a netem (which would disturb TCP small queues and pacing);
- *sender interface*: htb with a pfifo on each sender, the NIC of the papers. Without it a veth takes any burst at once.
"""

from __future__ import annotations

from howdah.linux.netlink.discipline.clsact import Clsact
from howdah.linux.netlink.discipline.discipline import Discipline, HopQueue
from howdah.linux.netlink.discipline.htb import Htb, HtbClass
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.network import Interface, Network
from howdah.plan.placed import Class, Filter, Police, Qdisc
from howdah.plan.policer import INGRESS_HANDLE, Policer
from howdah.plan.step import Operation

ROOT_HANDLE = "1:"
LEAF_HANDLE = "10:"
CLASS_ID = "1:1"
MARKED_QUEUE = 1  # the virtual queue of marked packets; the others are in the first, 0

SPACED_BURST_NS = 1000  # a timer in virtual time is late by less, and what it missed is made up for
REAL_TIME_BURST_US = 250  # what a timer of a machine running in real time may be late


def burst_bytes(rate_bits_per_second: int, frame_bytes: int, *, spaced: bool, virtual_time: bool) -> int:
    """One frame where timers are exact; in real time, what passes while a timer is late.

    A class of htb sends as long as its tokens are not below zero: with a frame's worth, two frames pass at once after a
    pause. ``spaced``: with what is due in a step or two of the clock, a frame leaves when the one before has passed.
    """
    if virtual_time:
        return max(1, rate_bits_per_second * SPACED_BURST_NS // 8_000_000_000) if spaced else frame_bytes
    return max(10 * frame_bytes, rate_bits_per_second * REAL_TIME_BURST_US // 8_000_000)


def queue_at(interface: Interface, parent: str, handle: str, discipline: Discipline) -> Qdisc:
    """The operation that makes a discipline, and the change of one that is there."""
    return Qdisc(interface.node, interface.name, parent, handle, discipline)


def rate_limit(
    interface: Interface,
    rate_bits_per_second: int,
    burst: int,
    frame_bytes: int,
    leaf: HopQueue | Pfifo,
    overhead_bytes: int = 0,
) -> list[Operation]:
    """htb with one class and the leaf; what reads the mark for one that looks at it. ``overhead_bytes`` are a
    tunnel's."""
    return [
        queue_at(interface, "root", ROOT_HANDLE, Htb(1, overhead_bytes)),
        rate_class(interface, rate_bits_per_second, burst, frame_bytes),
        queue_at(interface, CLASS_ID, LEAF_HANDLE, leaf),
        *mark_filter(interface, leaf),
    ]


def mark_filter(interface: Interface, leaf: HopQueue | Pfifo) -> list[Operation]:
    """What reads the mark of packets, for a queue that looks at it."""
    if not isinstance(leaf, HopQueue) or (dscp := leaf.marked()) is None:
        return []
    return [hook(interface), Filter(interface.node, interface.name, dscp, MARKED_QUEUE)]


def hook(interface: Interface) -> Qdisc:
    """Where filters of what leaves an interface hang."""
    return queue_at(interface, "ingress", INGRESS_HANDLE, Clsact())


def police(interface: Interface, policer: Policer, *, hooked: bool) -> list[Operation]:
    """A policer in front of the queues of an interface; ``hooked``: filters hang there already."""
    policing = Police(interface.node, interface.name, policer.rate_bits_per_second, policer.burst_bytes)
    return [policing] if hooked else [hook(interface), policing]


def rate_class(interface: Interface, rate_bits_per_second: int, burst: int, frame_bytes: int) -> Class:
    """The class of a rate limit: the operation that makes it, and the change of one that is there."""
    rate = HtbClass(rate_bits_per_second, burst, burst, frame_bytes)
    return Class(interface.node, interface.name, ROOT_HANDLE, CLASS_ID, rate)


def delay_interface(network: Network, host: str) -> Interface:
    """The router's interface towards a host."""
    return network.access_link(host).facing(host)
