# SPDX-License-Identifier: Apache-2.0
"""choke: RED that compares each packet with one in the queue."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopLink, HopQueue, Parameters, UnfitError, Words
from howdah.linux.netlink.discipline.early import EarlyParameters, chance, early, pack_parameters, scaled_probability
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
    parameters_class: ClassVar[type[Parameters]] = ChokeParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 12
    reported: ClassVar[Mapping[str, str]] = {"limit": "limit_packets", "min": "least_packets", "max": "most_packets"}

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
    def from_parameters(cls, values: ChokeParameters, link: HopLink) -> Self:
        red = early("CHOKe", cls.name, values, link, "packets")
        if red.limit > _MOST_PACKETS:
            what = f"CHOKe{link.at} holds at most {_MOST_PACKETS} packets, not {red.limit}"
            raise UnfitError(what, "give a smaller buffer, or another queue", of_buffer=True)
        return cls(
            limit_packets=red.limit,
            least_packets=red.least,
            most_packets=red.most,
            packet_bytes=link.frame_bytes,
            burst_packets=red.burst_packets,
            probability=red.probability,
            rate_bits_per_second=link.rate_bits_per_second,
            ecn=link.ecn,
            ewma_log=red.ewma_log,
            probability_log=red.probability_log,
            idle_log=red.idle_log,
            idle_shifts=red.idle_shifts,
        )

    def train_packets(self, link: HopLink) -> int | None:  # noqa: ARG002 - as all others have it
        """The mean queue stays below the threshold while the queue does."""
        return max(self.least_packets, 2)

    def encode(self) -> bytes:
        logs = (self.ewma_log, self.probability_log, self.idle_log)
        of = pack_parameters(self.limit_packets, self.least_packets, self.most_packets, logs, _ECN * self.ecn)
        encoded = attribute(_PARMS, of) + attribute(_STAB, bytes(self.idle_shifts))
        return encoded + u32(_MAX_P, scaled_probability(self.probability))

    def words(self) -> Words:
        words: Words = ["limit", self.limit_packets, "min", self.least_packets, "max", self.most_packets]
        words += ["avpkt", f"{self.packet_bytes}b", *chance(self.burst_packets, self.probability)]
        return [*words, "bandwidth", f"{self.rate_bits_per_second}bit", *["ecn"] * self.ecn]

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:
        """Drops by cause, as ``tc -s`` prints them. ``early``: by probability, or above the upper threshold. ``pdrop``:
        the queue was full. ``matched``: of pairs of packets of one flow, one of them drawn from the queue."""
        if len(statistics) < _STATISTICS.size:
            return {}
        counted, full, other, _marked, matched = _STATISTICS.unpack_from(statistics)
        return {"early": counted, "pdrop": full, "other": other, "matched": matched}
