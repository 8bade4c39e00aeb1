# SPDX-License-Identifier: Apache-2.0
"""fq_codel: fair queueing with CoDel in each queue."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.codel import CodelParameters
from howdah.linux.netlink.discipline.discipline import Attributes, HopLink, HopQueue, Parameters, half_patience, option
from howdah.linux.netlink.discipline.fair import FairParameters, memory_bytes, quantum_bytes


@planned
class FqCodelParameters(FairParameters, CodelParameters):
    """Fair queueing with CoDel in each queue (RFC 8290)."""


@planned
class FqCodel(Attributes, HopQueue):
    """FQ-CoDel; it drops packets at the head of the longest queue."""

    kind: ClassVar[str] = "fq_codel"
    name: ClassVar[str] = "fq_codel"
    parameters_class: ClassVar[type[Parameters]] = FqCodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 12

    limit_packets: int = option(2, "limit")
    target_us: int = option(1, "target", "duration")
    interval_us: int = option(3, "interval", "duration")
    flows: int = option(5, "flows")
    quantum_bytes: int = option(6, "quantum")
    memory_limit_bytes: int = option(9, "memory_limit", "bytes")
    ecn: bool = option(4, "ecn", reported=False)

    @classmethod
    def from_parameters(cls, values: FqCodelParameters, link: HopLink) -> Self:
        quantum, memory = quantum_bytes(values.quantum, link), memory_bytes(link)
        return cls(link.packets, values.target, values.interval, values.flows, quantum, memory, link.ecn)

    def train_packets(self, link: HopLink) -> int | None:
        """CoDel waits an interval before its first drop."""
        return half_patience(link, self.interval_us)
