# SPDX-License-Identifier: Apache-2.0
"""fq_pie: fair queueing with PIE in each queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import (
    HopQueue,
    Parameters,
    Room,
    Words,
    duration,
    ecn_word,
    half_of,
)
from howdah.linux.netlink.discipline.fair import FairParameters, memory_bytes, quantum_bytes
from howdah.linux.netlink.discipline.pie import BURST_US, PieParameters
from howdah.linux.netlink.message import u32

_LIMIT, _FLOWS, _TARGET, _TUPDATE, _ALPHA, _BETA, _QUANTUM, _MEMORY_LIMIT, _ECN = 1, 2, 3, 4, 5, 6, 7, 8, 10


@planned
class FqPieParameters(FairParameters, PieParameters):
    """Fair queueing with PIE in each queue (the kernel's sch_fq_pie)."""


@planned
class FqPie(HopQueue):
    """It refuses what comes, and drops nothing that it holds."""

    kind: ClassVar[str] = "fq_pie"
    name: ClassVar[str] = "fq_pie"
    asked: ClassVar[type[Parameters]] = FqPieParameters
    strict: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 16
    # Not the time between updates, which the kernel rounds to its ticks.
    told: ClassVar[Mapping[str, str]] = {
        "limit": "limit_packets",
        "flows": "flows",
        "target": "target_us",
        "alpha": "alpha",
        "beta": "beta",
        "quantum": "quantum_bytes",
        "memory_limit": "memory_limit_bytes",
    }

    limit_packets: int
    flows: int
    target_us: int
    update_us: int
    alpha: int
    beta: int
    quantum_bytes: int
    memory_limit_bytes: int
    ecn: bool

    @classmethod
    def settled(cls, asked: FqPieParameters, room: Room) -> Self:
        gains, quantum = (asked.alpha, asked.beta), quantum_bytes(asked.quantum, room)
        return cls(room.packets, asked.flows, asked.target, asked.update, *gains, quantum, memory_bytes(room), room.ecn)

    def train_packets(self, room: Room) -> int | None:
        return half_of(room, BURST_US)

    def encode(self) -> bytes:
        times = u32(_TARGET, self.target_us) + u32(_TUPDATE, self.update_us)
        gains = u32(_ALPHA, self.alpha) + u32(_BETA, self.beta)
        queues = u32(_FLOWS, self.flows) + u32(_QUANTUM, self.quantum_bytes)
        queues += u32(_MEMORY_LIMIT, self.memory_limit_bytes)
        return u32(_LIMIT, self.limit_packets) + times + gains + queues + u32(_ECN, int(self.ecn))

    def words(self) -> Words:
        times: Words = ["target", duration(self.target_us), "tupdate", duration(self.update_us)]
        gains: Words = ["alpha", self.alpha, "beta", self.beta]
        queues: Words = ["quantum", self.quantum_bytes, "memory_limit", f"{self.memory_limit_bytes}b"]
        return ["limit", self.limit_packets, "flows", self.flows, *times, *gains, *queues, ecn_word(self.ecn)]
