# SPDX-License-Identifier: Apache-2.0
"""The delay lines of a path, one towards each host: their settings, and how they change while flows run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.burst import in_bursts, transitions
from howdah.plan.event import Event
from howdah.plan.flow import Delays
from howdah.plan.link import most_bytes
from howdah.plan.network import Network
from howdah.plan.path import Path
from howdah.plan.perturbation import derived_seed
from howdah.plan.placed import Qdisc
from howdah.plan.qdisc import ROOT_HANDLE, delay_interface, queue_at
from howdah.plan.schedule import Schedule
from howdah.plan.timetable import value_at
from howdah.plan.variation import DelayTable
from howdah.profile import Cell
from howdah.profile.link import LinkTrace
from howdah.profile.varying import MOST_CHANGES

# With a rate, netem keeps packets in order when the delay falls; at this rate a full frame takes 0.12 us.
ORDER_RATE_BITS_PER_SECOND = 100_000_000_000


@dataclass(frozen=True)
class _Instant:
    """State from ``at_us`` on: the delay that is added, the share of packets that is lost, and whether flows run."""

    at_us: int
    added_us: int
    loss_ratio: float
    running: bool | None  # None: as before


@dataclass(frozen=True)
class DelayLine:
    """A netem towards ``host``. ``seed`` is set if anything in it is random; ``varying`` keeps packets in order."""

    host: str
    delay_us: int
    limit_packets: int
    loss_ratio: float
    seed: int | None
    varying: bool
    reorder_ratio: float = 0.0
    reorder_gap: int = 0
    loss_burst_packets: float | None = None
    ends_us: int = 0  # end of the flows
    least_limit_packets: int | None = None  # limit while flows run
    tick_us: int = 0  # tick while flows run
    table: DelayTable | None = None  # table from which packets draw while flows run

    @property
    def switched(self) -> bool:
        """Whether it behaves differently while flows run than while the path is measured."""
        return bool(self.tick_us or self.table or self.least_limit_packets)

    def netem(self, delay_us: int, seed: int | None, loss_ratio: float) -> Netem:
        begins, ends = None, None
        if in_bursts(loss_ratio, self.loss_burst_packets):
            assert self.loss_burst_packets is not None
            begins, ends = transitions(loss_ratio, self.loss_burst_packets)
        return Netem(
            delay_us=delay_us,
            limit_packets=self.limit_packets,
            seed=seed,
            loss_ratio=loss_ratio,
            rate_bits_per_second=ORDER_RATE_BITS_PER_SECOND if self.varying else None,
            reorder_ratio=self.reorder_ratio,
            reorder_gap=self.reorder_gap,
            burst_begins_ratio=begins,
            burst_ends_ratio=ends,
        )

    def changed(self, instant: _Instant, seed: int | None) -> Netem:
        """The netem from ``instant`` on."""
        netem = self.netem(self.delay_us + instant.added_us, seed, instant.loss_ratio)
        if self.tick_us and instant.running is not None:
            netem = dataclasses.replace(netem, tick_us=self.tick_us if instant.running else 0)
        if not 0 <= instant.at_us < self.ends_us:
            return netem
        if self.least_limit_packets is not None:
            netem = dataclasses.replace(netem, limit_packets=self.least_limit_packets)
        if self.table is not None:
            table = self.table.table if instant.running else None  # a change without a table keeps the current one
            netem = dataclasses.replace(netem, jitter_us=self.table.scale_us, distribution=table)
        return netem


def delay_limit_packets(bdp_bytes: int, buffer_bytes: int, frame_bytes: int) -> int:
    """Twice what can be in flight, so that a delay line never drops: 2 (BDP + buffer), and room for small packets."""
    return 2 * -(-(bdp_bytes + buffer_bytes) // frame_bytes) + 1000


def delay_lines(
    cell: Cell,
    network: Network,
    path: Path,
    delays: Delays,
    varying: Schedule,
    links: tuple[LinkTrace | None, LinkTrace | None],
) -> list[DelayLine]:
    """Return the delay lines, those towards receivers first. ``links`` are the traces of both directions, if any."""
    lines = []
    asked = cell.scenario.path
    for role, steps, largest in (
        ("receiver", varying.forward, varying.forward_largest_us),
        ("sender", varying.reverse, varying.reverse_largest_us),
    ):
        ahead = role == "receiver"
        loss = path.losses(ahead=ahead)
        overtake = asked.reorder if ahead else None
        for host in network.nodes(role):
            held_us = delays.of_host[host] + largest
            within_us = max(held_us, path.rtt_us)
            peaks = [most_bytes(link, within_us) for link in links if link is not None]
            bdp = max([path.largest_bdp_bytes(within_us), *peaks])
            buffer = path.buffer_bytes + (path.reverse_buffer_bytes or 0) + sum(hop.buffer_bytes for hop in path.hops)
            table = varying.table if varying.jitter and varying.jitter.way(ahead=ahead) else None
            random = bool(loss.ratio or loss.steps or overtake or table)
            line = DelayLine(
                host=host,
                delay_us=delays.of_host[host],
                limit_packets=delay_limit_packets(bdp, buffer, path.frame_bytes),
                loss_ratio=loss.ratio,
                seed=_seed(cell, host, 0) if random else None,
                varying=bool(steps) and table is None,
                loss_burst_packets=loss.burst_packets,
                tick_us=path.tick_us,
                ends_us=cell.scenario.duration,
                least_limit_packets=path.delay_limit_packets if ahead else None,
                table=table,
            )
            if overtake is not None:
                line = dataclasses.replace(line, reorder_ratio=float(overtake.share), reorder_gap=overtake.gap)
            lines.append(line)
    return lines


def install_lines(network: Network, lines: list[DelayLine]) -> list[Qdisc]:
    """Return the operations that create the lines with the settings under which the path is measured."""
    operations = []
    for line in lines:
        netem = line.netem(line.delay_us, line.seed, line.loss_ratio)
        place = (delay_interface(network, line.host), "root", ROOT_HANDLE)
        operations.append(queue_at(*place, netem))
    return operations


def line_changes(cell: Cell, network: Network, path: Path, lines: list[DelayLine], varying: Schedule) -> list[Event]:
    """Return the changes of all lines, line by line. Raise ProfileError for too many changes or a negative delay."""
    if path.delay_limit_packets is not None and path.forward_loss_steps:
        what = "a delay line with a limit drops packets itself; the trace says a loss, too"
        raise ProfileError(what, where=cell.place("path", "delay_limit"), hint="leave one of them out")
    of_role: dict[str, list[_Instant]] = {}  # the lines of one role change together
    for line in lines:
        if (role := network.roles[line.host]) not in of_role:
            of_role[role] = _instants(cell, path, line, varying, ahead=role == "receiver")
    of_line = [of_role[network.roles[line.host]] for line in lines]
    # Counted before any of them is made, so that a refused plan costs no time.
    if sum(map(len, of_line)) > MOST_CHANGES:
        what = f"the delay lines of {len(lines)} hosts would change more than {MOST_CHANGES} times together"
        hint = "make the time between changes longer, duration shorter, or let flows share hosts (topology.pairs)"
        raise ProfileError(what, where=cell.place("path"), hint=hint)
    found: list[Event] = []
    for line, instants in zip(lines, of_line, strict=True):
        place = (delay_interface(network, line.host), "root", ROOT_HANDLE)
        for number, instant in enumerate(instants, start=1):
            if line.delay_us + instant.added_us < 0:
                what = f"at {instant.at_us} us the schedule takes more from the delay towards {line.host} than there is"
                raise ProfileError(what, where=cell.place("path"))
            seed = _seed(cell, line.host, number) if line.seed is not None else None
            netem = line.changed(instant, seed)
            found.append(Event(instant.at_us, queue_at(*place, netem)))
    return found


def _seed(cell: Cell, host: str, change: int) -> int:
    """Return the seed of one netem and one of its changes, because each change restarts the kernel's generator."""
    return derived_seed(cell.scenario.seed, "netem", host, cell.repetition, change)


def _instants(cell: Cell, path: Path, line: DelayLine, varying: Schedule, *, ahead: bool) -> list[_Instant]:
    added = varying.forward if ahead else varying.reverse
    losses = varying.other.forward_loss if ahead else varying.other.reverse_loss
    running = {0: True, cell.scenario.duration: False} if line.switched else {}
    before = path.losses(ahead=ahead).ratio
    times = sorted({at_us for at_us, _ in added} | {at_us for at_us, _ in losses} | running.keys())
    return [
        _Instant(at_us, value_at(added, at_us, 0), value_at(losses, at_us, before), running.get(at_us))
        for at_us in times
    ]
