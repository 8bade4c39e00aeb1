# SPDX-License-Identifier: Apache-2.0
"""One-way delays in both directions, measured with packets that are too small and too far apart to queue."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from howdah.agent.calibration.median import median_low, summary
from howdah.agent.calibration.udp import NUMBER, PROBE_PORT, arrivals, open_receiver, wall_ns
from howdah.agent.loop import Loop
from howdah.codec import planned
from howdah.linux.clock import MS
from howdah.linux.namespace import Namespace
from howdah.plan.path import PROBES, Path
from howdah.plan.plan import CalibrationTarget
from howdah.record.calibration import TargetDelays

_MARGIN_NS = 50 * MS


@planned
class ProbeEnds:
    """The probes of one direction: times of sending, and number and time of each arrival."""

    sent_ns: list[int]
    arrived_ns: list[tuple[int, int]]


@planned
class TargetEnds:
    """The probes of both directions between two hosts."""

    forward: ProbeEnds
    reverse: ProbeEnds


@dataclass
class Probes:
    """Probes from ``sender`` to ``destination``; all ends share a clock. An end in another kernel is None."""

    sender: socket.socket | None
    receiver: socket.socket | None
    destination: str
    sent_ns: list[int] = field(default_factory=list)

    def send(self, _now: int) -> None:
        assert self.sender is not None
        number = len(self.sent_ns)
        self.sent_ns.append(wall_ns())
        self.sender.sendto(NUMBER.pack(number), (self.destination, PROBE_PORT))

    def arrived_ns(self) -> list[tuple[int, int]]:
        """Return number and time of each probe that arrived."""
        if self.receiver is None:
            return []
        return [(arrival.number, arrival.time_ns) for arrival in arrivals(self.receiver)]

    def delays_ns(self) -> list[int]:
        return [time_ns - self.sent_ns[number] for number, time_ns in self.arrived_ns()]


class DelayMeasurement:
    """The probes between a target's two hosts; each end's socket both sends and receives, on calibration addresses."""

    def __init__(self, target: CalibrationTarget, namespaces: dict[str, Namespace], *, early: bool) -> None:
        self.target = target
        near, far = (_open(*end, namespaces) for end in target.ends)
        self._sockets = (near, far)
        self._early = early
        self._forward = Probes(near, far, target.receiver_address)
        self._reverse = Probes(far, near, target.sender_address)
        self.sent = 0
        self.received = 0
        self.base_forward_ns: int | None = None

    def schedule(self, loop: Loop, start_ns: int, every_ns: int, reverse_later_ns: int) -> None:
        for probe in range(PROBES):
            if self._forward.sender is not None:
                loop.at(start_ns + probe * every_ns, self._forward.send)
            if self._reverse.sender is not None:
                loop.at(start_ns + probe * every_ns + reverse_later_ns, self._reverse.send)

    def record(self) -> TargetEnds:
        """Return the times of departure and arrival at the ends in this kernel, by CLOCK_REALTIME."""
        directions = (
            ProbeEnds(direction.sent_ns, direction.arrived_ns()) for direction in (self._forward, self._reverse)
        )
        record = TargetEnds(*directions)
        self._close()
        return record

    def _close(self) -> None:
        for opened in self._sockets:
            if opened is not None:
                opened.close()

    def result(self) -> TargetDelays:
        """Return the target's entry in calibration-*.json: [minimum, median, maximum] of each direction, null if no
        probe arrived."""
        forward, reverse = self._forward.delays_ns(), self._reverse.delays_ns()
        self.sent = 2 * PROBES
        self.received = len(forward) + len(reverse)
        self.base_forward_ns = base_ns(forward, early=self._early)
        self._close()
        return target_delays(self.target, forward, reverse)


def target_delays(
    target: CalibrationTarget, forward_ns: list[int], reverse_ns: list[int], sent: int = 2 * PROBES
) -> TargetDelays:
    """Return a target's entry in calibration-*.json."""
    received = len(forward_ns) + len(reverse_ns)
    delays = summary(forward_ns), summary(reverse_ns)
    return TargetDelays(target.sender, target.receiver, *delays, samples=received, lost=sent - received)


def base_ns(delays_ns: list[int], *, early: bool) -> int | None:
    """The delay of a packet that waits in no queue. ``early``: some packets overtake, fewer than half, so take the
    median."""
    if not delays_ns:
        return None
    return median_low(delays_ns) if early else min(delays_ns)


def _open(name: str, address: str, namespaces: dict[str, Namespace]) -> socket.socket | None:
    """Open a host's probe socket; None if the host is in another kernel."""
    host = namespaces.get(name)
    return None if host is None else open_receiver(host, address, PROBE_PORT)


def measure_delays(
    path: Path, targets: list[CalibrationTarget], namespaces: dict[str, Namespace], loop: Loop, now: int, *, early: bool
) -> tuple[list[DelayMeasurement], list[TargetDelays]]:
    """Probe all targets in turn, so far apart that no two probes meet; return the measurements and their entries.

    ``early``: the path lets some packets overtake.
    """
    measurements = send_probes(path, targets, namespaces, loop, now, early=early)
    return measurements, [measurement.result() for measurement in measurements]


def send_probes(
    path: Path, targets: list[CalibrationTarget], namespaces: dict[str, Namespace], loop: Loop, now: int, *, early: bool
) -> list[DelayMeasurement]:
    """Send the probes of the hosts in ``namespaces``; return once the last one must have arrived."""
    measurements = [DelayMeasurement(target, namespaces, early=early) for target in targets]
    start = now + MS
    gap_ns = path.probe_gap_us(len(targets)) * 1000
    every_ns = len(targets) * gap_ns
    for number, measurement in enumerate(measurements):
        measurement.schedule(loop, start + number * gap_ns, every_ns, gap_ns // 2)
    longest_us = max(max(target.forward_delay_us, target.reverse_delay_us) for target in targets)
    loop.run_until(start + PROBES * every_ns + longest_us * 1000 + _MARGIN_NS)
    return measurements
