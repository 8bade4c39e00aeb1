# SPDX-License-Identifier: Apache-2.0
"""fq_pie: fair queueing with PIE in each queue."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Attributes, HopLink, HopQueue, Parameters, half_patience, option
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
    parameters_class: ClassVar[type[Parameters]] = FqPieParameters
    strict: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 16

    limit_packets: int = option(1, "limit")
    flows: int = option(2, "flows")
    target_us: int = option(3, "target", "duration")
    update_us: int = option(4, "tupdate", "duration", reported=False)  # the kernel rounds it to its ticks
    alpha: int = option(5, "alpha")
    beta: int = option(6, "beta")
    quantum_bytes: int = option(7, "quantum")
    memory_limit_bytes: int = option(8, "memory_limit", "bytes")
    ecn: bool = option(10, "ecn", reported=False)

    @classmethod
    def from_parameters(cls, values: FqPieParameters, link: HopLink) -> Self:
        gains, quantum = (values.alpha, values.beta), quantum_bytes(values.quantum, link)
        return cls(
            link.packets, values.flows, values.target, values.update, *gains, quantum, memory_bytes(link), link.ecn
        )

    def train_packets(self, link: HopLink) -> int | None:
        return half_patience(link, BURST_US)
