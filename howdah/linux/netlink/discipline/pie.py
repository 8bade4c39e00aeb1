# SPDX-License-Identifier: Apache-2.0
"""pie: proportional integral controller enhanced."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import (
    Attributes,
    HopLink,
    HopQueue,
    Parameters,
    half_patience,
    option,
    parameter,
)

BURST_US = 150_000  # initial time in which PIE drops nothing (RFC 8033, section 4.4)


@planned
class PieParameters(Parameters):
    """PIE (RFC 8033): a controller that keeps the wait at ``target`` through a drop probability."""

    target: int = parameter("15 ms", "wait that the controller aims at", "duration")
    update: int = parameter(
        "15 ms",
        "time between updates of the probability; the kernel counts it in ticks of 10 ms, rounded up",
        "duration",
    )
    alpha: int = parameter(2, "weight of the wait's deviation, in sixteenths", least=0, most=32)
    beta: int = parameter(20, "weight of the wait's change, in sixteenths", least=0, most=32)


@planned
class Pie(Attributes, HopQueue):
    """PIE; it drops packets on arrival only."""

    kind: ClassVar[str] = "pie"
    name: ClassVar[str] = "pie"
    parameters_class: ClassVar[type[Parameters]] = PieParameters
    marks_at: ClassVar[int | None] = 36

    limit_packets: int = option(2, "limit")
    target_us: int = option(1, "target", "duration")
    update_us: int = option(3, "tupdate", "duration", reported=False)  # the kernel rounds it to its ticks
    alpha: int = option(4, "alpha")
    beta: int = option(5, "beta")
    ecn: bool = option(6, "ecn", reported=False)

    @classmethod
    def from_parameters(cls, values: PieParameters, link: HopLink) -> Self:
        return cls(link.packets, values.target, values.update, values.alpha, values.beta, link.ecn)

    def train_packets(self, link: HopLink) -> int | None:
        return half_patience(link, BURST_US)
