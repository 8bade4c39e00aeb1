# SPDX-License-Identifier: Apache-2.0
"""The qdiscs of a run and how they change with time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from howdah.plan.flow import Delays
from howdah.plan.network import Network
from howdah.plan.operation import event
from howdah.plan.perturbation import derived_seed
from howdah.plan.plan import Event, Operation, Path
from howdah.plan.qdisc import DelayLine, burst_bytes, delay, delay_arguments, delay_limit_packets, rate_limit
from howdah.plan.schedule import Schedule
from howdah.profile import Cell

LEAST_SENDER_QUEUE_PACKETS = 10_000


@dataclass(frozen=True)
class Shaping:
    operations: list[Operation]
    changes: list[Event]


def shape(
    cell: Cell,
    network: Network,
    pairs: list[tuple[str, str]],
    path: Path,
    delays: Delays,
    varying: Schedule,
    *,
    virtual_time: bool,
) -> Shaping:
    """Bottleneck, delay lines and sender interfaces; ``virtual_time`` makes rate limits exact to one frame."""
    ends = network.bottleneck_ends(*pairs[0])
    assert ends is not None  # endpoints() refused flows that do not cross it
    frame = path.frame_bytes

    def burst(rate: int) -> int:
        return burst_bytes(rate, frame, virtual_time=virtual_time)

    rate = path.rate_bits_per_second
    operations = rate_limit(ends[0], rate, burst(rate), frame, ("bfifo", {"limit_bytes": path.buffer_bytes}))
    reverse_buffer = 0
    if path.reverse_rate_bits_per_second is not None:
        reverse = path.reverse_rate_bits_per_second
        reverse_buffer = _reverse_buffer_bytes(cell, reverse, frame)
        operations += rate_limit(ends[1], reverse, burst(reverse), frame, ("bfifo", {"limit_bytes": reverse_buffer}))
    lines = _delay_lines(cell, network, path, delays, varying, reverse_buffer)
    operations += [delay(network, line) for line in lines]
    if path.sender_interface_bits_per_second is not None:
        rate = path.sender_interface_bits_per_second
        # Larger than TCP small queues let the flows of one host fill: the sender's own queue never drops.
        limit = max(LEAST_SENDER_QUEUE_PACKETS, 2000 * len(pairs), 2 * path.buffer_bytes // frame)
        for sender in network.nodes("sender"):
            interface = network.access_link(sender).at(sender)
            operations += rate_limit(interface, rate, burst(rate), frame, ("pfifo", {"limit_packets": limit}))
    return Shaping(operations, _changes(cell, network, lines, varying))


def _reverse_buffer_bytes(cell: Cell, rate: int, frame_bytes: int) -> int:
    asked = cell.scenario.path
    nominal = Fraction(rate * (asked.forward_delay_us + asked.reverse_delay_us), 8_000_000)
    return max(asked.reverse_buffer.to_bytes(nominal, frame_bytes), frame_bytes)


def _delay_lines(
    cell: Cell, network: Network, path: Path, delays: Delays, varying: Schedule, reverse_buffer_bytes: int
) -> list[DelayLine]:
    lines = []
    for role, steps, largest in (
        ("receiver", varying.forward, varying.forward_largest_us),
        ("sender", varying.reverse, varying.reverse_largest_us),
    ):
        for host in network.nodes(role):
            loss = path.loss_ratio if role == "receiver" else 0.0
            held_us = delays.of_host[host] + largest
            bdp = path.rate_bits_per_second * max(held_us, path.rtt_us) // 8_000_000
            buffer = path.buffer_bytes + reverse_buffer_bytes
            lines.append(
                DelayLine(
                    host=host,
                    delay_us=delays.of_host[host],
                    limit_packets=delay_limit_packets(bdp, buffer, path.frame_bytes),
                    loss_ratio=loss,
                    seed=_seed(cell, host, 0) if loss else None,
                    varying=bool(steps),
                )
            )
    return lines


def _seed(cell: Cell, host: str, change: int) -> int:
    """A seed for one netem and one of its changes, because each change starts the kernel's generator anew."""
    return derived_seed(cell.scenario.seed, "netem", host, cell.repetition, change)


def _changes(cell: Cell, network: Network, lines: list[DelayLine], varying: Schedule) -> list[Event]:
    changes = []
    for line in lines:
        steps = varying.forward if network.roles[line.host] == "receiver" else varying.reverse
        for number, (at_us, added_us) in enumerate(steps, start=1):
            seed = _seed(cell, line.host, number) if line.seed is not None else None
            arguments = delay_arguments(network, line, line.delay_us + added_us, seed)
            changes.append(event(at_us, "qdisc", **arguments))
    return changes
