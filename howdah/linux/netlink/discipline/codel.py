# SPDX-License-Identifier: Apache-2.0
"""codel: controlled delay."""

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

_TARGET, _LIMIT, _INTERVAL, _ECN = 1, 2, 3, 4


@planned
class CodelParameters(Parameters):
    """CoDel (RFC 8289): drops while packets have waited longer than ``target`` for a whole ``interval``."""

    target: int = asked("5 ms", "acceptable waiting time", "duration")
    interval: int = asked("100 ms", "how long a wait may exceed target; about an RTT", "duration")

    def wrong(self) -> tuple[str, str] | None:
        return ("target", "expected a target shorter than the interval") if self.target >= self.interval else None


@planned
class Codel(HopQueue):
    """A drop takes the packet at the head."""

    kind: ClassVar[str] = "codel"
    name: ClassVar[str] = "codel"
    asked: ClassVar[type[Parameters]] = CodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 24
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_packets", "target": "target_us", "interval": "interval_us"}

    limit_packets: int
    target_us: int
    interval_us: int
    ecn: bool

    @classmethod
    def settled(cls, asked: CodelParameters, room: Room) -> Self:
        return cls(room.packets, asked.target, asked.interval, room.ecn)

    def train_packets(self, room: Room) -> int | None:
        """It waits an interval before its first drop."""
        return half_of(room, self.interval_us)

    def encode(self) -> bytes:
        times = u32(_TARGET, self.target_us) + u32(_INTERVAL, self.interval_us)
        return u32(_LIMIT, self.limit_packets) + times + u32(_ECN, int(self.ecn))

    def words(self) -> Words:
        times: Words = ["target", duration(self.target_us), "interval", duration(self.interval_us)]
        return ["limit", self.limit_packets, *times, ecn_word(self.ecn)]
