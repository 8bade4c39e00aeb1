# SPDX-License-Identifier: Apache-2.0
"""The qdiscs of a run and how they change with time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.flow import Delays
from howdah.plan.link import follow_trace, link_events, most_bytes
from howdah.plan.middlebox import install
from howdah.plan.network import Interface, Network
from howdah.plan.operation import event
from howdah.plan.path import Hop, Path
from howdah.plan.perturbation import derived_seed
from howdah.plan.plan import Event, Operation
from howdah.plan.qdisc import (
    ROOT_HANDLE,
    DelayLine,
    burst_bytes,
    class_arguments,
    delay,
    delay_interface,
    delay_limit_packets,
    police,
    qdisc_arguments,
    rate_limit,
)
from howdah.plan.queue import leaf, reverse_leaf
from howdah.plan.schedule import Schedule
from howdah.plan.timetable import Steps, value_at
from howdah.profile import Cell
from howdah.profile.link import LinkTrace
from howdah.profile.varying import MOST_CHANGES

LEAST_SENDER_QUEUE_PACKETS = 10_000
# When delay lines change; from then on: what is added to their delay, in us, and the share of packets they lose.
_Instant = tuple[int, int, float]


@dataclass(frozen=True)
class Shaping:
    """``queues`` are the qdiscs of all hops, forward, the bottleneck's first."""

    operations: list[Operation]
    changes: list[Event]
    queues: list[HopQueue]


def find_hops(cell: Cell, network: Network, pair: tuple[str, str]) -> list[Hop]:
    """The further hops of the profile on their links: those between routers, before and after the bottleneck.

    Raises ProfileError where the topology has not as many.
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

    def burst(rate: int) -> int:
        return burst_bytes(rate, frame, spaced=spaced, virtual_time=virtual_time)

    rate = path.rate_bits_per_second
    queues = [leaf(cell, path.buffer_bytes, rate)]
    operations = _limit(ends[0], rate, burst(rate), frame, queues[0], links[0])
    if path.policer is not None:
        operations += police(ends[0], path.policer, hooked=any(item.op == "filter" for item in operations))
    for number, hop in enumerate(path.hops):
        own = leaf(cell, hop.buffer_bytes, hop.rate_bits_per_second, number)
        queues.append(own)
        place = _interface(network, hop.node, hop.interface)
        operations += rate_limit(place, hop.rate_bits_per_second, burst(hop.rate_bits_per_second), frame, own)
    if path.reverse_rate_bits_per_second is not None:
        reverse = path.reverse_rate_bits_per_second
        operations += _limit(ends[1], reverse, burst(reverse), frame, reverse_leaf(cell, path), links[1])
    lines = _delay_lines(cell, network, path, delays, varying, links)
    operations += [delay(network, line) for line in lines]
    below, switched = install(cell, network, path.middlebox)
    operations += below
    if path.sender_interface_bits_per_second is not None:
        rate = path.sender_interface_bits_per_second
        # Larger than TCP small queues let the flows of one host fill: the sender's own queue never drops.
        limit = max(LEAST_SENDER_QUEUE_PACKETS, 2000 * len(pairs), 2 * path.buffer_bytes // frame)
        reverse_senders = [pair[1] for flow, pair in _background(cell, pairs) if flow == "reverse"]
        for sender in dict.fromkeys([*network.nodes("sender"), *reverse_senders]):
            interface = network.access_link(sender).at(sender)
            operations += rate_limit(interface, rate, burst(rate), frame, Pfifo(limit))
    changes = [
        event(at_us, "class", **class_arguments(ends[0], changed, burst(changed), frame))
        for at_us, changed in varying.other.rate
    ]
    for end, link in zip(ends, links, strict=True):
        changes += link_events(end, cell.scenario.duration) if link is not None else []
    return Shaping(operations, changes + _changes(cell, network, lines, varying) + switched, queues)


def _limit(
    interface: Interface, rate: int, burst: int, frame_bytes: int, queue: HopQueue | Pfifo, link: LinkTrace | None
) -> list[Operation]:
    """One way over the bottleneck: at a constant rate, or as a trace says."""
    if link is None:
        return rate_limit(interface, rate, burst, frame_bytes, queue)
    return follow_trace(interface, link, queue)


def _background(cell: Cell, pairs: list[tuple[str, str]]) -> list[tuple[str, tuple[str, str]]]:
    """Direction and hosts of each background flow."""
    background = cell.scenario.background
    return [
        (flow.direction, pair) for flow, pair in zip(background, pairs[len(pairs) - len(background) :], strict=True)
    ]


def _interface(network: Network, node: str, name: str) -> Interface:
    return next(link.at(node) for link in network.links_of(node) if link.at(node).name == name)


def _delay_lines(
    cell: Cell,
    network: Network,
    path: Path,
    delays: Delays,
    varying: Schedule,
    links: tuple[LinkTrace | None, LinkTrace | None],
) -> list[DelayLine]:
    lines = []
    reorder = cell.scenario.path.reorder
    for role, steps, largest, losses in (
        ("receiver", varying.forward, varying.forward_largest_us, varying.other.forward_loss),
        ("sender", varying.reverse, varying.reverse_largest_us, varying.other.reverse_loss),
    ):
        for host in network.nodes(role):
            loss = path.loss_ratio if role == "receiver" else 0.0
            held_us = delays.of_host[host] + largest
            within_us = max(held_us, path.rtt_us)
            peaks = [most_bytes(link, within_us) for link in links if link is not None]
            bdp = max([path.largest_bdp_bytes(within_us), *peaks])
            buffer = path.buffer_bytes + (path.reverse_buffer_bytes or 0) + sum(hop.buffer_bytes for hop in path.hops)
            overtake = reorder if role == "receiver" else None
            random = bool(loss or losses or overtake)
            line = DelayLine(
                host=host,
                delay_us=delays.of_host[host],
                limit_packets=delay_limit_packets(bdp, buffer, path.frame_bytes),
                loss_ratio=loss,
                seed=_seed(cell, host, 0) if random else None,
                varying=bool(steps),
                loss_burst_packets=path.loss_burst_packets if role == "receiver" else None,
            )
            if overtake is not None:
                line = dataclasses.replace(line, reorder_ratio=float(overtake.share), reorder_gap=overtake.gap)
            lines.append(line)
    return lines


def _seed(cell: Cell, host: str, change: int) -> int:
    """A seed for one netem and one of its changes, because each change starts the kernel's generator again."""
    return derived_seed(cell.scenario.seed, "netem", host, cell.repetition, change)


def _changes(cell: Cell, network: Network, lines: list[DelayLine], varying: Schedule) -> list[Event]:
    ticks = _ticks(cell)
    of_role: dict[str, list[_Instant]] = {}  # the lines of one role change together
    for line in lines:
        if (role := network.roles[line.host]) not in of_role:
            forward = role == "receiver"
            steps = varying.forward if forward else varying.reverse
            losses = varying.other.forward_loss if forward else varying.other.reverse_loss
            of_role[role] = _instants(steps, losses, line.loss_ratio, ticks)
    of_line = [of_role[network.roles[line.host]] for line in lines]
    # Counted before one of them is made: a plan that is refused costs no time.
    if sum(map(len, of_line)) > MOST_CHANGES:
        what = f"the delay lines of {len(lines)} hosts would change more than {MOST_CHANGES} times together"
        hint = "make the time between changes longer, duration shorter, or let flows share hosts (topology.pairs)"
        raise ProfileError(what, where=cell.place("path"), hint=hint)
    changes: list[Event] = []
    for line, instants in zip(lines, of_line, strict=True):
        interface = delay_interface(network, line.host)
        for number, (at_us, added_us, loss) in enumerate(instants, start=1):
            delay_us = line.delay_us + added_us
            if delay_us < 0:
                what = f"at {at_us} us the schedule takes more from the delay towards {line.host} than there is"
                raise ProfileError(what, where=cell.place("path"))
            seed = _seed(cell, line.host, number) if line.seed is not None else None
            netem = line.netem(delay_us, seed, loss, ticks.get(at_us))
            changes.append(event(at_us, "qdisc", **qdisc_arguments(interface, "root", ROOT_HANDLE, netem)))
    return changes


def _instants(
    steps: Steps, losses: list[tuple[int, float]], loss_ratio: float, ticks: dict[int, int]
) -> list[_Instant]:
    """``loss_ratio`` is the loss before the first of ``losses``."""
    times = sorted({at_us for at_us, _ in steps} | {at_us for at_us, _ in losses} | ticks.keys())
    return [(at_us, value_at(steps, at_us, 0), value_at(losses, at_us, loss_ratio)) for at_us in times]


def _ticks(cell: Cell) -> dict[int, int]:
    """When the tick of the delay lines changes, and to what: they have one while flows run, not while they are
    measured."""
    tick_us = cell.scenario.path.tick
    return {} if tick_us is None else {0: tick_us, cell.scenario.duration: 0}
