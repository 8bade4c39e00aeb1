# SPDX-License-Identifier: Apache-2.0
"""fq_codel: fair queueing with CoDel in each queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.codel import CodelParameters
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
from howdah.linux.netlink.message import u32

_TARGET, _LIMIT, _INTERVAL, _ECN, _FLOWS, _QUANTUM, _MEMORY_LIMIT = 1, 2, 3, 4, 5, 6, 9


@planned
class FqCodelParameters(FairParameters, CodelParameters):
    """Fair queueing with CoDel in each queue (RFC 8290)."""


@planned
class FqCodel(HopQueue):
    """A drop takes packets at the head of the longest queue."""

    kind: ClassVar[str] = "fq_codel"
    name: ClassVar[str] = "fq_codel"
    asked: ClassVar[type[Parameters]] = FqCodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 12
    told: ClassVar[Mapping[str, str]] = {
        "limit": "limit_packets",
        "target": "target_us",
        "interval": "interval_us",
        "flows": "flows",
        "quantum": "quantum_bytes",
        "memory_limit": "memory_limit_bytes",
    }

    limit_packets: int
    target_us: int
    interval_us: int
    flows: int
    quantum_bytes: int
    memory_limit_bytes: int
    ecn: bool

    @classmethod
    def settled(cls, asked: FqCodelParameters, room: Room) -> Self:
        quantum, memory = quantum_bytes(asked.quantum, room), memory_bytes(room)
        return cls(room.packets, asked.target, asked.interval, asked.flows, quantum, memory, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        """CoDel waits an interval before its first drop."""
        return half_of(room, self.interval_us)

    def encode(self) -> bytes:
        times = u32(_TARGET, self.target_us) + u32(_INTERVAL, self.interval_us)
        queues = u32(_FLOWS, self.flows) + u32(_QUANTUM, self.quantum_bytes)
        queues += u32(_MEMORY_LIMIT, self.memory_limit_bytes)
        return u32(_LIMIT, self.limit_packets) + times + u32(_ECN, int(self.ecn)) + queues

    def words(self) -> Words:
        times: Words = ["target", duration(self.target_us), "interval", duration(self.interval_us)]
        queues: Words = ["flows", self.flows, "quantum", self.quantum_bytes]
        memory: Words = ["memory_limit", f"{self.memory_limit_bytes}b"]
        return ["limit", self.limit_packets, *times, *queues, *memory, ecn_word(self.ecn)]
