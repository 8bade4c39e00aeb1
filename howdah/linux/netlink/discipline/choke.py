# SPDX-License-Identifier: Apache-2.0
"""choke: RED that compares each packet with one in the queue."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, UnfitError, Words
from howdah.linux.netlink.discipline.early import EarlyParameters, chance, early, parameters, probability_of_32_bits
from howdah.linux.netlink.message import attribute, u32

_PARMS, _STAB, _MAX_P = 1, 2, 3
_ECN = 1
_MOST_PACKETS = 128 * 1024 - 1  # CHOKE_MAX_QUEUE
_STATISTICS = struct.Struct("=IIIII")  # struct tc_choke_xstats


@planned
class ChokeParameters(EarlyParameters):
    """CHOKe (Pan, Prabhakar and Psounis 2000): RED that first compares each packet with one drawn from the queue, and
    drops both if they belong to one flow. It counts packets, so thresholds are rounded down to whole packets."""


@planned
class Choke(HopQueue):
    """CHOKe; the options are RED's, in packets."""

    kind: ClassVar[str] = "choke"
    name: ClassVar[str] = "choke"
    asked: ClassVar[type[Parameters]] = ChokeParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 12
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_packets", "min": "least_packets", "max": "most_packets"}

    limit_packets: int
    least_packets: int
    most_packets: int
    packet_bytes: int
    burst_packets: int
    probability: float
    rate_bits_per_second: int
    ecn: bool
    ewma_log: int
    probability_log: int
    idle_log: int
    idle_shifts: list[int]

    @classmethod
    def settled(cls, asked: ChokeParameters, room: Room) -> Self:
        of = early("CHOKe", cls.name, asked, room, "packets")
        if of.limit > _MOST_PACKETS:
            what = f"CHOKe{room.at} holds at most {_MOST_PACKETS} packets, not {of.limit}"
            raise UnfitError(what, "give a smaller buffer, or another queue", of_buffer=True)
        return cls(
            limit_packets=of.limit,
            least_packets=of.least,
            most_packets=of.most,
            packet_bytes=room.frame_bytes,
            burst_packets=of.burst_packets,
            probability=of.probability,
            rate_bits_per_second=room.rate_bits_per_second,
            ecn=room.ecn,
            ewma_log=of.ewma_log,
            probability_log=of.probability_log,
            idle_log=of.idle_log,
            idle_shifts=of.idle_shifts,
        )

    def train_packets(self, room: Room) -> int | None:  # noqa: ARG002 - as all others have it
        """The mean queue stays below the threshold while the queue does."""
        return max(self.least_packets, 2)

    def encode(self) -> bytes:
        logs = (self.ewma_log, self.probability_log, self.idle_log)
        of = parameters(self.limit_packets, self.least_packets, self.most_packets, logs, _ECN * self.ecn)
        encoded = attribute(_PARMS, of) + attribute(_STAB, bytes(self.idle_shifts))
        return encoded + u32(_MAX_P, probability_of_32_bits(self.probability))

    def words(self) -> Words:
        words: Words = ["limit", self.limit_packets, "min", self.least_packets, "max", self.most_packets]
        words += ["avpkt", f"{self.packet_bytes}b", *chance(self.burst_packets, self.probability)]
        return [*words, "bandwidth", f"{self.rate_bits_per_second}bit", *["ecn"] * self.ecn]

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:
        """Drops by cause, as ``tc -s`` prints them. ``early``: by probability, or above the upper threshold. ``pdrop``:
        the queue was full. ``matched``: a packet and the one drawn from the queue were of one flow, and both were
        dropped."""
        if len(statistics) < _STATISTICS.size:
            return {}
        counted, full, other, _marked, matched = _STATISTICS.unpack_from(statistics)
        return {"early": counted, "pdrop": full, "other": other, "matched": matched}
