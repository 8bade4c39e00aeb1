# SPDX-License-Identifier: Apache-2.0
"""red: random early detection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words, asked
from howdah.linux.netlink.discipline.early import EarlyParameters, chance, early, parameters, probability_of_32_bits
from howdah.linux.netlink.message import attribute, u32

_PARMS, _STAB, _MAX_P = 1, 2, 3
_ECN, _ADAPTIVE = 1, 4


@planned
class RedParameters(EarlyParameters):
    """Random early detection (Floyd and Jacobson 1993): drops with growing probability while the mean queue is between
    two thresholds. The mean is exponentially weighted; ``burst`` sets the weight."""

    adaptive: bool = asked(False, "let the kernel adapt the probability (adaptive RED)")


@planned
class Red(HopQueue):
    """RED; it drops packets on arrival only."""

    kind: ClassVar[str] = "red"
    name: ClassVar[str] = "red"
    asked: ClassVar[type[Parameters]] = RedParameters
    marks_at: ClassVar[int | None] = 12
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_bytes", "min": "least_bytes", "max": "most_bytes"}
    notes: ClassVar[Mapping[str, str]] = {"idle_shifts": "256 integers", "ewma_log": "the kernel's, like the next ones"}

    limit_bytes: int
    least_bytes: int
    most_bytes: int
    packet_bytes: int
    burst_packets: int
    probability: float
    rate_bits_per_second: int
    adaptive: bool
    ecn: bool
    ewma_log: int
    probability_log: int
    idle_log: int
    idle_shifts: list[int]

    @classmethod
    def settled(cls, asked: RedParameters, room: Room) -> Self:
        of = early("RED", cls.name, asked, room, "bytes")
        return cls(
            limit_bytes=of.limit,
            least_bytes=of.least,
            most_bytes=of.most,
            packet_bytes=room.frame_bytes,
            burst_packets=of.burst_packets,
            probability=of.probability,
            rate_bits_per_second=room.rate_bits_per_second,
            adaptive=asked.adaptive,
            ecn=room.ecn,
            ewma_log=of.ewma_log,
            probability_log=of.probability_log,
            idle_log=of.idle_log,
            idle_shifts=of.idle_shifts,
        )

    def train_packets(self, room: Room) -> int | None:
        """The mean queue stays below the threshold while the queue does."""
        return max(self.least_bytes // room.frame_bytes, 2)

    def encode(self) -> bytes:
        logs = (self.ewma_log, self.probability_log, self.idle_log)
        flags = _ECN * self.ecn | _ADAPTIVE * self.adaptive
        encoded = attribute(_PARMS, parameters(self.limit_bytes, self.least_bytes, self.most_bytes, logs, flags))
        encoded += attribute(_STAB, bytes(self.idle_shifts))
        return encoded + u32(_MAX_P, probability_of_32_bits(self.probability))

    def words(self) -> Words:
        words: Words = ["limit", f"{self.limit_bytes}b", "min", f"{self.least_bytes}b", "max", f"{self.most_bytes}b"]
        words += ["avpkt", f"{self.packet_bytes}b", *chance(self.burst_packets, self.probability)]
        words += ["bandwidth", f"{self.rate_bits_per_second}bit"]
        return words + ["adaptive"] * self.adaptive + ["ecn"] * self.ecn
