# SPDX-License-Identifier: Apache-2.0
"""The paths that ``make breaks`` tries, and what it looks for on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from howdah.frame import frame_bytes
from howdah.quantity import parse_duration, parse_rate

EARLY, OVER, SLOW = "early", "over", "slow"
LEAST_BDP, MOST_BDP, MOST_TIMES = 0.2, 3.0, 3.0
TIME = "time_to_1_mb_s"
PACKET_BYTES = frame_bytes(1500)
GRANTED = "-granted"  # of a Quick-Start whose routers grant what the path has
GRANTS_KBPS = tuple(40 * 2**power for power in range(1, 16))  # what a request can carry


@dataclass(frozen=True)
class Place:
    """One path. ``variation`` is the amplitude of its delay, a tenth of the round trip; empty where it stays."""

    rate: str
    rtt: str
    buffer: str = "1 bdp"
    variation: str = ""

    @property
    def bdp_packets(self) -> float:
        return parse_rate(self.rate) * parse_duration(self.rtt) / 8e6 / PACKET_BYTES

    @property
    def odd(self) -> int:
        """How many properties set it apart from a plain path."""
        return (self.buffer != "1 bdp") + bool(self.variation)

    @property
    def name(self) -> str:
        parts = [part.replace(" ", "").replace("/s", "").replace(".", "").lower() for part in asdict(self).values()]
        return "-".join(part for part in parts if part not in ("", "1bdp"))

    @property
    def words(self) -> str:
        varies = f", a delay that varies by {self.variation}" if self.variation else ""
        return f"{self.rate}, {self.rtt}, {self.buffer} of buffer{varies}".replace("bdp", "BDP")

    def section(self) -> dict[str, Any]:
        """As a profile has it."""
        varies = {
            "distribution": "uniform",
            "amplitude": self.variation,
            "correlation_time": "50 ms",
            "source": "a choice",
        }
        plain = {"rate": self.rate, "rtt": self.rtt, "buffer": self.buffer, "sender_interface": "1 Gbit/s"}
        return {**plain, **({"delay_variation": varies} if self.variation else {})}

    def document(self, names: Sequence[str]) -> dict[str, Any]:
        """What a profile of these start-ups on this path has."""
        grant = max(each for each in GRANTS_KBPS if each * 1000 <= parse_rate(self.rate))
        granted = {
            each: {"like": each.removesuffix(GRANTED), "parameters": {"rate_kbps": grant}}
            for each in names
            if each.endswith(GRANTED)
        }
        return {
            "path": self.section(),
            "flows": [{"name": "flow", "opener": "receiver"}],
            "host": {"tcp_rmem": "4096 33554432 268435456"},  # a jump needs a receiver that takes it
            "algorithm": list(names),
            "duration": f"{max(2.0, 30 * parse_duration(self.rtt) / 1e6):g} s",
            **({"algorithms": granted} if granted else {}),
        }


LINKS = (
    ("10 Mbit/s", "40 ms"),
    ("10 Mbit/s", "100 ms"),
    ("20 Mbit/s", "100 ms"),
    ("20 Mbit/s", "200 ms"),
    ("40 Mbit/s", "200 ms"),
    ("40 Mbit/s", "400 ms"),
)
BUFFERS = ("1 bdp", "4 bdp", "0.1 bdp")


def places() -> list[Place]:
    """In the order of their size."""
    found = [
        Place(rate, rtt, buffer, f"{int(rtt.partition(' ')[0]) // 10} ms" if varies else "")
        for rate, rtt in LINKS
        for buffer in BUFFERS
        for varies in (False, True)
    ]
    return sorted(found, key=lambda each: (each.odd, each.bdp_packets, BUFFERS.index(each.buffer)))


@dataclass(frozen=True)
class Break:
    """A start-up on the smallest path where it breaks in one way; ``value`` is in BDP, or in times of the best."""

    start_up: str
    way: str
    place: Place
    value: float
    why: str  # what ended start-up, or what held the flow back
    best: str = ""  # what it is compared with
