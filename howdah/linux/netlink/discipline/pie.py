# SPDX-License-Identifier: Apache-2.0
"""pie: proportional integral controller enhanced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import (
    HopQueue,
    Parameters,
    Room,
    Words,
    asked,
    duration,
    ecn_word,
    half_of,
)
from howdah.linux.netlink.message import u32

_TARGET, _LIMIT, _TUPDATE, _ALPHA, _BETA, _ECN = 1, 2, 3, 4, 5, 6
BURST_US = 150_000  # within which PIE lets everything pass (RFC 8033, section 4.4)


@planned
class PieParameters(Parameters):
    """PIE (RFC 8033): a controller that holds the wait at ``target`` by a drop probability."""

    target: int = asked("15 ms", "wait", "duration")
    update: int = asked(
        "15 ms",
        "time between updates of the probability; the kernel counts it in ticks of 10 ms, rounded up",
        "duration",
    )
    alpha: int = asked(2, "weight of the wait's deviation, in sixteenths", least=0, most=32)
    beta: int = asked(20, "weight of the wait's change, in sixteenths", least=0, most=32)


@planned
class Pie(HopQueue):
    """It refuses what comes, and drops nothing that it holds."""

    kind: ClassVar[str] = "pie"
    name: ClassVar[str] = "pie"
    asked: ClassVar[type[Parameters]] = PieParameters
    marks_at: ClassVar[int | None] = 36
    # Not the time between updates, which the kernel rounds to its ticks.
    told: ClassVar[Mapping[str, str]] = {
        "limit": "limit_packets",
        "target": "target_us",
        "alpha": "alpha",
        "beta": "beta",
    }

    limit_packets: int
    target_us: int
    update_us: int
    alpha: int
    beta: int
    ecn: bool

    @classmethod
    def settled(cls, asked: PieParameters, room: Room) -> Self:
        return cls(room.packets, asked.target, asked.update, asked.alpha, asked.beta, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        return half_of(room, BURST_US)

    def encode(self) -> bytes:
        times = u32(_TARGET, self.target_us) + u32(_TUPDATE, self.update_us)
        gains = u32(_ALPHA, self.alpha) + u32(_BETA, self.beta)
        return u32(_LIMIT, self.limit_packets) + times + gains + u32(_ECN, int(self.ecn))

    def words(self) -> Words:
        times: Words = ["target", duration(self.target_us), "tupdate", duration(self.update_us)]
        return ["limit", self.limit_packets, *times, "alpha", self.alpha, "beta", self.beta, ecn_word(self.ecn)]
