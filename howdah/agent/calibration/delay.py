# SPDX-License-Identifier: Apache-2.0
"""One-way delays, both ways, of packets too small and too far apart to queue."""

from __future__ import annotations

import socket
import statistics
from dataclasses import dataclass, field
from typing import Any

from howdah.agent.calibration.udp import NUMBER, PROBE_PORT, arrivals, open_receiver, wall_ns
from howdah.agent.clock import MS
from howdah.agent.loop import Loop
from howdah.agent.namespace import Namespace

PROBES = 21
SPACING_NS = 20 * MS
_STAGGER_NS = 1 * MS + 7_411  # between targets, and between the two directions of one
_MARGIN_NS = 50 * MS


@dataclass
class _Direction:
    """Probes from ``sender`` to ``destination``; one host and one clock see both ends."""

    sender: socket.socket
    receiver: socket.socket
    destination: str
    sent_ns: list[int] = field(default_factory=list)

    def send(self, _now: int) -> None:
        number = len(self.sent_ns)
        self.sent_ns.append(wall_ns())
        self.sender.sendto(NUMBER.pack(number), (self.destination, PROBE_PORT))

    def delays_ns(self) -> list[int]:
        return [arrival.time_ns - self.sent_ns[arrival.number] for arrival in arrivals(self.receiver)]


class DelayMeasurement:
    """The socket of each end is both source and destination of probes, on the calibration addresses."""

    def __init__(self, target: dict[str, Any], namespaces: dict[str, Namespace], *, early: bool) -> None:
        self.target = target
        near = open_receiver(namespaces[target["sender"]], target["sender_address"], PROBE_PORT)
        far = open_receiver(namespaces[target["receiver"]], target["receiver_address"], PROBE_PORT)
        self._sockets = (near, far)
        self._early = early
        self._forward = _Direction(near, far, target["receiver_address"])
        self._reverse = _Direction(far, near, target["sender_address"])
        self.sent = 0
        self.received = 0
        self.base_forward_ns: int | None = None

    def schedule(self, loop: Loop, start_ns: int) -> None:
        for probe in range(PROBES):
            loop.at(start_ns + probe * SPACING_NS, self._forward.send)
            loop.at(start_ns + probe * SPACING_NS + _STAGGER_NS // 2, self._reverse.send)

    def result(self) -> dict[str, Any]:
        """The target's entry in calibration-*.json: [least, median, largest] of each direction, null if none came."""
        forward, reverse = self._forward.delays_ns(), self._reverse.delays_ns()
        self.sent = 2 * PROBES
        self.received = len(forward) + len(reverse)
        # A probe that overtakes is early; more than half of them do not.
        base = statistics.median_low if self._early else min
        self.base_forward_ns = base(forward) if forward else None
        for opened in self._sockets:
            opened.close()
        return {
            "sender": self.target["sender"],
            "receiver": self.target["receiver"],
            "forward_delay_ns": _summary(forward),
            "reverse_delay_ns": _summary(reverse),
            "samples": self.received,
            "lost": self.sent - self.received,
        }


def _summary(delays: list[int]) -> list[int] | None:
    return [min(delays), int(statistics.median_low(delays)), max(delays)] if delays else None


def measure_delays(
    targets: list[dict[str, Any]], namespaces: dict[str, Namespace], loop: Loop, now: int, *, early: bool
) -> tuple[list[DelayMeasurement], list[dict[str, Any]]]:
    """All targets at once, each a little later than the one before, so that no two probes meet.

    ``early``: the path lets some packets overtake.
    """
    measurements = [DelayMeasurement(target, namespaces, early=early) for target in targets]
    start = now + MS
    for number, measurement in enumerate(measurements):
        measurement.schedule(loop, start + number * _STAGGER_NS % SPACING_NS)
    longest_us = max(max(target["forward_delay_us"], target["reverse_delay_us"]) for target in targets)
    loop.run_until(start + PROBES * SPACING_NS + longest_us * 1000 + _MARGIN_NS)
    return measurements, [measurement.result() for measurement in measurements]
