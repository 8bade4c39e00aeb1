# SPDX-License-Identifier: Apache-2.0
"""howdah_link: a link that carries bytes at the instants of a trace; the messages of modules/link/link.h."""

from __future__ import annotations

import struct
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.discipline.gaps import unpacked

_SETTINGS, _GAPS, _BEGIN, _END = range(4)
_GAPS_IN_A_MESSAGE = 15_000  # a netlink attribute holds at most 64 KiB


@planned
class TraceLink(Discipline):
    """A discipline of our own module, which tc does not know; ``words`` follows tc's style."""

    kind: ClassVar[str] = "howdah_link"
    of_module: ClassVar[str] = "of the module of that name ([paths.md](paths.md#links-that-follow-a-trace))"
    notes: ClassVar[dict[str, str]] = {
        "rate_bits_per_second": "while no trace is active",
        "overhead_bytes_less": "bytes that a packet counts less than its frame",
        "gaps": "from each opportunity to the next in microseconds, as 32-bit integers, zlib, Base64",
    }

    rate_bits_per_second: int
    opportunity_bytes: int
    overhead_bytes_less: int
    opportunities: int
    round_us: int
    gaps: str

    def encode(self) -> bytes:
        sizes = (self.opportunity_bytes, -self.overhead_bytes_less, self.opportunities)
        return struct.pack("=IIiIQQ", _SETTINGS, *sizes, self.rate_bits_per_second, self.round_us * 1000)

    def further(self) -> list[bytes]:
        gaps = unpacked(self.gaps)
        parts = (gaps[first : first + _GAPS_IN_A_MESSAGE] for first in range(0, len(gaps), _GAPS_IN_A_MESSAGE))
        return [struct.pack("=I", _GAPS) + part.tobytes() for part in parts]

    def words(self) -> Words:
        words: Words = ["rate", f"{self.rate_bits_per_second}bit", "opportunity", f"{self.opportunity_bytes}b"]
        return [*words, "opportunities", self.opportunities, "round", f"{self.round_us}us"]


def begin(begin_ns: int) -> bytes:
    """Options of the request that starts the trace, as of ``begin_ns``, an instant of CLOCK_MONOTONIC in the past."""
    return struct.pack("=IIQ", _BEGIN, 0, begin_ns)


def end() -> bytes:
    """Options of the request that restores the constant rate."""
    return struct.pack("=I", _END)
