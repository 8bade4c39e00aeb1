# SPDX-License-Identifier: Apache-2.0
"""pie: proportional integral controller enhanced."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Attributes, HopQueue, Parameters, Room, asked, half_of, sent

BURST_US = 150_000  # initial time in which PIE drops nothing (RFC 8033, section 4.4)


@planned
class PieParameters(Parameters):
    """PIE (RFC 8033): a controller that keeps the wait at ``target`` through a drop probability."""

    target: int = asked("15 ms", "wait that the controller aims at", "duration")
    update: int = asked(
        "15 ms",
        "time between updates of the probability; the kernel counts it in ticks of 10 ms, rounded up",
        "duration",
    )
    alpha: int = asked(2, "weight of the wait's deviation, in sixteenths", least=0, most=32)
    beta: int = asked(20, "weight of the wait's change, in sixteenths", least=0, most=32)


@planned
class Pie(Attributes, HopQueue):
    """PIE; it drops packets on arrival only."""

    kind: ClassVar[str] = "pie"
    name: ClassVar[str] = "pie"
    asked: ClassVar[type[Parameters]] = PieParameters
    marks_at: ClassVar[int | None] = 36

    limit_packets: int = sent(2, "limit")
    target_us: int = sent(1, "target", "duration")
    update_us: int = sent(3, "tupdate", "duration", told=False)  # the kernel rounds it to its ticks
    alpha: int = sent(4, "alpha")
    beta: int = sent(5, "beta")
    ecn: bool = sent(6, "ecn", told=False)

    @classmethod
    def settled(cls, asked: PieParameters, room: Room) -> Self:
        return cls(room.packets, asked.target, asked.update, asked.alpha, asked.beta, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        return half_of(room, BURST_US)
