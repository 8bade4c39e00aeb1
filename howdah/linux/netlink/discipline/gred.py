# SPDX-License-Identifier: Apache-2.0
"""gred: RED with separate thresholds for marked packets."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import AskedSize, HopQueue, Parameters, Room, UnfitError, Words, asked
from howdah.linux.netlink.discipline.early import EarlyParameters, early, probability_of_32_bits
from howdah.linux.netlink.message import attribute, u32

_PARMS, _STAB, _DPS, _MAX_P, _LIMIT = 1, 2, 3, 4, 5
_PRIORITY = 1


@planned
class GredParameters(EarlyParameters):
    """RED with lower thresholds for packets that carry a mark, so that a congested queue drops them first (RFC 2597's
    precedence; the kernel's sch_gred). All packets share one mean queue; only IPv4 packets can be marked."""

    dscp: int = asked(14, "DSCP of marked packets; 14 is AF13", least=1, most=63)
    marked_least: AskedSize | None = asked(
        None, "mean queue from which marked packets are dropped; a third of marked_most by default", "buffer"
    )
    marked_most: AskedSize | None = asked(
        None, "mean queue from which every marked packet is dropped; least by default", "buffer"
    )


@planned
class Gred(HopQueue):
    """GRED with two virtual queues, of unmarked and of marked packets. In rio mode queues of one priority share the
    mean."""

    kind: ClassVar[str] = "gred"
    name: ClassVar[str] = "gred"
    asked: ClassVar[type[Parameters]] = GredParameters
    unmarked: ClassVar[str] = "gred does not count what it marks"
    # tc shows the options of a virtual queue after its number.
    told: ClassVar[Mapping[str, str]] = {
        "limit": "limit_bytes",
        "0 min": "least_bytes",
        "0 max": "most_bytes",
        "1 min": "marked_least_bytes",
        "1 max": "marked_most_bytes",
    }

    limit_bytes: int
    least_bytes: int
    most_bytes: int
    packet_bytes: int
    burst_packets: int
    probability: float
    rate_bits_per_second: int
    ewma_log: int
    probability_log: int
    idle_log: int
    idle_shifts: list[int]
    marked_least_bytes: int
    marked_most_bytes: int
    marked_burst_packets: int
    marked_probability_log: int
    dscp: int | None = field(default=None, compare=False)  # used by the filter, not by the queue

    @classmethod
    def settled(cls, asked: GredParameters, room: Room) -> Self:
        """Make the queue; both pairs of thresholds share one mean, and therefore its weight."""
        from howdah.linux.netlink.discipline.red_numbers import burst_of, probability_log

        of, frame = early("GRED", cls.name, asked, room, "bytes"), room.frame_bytes
        most = room.of(asked.marked_most) if asked.marked_most else of.least
        least = room.of(asked.marked_least) if asked.marked_least else most // 3
        if not frame <= least < most <= of.limit:
            counted = f"{frame}, {least}, {most}, {of.limit} bytes"
            what = f"GRED{room.at} needs a frame <= marked_least < marked_most <= buffer, not {counted}"
            raise UnfitError(what, "give marked_least and marked_most of the queue, or a larger buffer")
        burst = burst_of(least / frame, of.ewma_log)
        if burst is None:
            what = f"GRED{room.at}: no burst of marked packets has the weight 2^-{of.ewma_log} of the mean"
            raise UnfitError(what, "give the queue another burst or marked_least")
        return cls(
            limit_bytes=of.limit,
            least_bytes=of.least,
            most_bytes=of.most,
            packet_bytes=frame,
            burst_packets=of.burst_packets,
            probability=of.probability,
            rate_bits_per_second=room.rate_bits_per_second,
            ewma_log=of.ewma_log,
            probability_log=of.probability_log,
            idle_log=of.idle_log,
            idle_shifts=of.idle_shifts,
            marked_least_bytes=least,
            marked_most_bytes=most,
            marked_burst_packets=burst,
            marked_probability_log=probability_log(least, most, of.probability),
            dscp=asked.dscp,
        )

    def train_packets(self, room: Room) -> int | None:
        """The mean queue stays below the threshold while the queue does."""
        return max(self.least_bytes // room.frame_bytes, 2)

    def marked(self) -> int | None:
        return self.dscp

    def encode(self) -> bytes:
        """The limit and the number of virtual queues."""
        setup = struct.pack("=IIBBH", 2, 0, 1, 0, 0)  # struct tc_gred_sopt
        return attribute(_DPS, setup) + u32(_LIMIT, self.limit_bytes)

    def further(self) -> list[bytes]:
        """The options of each virtual queue (struct tc_gred_qopt)."""
        found = []
        for queue, (least, most, _burst, log) in enumerate(self._virtual_queues()):
            sizes = (self.limit_bytes, least, most, queue)
            packed = struct.pack("=IIII24xBBBB8x", *sizes, self.ewma_log, log, self.idle_log, _PRIORITY)
            encoded = attribute(_PARMS, packed) + attribute(_STAB, bytes(self.idle_shifts))
            found.append(encoded + u32(_MAX_P, probability_of_32_bits(self.probability)))
        return found

    def words(self) -> Words:
        return ["setup", "vqs", 2, "default", 0, "grio", "limit", f"{self.limit_bytes}b"]

    def further_words(self) -> list[Words]:
        found: list[Words] = []
        for queue, (least, most, burst, _log) in enumerate(self._virtual_queues()):
            words: Words = ["limit", f"{self.limit_bytes}b", "min", f"{least}b", "max", f"{most}b"]
            words += ["avpkt", f"{self.packet_bytes}b", "burst", burst, "bandwidth", f"{self.rate_bits_per_second}bit"]
            found.append([*words, "probability", f"{self.probability:.10g}", "vq", queue, "prio", _PRIORITY])
        return found

    def _virtual_queues(self) -> tuple[tuple[int, int, int, int], ...]:
        """Least, most, burst and logarithm of the probability, for unmarked and for marked packets."""
        marked = (self.marked_least_bytes, self.marked_most_bytes, self.marked_burst_packets)
        return (
            (self.least_bytes, self.most_bytes, self.burst_packets, self.probability_log),
            (*marked, self.marked_probability_log),
        )
