# SPDX-License-Identifier: Apache-2.0
"""fq_pie: fair queueing with PIE in each queue."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Attributes, HopQueue, Parameters, Room, half_of, sent
from howdah.linux.netlink.discipline.fair import FairParameters, memory_bytes, quantum_bytes
from howdah.linux.netlink.discipline.pie import BURST_US, PieParameters


@planned
class FqPieParameters(FairParameters, PieParameters):
    """Fair queueing with PIE in each queue (the kernel's sch_fq_pie)."""


@planned
class FqPie(Attributes, HopQueue):
    """FQ-PIE; it drops packets on arrival only."""

    kind: ClassVar[str] = "fq_pie"
    name: ClassVar[str] = "fq_pie"
    asked: ClassVar[type[Parameters]] = FqPieParameters
    strict: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 16

    limit_packets: int = sent(1, "limit")
    flows: int = sent(2, "flows")
    target_us: int = sent(3, "target", "duration")
    update_us: int = sent(4, "tupdate", "duration", told=False)  # the kernel rounds it to its ticks
    alpha: int = sent(5, "alpha")
    beta: int = sent(6, "beta")
    quantum_bytes: int = sent(7, "quantum")
    memory_limit_bytes: int = sent(8, "memory_limit", "bytes")
    ecn: bool = sent(10, "ecn", told=False)

    @classmethod
    def settled(cls, asked: FqPieParameters, room: Room) -> Self:
        gains, quantum = (asked.alpha, asked.beta), quantum_bytes(asked.quantum, room)
        return cls(room.packets, asked.flows, asked.target, asked.update, *gains, quantum, memory_bytes(room), room.ecn)

    def train_packets(self, room: Room) -> int | None:
        return half_of(room, BURST_US)
