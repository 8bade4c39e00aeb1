# SPDX-License-Identifier: Apache-2.0
"""The qdiscs that turn veth pairs into a path.

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
MARKED_QUEUE = 1  # virtual queue of marked packets; the others use queue 0

SPACED_BURST_NS = 1000  # more than a timer in virtual time is late; the burst makes up for the delay
REAL_TIME_BURST_US = 250  # how late a timer of a machine in real time may be


def burst_bytes(rate_bits_per_second: int, frame_bytes: int, *, spaced: bool, virtual_time: bool) -> int:
    """Return the burst of a rate limit: one frame if timers are exact; in real time, what passes while a timer is late.

    htb sends while its tokens are not negative: with a burst of one frame, two frames pass at once after a pause. With
    ``spaced``, the burst covers a step or two of the clock, and a frame leaves once the one before has passed.
    """
    if virtual_time:
        return max(1, rate_bits_per_second * SPACED_BURST_NS // 8_000_000_000) if spaced else frame_bytes
    return max(10 * frame_bytes, rate_bits_per_second * REAL_TIME_BURST_US // 8_000_000)


def queue_at(interface: Interface, parent: str, handle: str, discipline: Discipline) -> Qdisc:
    """Return the operation that creates a discipline; as an event it changes an existing one."""
    return Qdisc(interface.node, interface.name, parent, handle, discipline)


def rate_limit(
    interface: Interface,
    rate_bits_per_second: int,
    burst: int,
    frame_bytes: int,
    leaf: HopQueue | Pfifo,
    overhead_bytes: int = 0,
) -> list[Operation]:
    """Return htb with one class and the leaf, and the filter for a leaf that reads marks. ``overhead_bytes`` are a
    tunnel's."""
    return [
        queue_at(interface, "root", ROOT_HANDLE, Htb(1, overhead_bytes)),
        rate_class(interface, rate_bits_per_second, burst, frame_bytes),
        queue_at(interface, CLASS_ID, LEAF_HANDLE, leaf),
        *mark_filter(interface, leaf),
    ]


def mark_filter(interface: Interface, leaf: HopQueue | Pfifo) -> list[Operation]:
    """Return the filter that classifies packets by their mark, for a queue that distinguishes them."""
    if not isinstance(leaf, HopQueue) or (dscp := leaf.marked()) is None:
        return []
    return [hook(interface), Filter(interface.node, interface.name, dscp, MARKED_QUEUE)]


def hook(interface: Interface) -> Qdisc:
    """Return the qdisc to which filters of an interface's outgoing packets are attached."""
    return queue_at(interface, "ingress", INGRESS_HANDLE, Clsact())


def police(interface: Interface, policer: Policer, *, hooked: bool) -> list[Operation]:
    """Return a policer in front of an interface's queues; ``hooked``: the qdisc for filters already exists."""
    policing = Police(interface.node, interface.name, policer.rate_bits_per_second, policer.burst_bytes)
    return [policing] if hooked else [hook(interface), policing]


def rate_class(interface: Interface, rate_bits_per_second: int, burst: int, frame_bytes: int) -> Class:
    """Return the operation that creates the class of a rate limit; as an event it changes an existing one."""
    rate = HtbClass(rate_bits_per_second, burst, burst, frame_bytes)
    return Class(interface.node, interface.name, ROOT_HANDLE, CLASS_ID, rate)


def delay_interface(network: Network, host: str) -> Interface:
    """The router's interface towards a host."""
    return network.access_link(host).facing(host)
