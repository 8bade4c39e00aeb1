# SPDX-License-Identifier: Apache-2.0
"""The qdiscs of a run and how they change over time."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.delays import delay_lines, install_lines, line_changes
from howdah.plan.event import Event
from howdah.plan.flow import Delays
from howdah.plan.link import follow_trace, link_events
from howdah.plan.middlebox import install
from howdah.plan.network import Interface, Network
from howdah.plan.path import Hop, Path
from howdah.plan.placed import Filter
from howdah.plan.qdisc import (
    burst_bytes,
    police,
    rate_class,
    rate_limit,
)
from howdah.plan.queue import leaf, reverse_leaf
from howdah.plan.schedule import Schedule
from howdah.plan.step import Operation
from howdah.profile import Cell
from howdah.profile.link import LinkTrace

LEAST_SENDER_QUEUE_PACKETS = 10_000


@dataclass(frozen=True)
class Shaping:
    """``queues`` are the forward qdiscs of all hops, the bottleneck's first."""

    operations: list[Operation]
    changes: list[Event]
    queues: list[HopQueue]


def find_hops(cell: Cell, network: Network, pair: tuple[str, str]) -> list[Hop]:
    """Return the profile's further hops on their links: those between routers, before and after the bottleneck.

    Raise ProfileError if the topology has another number of them.
    """
    asked = cell.scenario.path.hops
    if not asked:
        return []
    links: dict[str, list[Interface]] = {"before": [], "after": []}
    node, place = pair[0], "before"
    for link in network.way(*pair):
        near = link.at(node)
        node = link.facing(near.node).node
        if link.bottleneck:
            place = "after"
        elif near.node != pair[0] and node != pair[1]:
            links[place].append(near)
    for place, found in links.items():
        wanted = sum(hop.place == place for hop in asked)
        if wanted != len(found):
            what = f"{wanted} hops {place} the bottleneck are asked for; the topology {network.name} has {len(found)}"
            raise ProfileError(what, where=cell.place("path", "hops"), hint="leave topology out: a chain is then made")
    waiting = {place: iter(found) for place, found in links.items()}
    path = cell.scenario.path
    frame = path.frame_bytes
    hops = []
    for hop in asked:
        interface = next(waiting[hop.place])
        buffer = max(hop.buffer.to_bytes(path.bdp(hop.rate), frame), frame)
        hops.append(Hop(interface.node, interface.name, hop.rate, buffer, hop.queue.kind, hop.place))
    return hops


def shape(
    cell: Cell,
    network: Network,
    pairs: list[tuple[str, str]],
    path: Path,
    delays: Delays,
    varying: Schedule,
    links: tuple[LinkTrace | None, LinkTrace | None],
    *,
    virtual_time: bool,
) -> Shaping:
    """Bottleneck, delay lines and sender interfaces; ``virtual_time`` makes rate limits exact to one frame. ``links``
    are the traces of both ways, where they have one."""
    ends = network.bottleneck_ends(*pairs[0])
    assert ends is not None  # endpoints() refused flows that do not cross it
    frame = path.frame_bytes

    spaced = cell.scenario.path.burst == "none"
    if spaced and not virtual_time:
        what = "without a burst a rate limit in real time loses what its timers are late by"
        hint = "leave it out, or use an engine in virtual time"
        raise ProfileError(what, where=cell.place("path", "burst"), hint=hint)

    if cell.scenario.path.tick is not None and not virtual_time:
        what = "in real time the delay lines' releases are not exact to a tick"
        raise ProfileError(what, where=cell.place("path", "tick"), hint="use an engine in virtual time")

    tunnel = path.tunnel_bytes

    def burst(rate: int) -> int:
        return burst_bytes(rate, frame, spaced=spaced, virtual_time=virtual_time)

    rate = path.rate_bits_per_second
    queues = [leaf(cell, path.buffer_bytes, rate)]
    operations = _limit(ends[0], rate, burst(rate), frame, queues[0], links[0], tunnel)
    if path.policer is not None:
        operations += police(ends[0], path.policer, hooked=any(isinstance(item, Filter) for item in operations))
    for number, hop in enumerate(path.hops):
        own = leaf(cell, hop.buffer_bytes, hop.rate_bits_per_second, number)
        queues.append(own)
        place = _interface(network, hop.node, hop.interface)
        operations += rate_limit(place, hop.rate_bits_per_second, burst(hop.rate_bits_per_second), frame, own, tunnel)
    if path.reverse_rate_bits_per_second is not None:
        reverse = path.reverse_rate_bits_per_second
        operations += _limit(ends[1], reverse, burst(reverse), frame, reverse_leaf(cell, path), links[1], tunnel)
    lines = delay_lines(cell, network, path, delays, varying, links)
    operations += install_lines(network, lines)
    below, switched = install(cell, network, path.middlebox)
    operations += below
    if path.sender_interface_bits_per_second is not None:
        rate = path.sender_interface_bits_per_second
        # TCP small queues keep the flows of one host below this, so the sender's own queue never drops.
        limit = max(LEAST_SENDER_QUEUE_PACKETS, 2000 * len(pairs), 2 * path.buffer_bytes // frame)
        reverse_senders = [pair[1] for flow, pair in _background(cell, pairs) if flow == "reverse"]
        for sender in dict.fromkeys([*network.nodes("sender"), *reverse_senders]):
            interface = network.access_link(sender).at(sender)
            operations += rate_limit(interface, rate, burst(rate), frame, Pfifo(limit), tunnel)
    changes = [
        Event(at_us, rate_class(end, changed, burst(changed), frame))
        for end, steps in zip(ends, (varying.other.rate, varying.other.reverse_rate), strict=True)
        for at_us, changed in steps
    ]
    for end, link in zip(ends, links, strict=True):
        changes += link_events(end, cell.scenario.duration) if link is not None else []
    changes += line_changes(cell, network, path, lines, varying)
    return Shaping(operations, changes + switched, queues)


def _limit(
    interface: Interface,
    rate: int,
    burst: int,
    frame_bytes: int,
    queue: HopQueue | Pfifo,
    link: LinkTrace | None,
    tunnel_bytes: int,
) -> list[Operation]:
    """Return one direction of the bottleneck, with a constant rate or a trace."""
    if link is None:
        return rate_limit(interface, rate, burst, frame_bytes, queue, tunnel_bytes)
    return follow_trace(interface, link, queue)


def _background(cell: Cell, pairs: list[tuple[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    """Return direction and hosts of each background flow."""
    background = cell.scenario.background
    return [
        (flow.direction, pair) for flow, pair in zip(background, pairs[len(pairs) - len(background) :], strict=True)
    ]


def _interface(network: Network, node: str, name: str) -> Interface:
    return next(link.at(node) for link in network.links_of(node) if link.at(node).name == name)
