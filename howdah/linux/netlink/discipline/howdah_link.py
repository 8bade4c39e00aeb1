# SPDX-License-Identifier: Apache-2.0
"""howdah_link: a link that carries bytes when a trace says so; the messages of modules/link/link.h."""

from __future__ import annotations

import struct
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.discipline.gaps import unpacked

_SETTINGS, _GAPS, _BEGIN, _END = range(4)
_GAPS_IN_A_MESSAGE = 15_000  # an attribute of netlink has 64 KiB at most


@planned
class TraceLink(Discipline):
    """Of our own module, which tc does not know: its words are as they would be written."""

    kind: ClassVar[str] = "howdah_link"
    of_module: ClassVar[str] = "of the module of that name ([paths.md](paths.md#links-that-follow-a-trace))"
    notes: ClassVar[dict[str, str]] = {
        "rate_bits_per_second": "while no trace holds",
        "overhead_bytes_less": "what a packet counts less than its frame has",
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
    """Options of the request after which the trace holds, since an instant of CLOCK_MONOTONIC that has come."""
    return struct.pack("=IIQ", _BEGIN, 0, begin_ns)


def end() -> bytes:
    """The same after which the constant rate holds again."""
    return struct.pack("=I", _END)
