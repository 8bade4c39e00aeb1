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
from howdah.plan.placed import Class, Filter
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
    wanted = cell.scenario.path.hops
    if not wanted:
        return []
    links: dict[str, list[Interface]] = {"before": [], "after": []}
    node, place = pair[0], "before"
    for link in network.links_between(*pair):
        near = link.at(node)
        node = link.facing(near.node).node
        if link.bottleneck:
            place = "after"
        elif near.node != pair[0] and node != pair[1]:
            links[place].append(near)
    for place, found in links.items():
        count = sum(hop.place == place for hop in wanted)
        if count != len(found):
            what = f"{count} hops {place} the bottleneck are asked for; the topology {network.name} has {len(found)}"
            raise ProfileError(what, where=cell.place("path", "hops"), hint="leave topology out: a chain is then made")
    waiting = {place: iter(found) for place, found in links.items()}
    path = cell.scenario.path
    frame = path.frame_bytes
    hops = []
    for hop in wanted:
        interface = next(waiting[hop.place])
        buffer = max(hop.buffer.to_bytes(path.bdp(hop.rate), frame), frame)
        hops.append(Hop(interface.node, interface.name, hop.rate, buffer, hop.queue.kind, hop.place))
    return hops


@dataclass(frozen=True)
class _RateLimits:
    """How the rate limits of a run are made: ``spaced`` frames, and timers that are exact in virtual time."""

    frame_bytes: int
    tunnel_bytes: int
    spaced: bool
    virtual_time: bool

    def _burst_bytes(self, rate: int) -> int:
        return burst_bytes(rate, self.frame_bytes, spaced=self.spaced, virtual_time=self.virtual_time)

    def limit(self, interface: Interface, rate: int, queue: HopQueue | Pfifo) -> list[Operation]:
        burst = self._burst_bytes(rate)
        return rate_limit(interface, rate, burst, self.frame_bytes, queue, self.tunnel_bytes)

    def bottleneck(self, interface: Interface, rate: int, queue: HopQueue, link: LinkTrace | None) -> list[Operation]:
        """Return one direction of the bottleneck, with a constant rate or a trace."""
        return self.limit(interface, rate, queue) if link is None else follow_trace(interface, link, queue)

    def change(self, interface: Interface, rate: int) -> Class:
        return rate_class(interface, rate, self._burst_bytes(rate), self.frame_bytes)


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
    """Return bottleneck, delay lines and sender interfaces; ``virtual_time`` makes rate limits exact to one frame.

    ``links`` are the traces of both directions, if any.
    """
    ends = network.bottleneck_ends(*pairs[0])
    assert ends is not None  # endpoints() refused flows that do not cross it
    if not virtual_time:
        _check_real_time(cell)
    limits = _RateLimits(path.frame_bytes, path.tunnel_bytes, cell.scenario.path.burst == "none", virtual_time)
    queues = [leaf(cell, path.buffer_bytes, path.rate_bits_per_second)]
    operations = limits.bottleneck(ends[0], path.rate_bits_per_second, queues[0], links[0])
    if path.policer is not None:
        operations += police(ends[0], path.policer, hooked=any(isinstance(item, Filter) for item in operations))
    for number, hop in enumerate(path.hops):
        queues.append(leaf(cell, hop.buffer_bytes, hop.rate_bits_per_second, number))
        interface = _interface(network, hop.node, hop.interface)
        operations += limits.limit(interface, hop.rate_bits_per_second, queues[-1])
    if path.reverse_rate_bits_per_second is not None:
        operations += limits.bottleneck(ends[1], path.reverse_rate_bits_per_second, reverse_leaf(cell, path), links[1])
    lines = delay_lines(cell, network, path, delays, varying, links)
    operations += install_lines(network, lines)
    below, switched = install(cell, network, path.middlebox)
    operations += below
    operations += _sender_interfaces(cell, network, pairs, path, limits)
    changes: list[Event] = []
    for end, steps in zip(ends, (varying.other.rate, varying.other.reverse_rate), strict=True):
        changes += [Event(at_us, limits.change(end, rate)) for at_us, rate in steps]
    for end, link in zip(ends, links, strict=True):
        changes += link_events(end, cell.scenario.duration) if link is not None else []
    changes += line_changes(cell, network, path, lines, varying)
    return Shaping(operations, changes + switched, queues)


def _check_real_time(cell: Cell) -> None:
    if cell.scenario.path.burst == "none":
        what = "without a burst a rate limit in real time loses what its timers are late by"
        hint = "leave it out, or use an engine in virtual time"
        raise ProfileError(what, where=cell.place("path", "burst"), hint=hint)
    if cell.scenario.path.tick is not None:
        what = "in real time the delay lines' releases are not exact to a tick"
        raise ProfileError(what, where=cell.place("path", "tick"), hint="use an engine in virtual time")


def _sender_interfaces(
    cell: Cell, network: Network, pairs: list[tuple[str, str]], path: Path, limits: _RateLimits
) -> list[Operation]:
    rate = path.sender_interface_bits_per_second
    if rate is None:
        return []
    # TCP small queues keep the flows of one host below this, so the sender's own queue never drops.
    limit = max(LEAST_SENDER_QUEUE_PACKETS, 2000 * len(pairs), 2 * path.buffer_bytes // path.frame_bytes)
    reverse_senders = [pair[1] for direction, pair in _background(cell, pairs) if direction == "reverse"]
    operations: list[Operation] = []
    for sender in dict.fromkeys([*network.nodes("sender"), *reverse_senders]):
        operations += limits.limit(network.access_link(sender).at(sender), rate, Pfifo(limit))
    return operations


def _background(cell: Cell, pairs: list[tuple[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    background = cell.scenario.background
    return [
        (flow.direction, pair) for flow, pair in zip(background, pairs[len(pairs) - len(background) :], strict=True)
    ]


def _interface(network: Network, node: str, name: str) -> Interface:
    return next(link.at(node) for link in network.links_of(node) if link.at(node).name == name)
