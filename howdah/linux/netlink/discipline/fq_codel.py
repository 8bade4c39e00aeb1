# SPDX-License-Identifier: Apache-2.0
"""fq_codel: fair queueing with CoDel in each queue."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.codel import CodelParameters
from howdah.linux.netlink.discipline.discipline import Attributes, HopQueue, Parameters, Room, half_of, sent
from howdah.linux.netlink.discipline.fair import FairParameters, memory_bytes, quantum_bytes


@planned
class FqCodelParameters(FairParameters, CodelParameters):
    """Fair queueing with CoDel in each queue (RFC 8290)."""


@planned
class FqCodel(Attributes, HopQueue):
    """FQ-CoDel; it drops packets at the head of the longest queue."""

    kind: ClassVar[str] = "fq_codel"
    name: ClassVar[str] = "fq_codel"
    asked: ClassVar[type[Parameters]] = FqCodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 12

    limit_packets: int = sent(2, "limit")
    target_us: int = sent(1, "target", "duration")
    interval_us: int = sent(3, "interval", "duration")
    flows: int = sent(5, "flows")
    quantum_bytes: int = sent(6, "quantum")
    memory_limit_bytes: int = sent(9, "memory_limit", "bytes")
    ecn: bool = sent(4, "ecn", told=False)

    @classmethod
    def settled(cls, asked: FqCodelParameters, room: Room) -> Self:
        quantum, memory = quantum_bytes(asked.quantum, room), memory_bytes(room)
        return cls(room.packets, asked.target, asked.interval, asked.flows, quantum, memory, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        """CoDel waits an interval before its first drop."""
        return half_of(room, self.interval_us)
