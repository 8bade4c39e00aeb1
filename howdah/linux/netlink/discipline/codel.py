# SPDX-License-Identifier: Apache-2.0
"""codel: controlled delay."""

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


@planned
class CodelParameters(Parameters):
    """CoDel (RFC 8289): drops once packets have waited longer than ``target`` for a whole ``interval``."""

    target: int = parameter("5 ms", "acceptable waiting time", "duration")
    interval: int = parameter("100 ms", "how long a wait may exceed target; about an RTT", "duration")

    def wrong(self) -> tuple[str, str] | None:
        return ("target", "expected a target shorter than the interval") if self.target >= self.interval else None


@planned
class Codel(Attributes, HopQueue):
    """CoDel; it drops packets at the head."""

    kind: ClassVar[str] = "codel"
    name: ClassVar[str] = "codel"
    parameters_class: ClassVar[type[Parameters]] = CodelParameters
    drops_held: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 24

    limit_packets: int = option(2, "limit")
    target_us: int = option(1, "target", "duration")
    interval_us: int = option(3, "interval", "duration")
    ecn: bool = option(4, "ecn", reported=False)

    @classmethod
    def from_parameters(cls, values: CodelParameters, link: HopLink) -> Self:
        return cls(link.packets, values.target, values.interval, link.ecn)

    def train_packets(self, link: HopLink) -> int | None:
        """CoDel waits an interval before its first drop."""
        return half_patience(link, self.interval_us)
