# SPDX-License-Identifier: Apache-2.0
"""codel: controlled delay."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Attributes, HopQueue, Parameters, Room, asked, half_of, sent


@planned
class CodelParameters(Parameters):
    """CoDel (RFC 8289): drops once packets have waited longer than ``target`` for a whole ``interval``."""

    target: int = asked("5 ms", "acceptable waiting time", "duration")
    interval: int = asked("100 ms", "how long a wait may exceed target; about an RTT", "duration")

    def wrong(self) -> tuple[str, str] | None:
        return ("target", "expected a target shorter than the interval") if self.target >= self.interval else None


@planned
class Codel(Attributes, HopQueue):
    """CoDel; it drops packets at the head."""

    kind: ClassVar[str] = "codel"
    name: ClassVar[str] = "codel"
    asked: ClassVar[type[Parameters]] = CodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 24

    limit_packets: int = sent(2, "limit")
    target_us: int = sent(1, "target", "duration")
    interval_us: int = sent(3, "interval", "duration")
    ecn: bool = sent(4, "ecn", told=False)

    @classmethod
    def settled(cls, asked: CodelParameters, room: Room) -> Self:
        return cls(room.packets, asked.target, asked.interval, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        """CoDel waits an interval before its first drop."""
        return half_of(room, self.interval_us)
