# SPDX-License-Identifier: Apache-2.0
"""Links that follow a trace instead of a constant rate: their operations and events in a plan."""

from __future__ import annotations

from howdah.errors import ProfileError
from howdah.frame import ETHERNET_BYTES
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.linux.netlink.discipline.gaps import packed
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.event import Event
from howdah.plan.network import Interface
from howdah.plan.path import LinkFacts
from howdah.plan.placed import FollowLink
from howdah.plan.qdisc import CLASS_ID, LEAF_HANDLE, ROOT_HANDLE, mark_filter, queue_at
from howdah.plan.step import Operation
from howdah.profile import Cell
from howdah.profile.link import OPPORTUNITY_BYTES, TUN_BYTES, LinkTrace, read_link
from howdah.trait import Traits

LINK_MODULE = "howdah_link"


def find_link(cell: Cell, field: str, kind: Traits) -> LinkTrace | None:
    """Return the trace of ``path.link`` or ``path.reverse_link``. Raise ProfileError, also if the module is missing."""
    path = cell.scenario.path
    section = getattr(path, field)
    if section is None:
        return None
    place = ("path", field)
    if not kind.own_kernel or kind.several_machines:
        what = "a link that follows a trace is emulated by a kernel module"
        hint = "run it with the uml or vm engine, or give the path a rate"
        raise ProfileError(what, where=cell.place(*place), hint=hint)
    file = cell.absolute(section.file, *place)
    return read_link(section, file, cell.place(*place), cell.scenario.duration, path.mtu)


def facts(trace: LinkTrace | None) -> LinkFacts | None:
    if trace is None:
        return None
    return LinkFacts(
        file=trace.file,
        sha256=trace.sha256,
        opportunities=trace.in_file,
        round_us=trace.round_us,
        opportunity_bytes=OPPORTUNITY_BYTES,
        longest_wait_us=trace.longest_wait_us,
    )


def follow_trace(interface: Interface, trace: LinkTrace, leaf: HopQueue | Pfifo) -> list[Operation]:
    """Return the operations for the link with its queue; its rate is constant until an event starts the trace."""
    link = TraceLink(
        rate_bits_per_second=trace.rate_bits_per_second,
        opportunity_bytes=OPPORTUNITY_BYTES,
        overhead_bytes_less=ETHERNET_BYTES - TUN_BYTES,
        opportunities=len(trace.gaps_us),
        round_us=trace.round_us,
        gaps=packed(trace.gaps_us),
    )
    return [
        queue_at(interface, "root", ROOT_HANDLE, link),
        queue_at(interface, CLASS_ID, LEAF_HANDLE, leaf),
        *mark_filter(interface, leaf),
    ]


def most_bytes(trace: LinkTrace, window_us: int) -> int:
    """Return the most bytes that the link carries within any window of this length."""
    import numpy as np  # a plan without a link loads none

    rounds, rest_us = divmod(window_us, trace.round_us)
    times_us = np.cumsum(np.frombuffer(trace.gaps_us, np.uint32), dtype=np.int64)
    twice_us = np.concatenate([times_us, times_us + trace.round_us])
    until = np.searchsorted(twice_us, times_us + rest_us, side="right")
    return (rounds * times_us.size + int((until - np.arange(times_us.size)).max())) * OPPORTUNITY_BYTES


def link_events(interface: Interface, duration_us: int) -> list[Event]:
    """Return the events that start the trace with the flows and restore the constant rate after them."""
    place = (interface.node, interface.name, ROOT_HANDLE)
    return [Event(0, FollowLink(*place, follows=True)), Event(duration_us, FollowLink(*place, follows=False))]
