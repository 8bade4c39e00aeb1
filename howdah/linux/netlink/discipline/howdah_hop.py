# SPDX-License-Identifier: Apache-2.0
"""howdah_hop: changes a hop makes to packets besides delay; struct hop_options of modules/hop/hop.h."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.discipline.rate import U32_MAX

_ACTIVE, _ANSWERS, _CLEARS_ECN = 1, 2, 4
# TCP options by their names in profiles, with their kinds (RFC 9293, 7323, 2018).
OPTIONS = {"window-scale": 3, "sack": 4, "timestamps": 8}
COUNTERS = ("seen", "lost", "too_large", "answered", "cleared", "stripped", "duplicated", "corrupted", "largest_bytes")
_STATISTICS = struct.Struct(f"={len(COUNTERS)}I")


@planned
class MiddleHop(Discipline):
    """A discipline of our own module, which tc does not know; ``words`` follows tc's style. While it is not ``active``,
    every packet passes and none is counted."""

    kind: ClassVar[str] = "howdah_hop"
    of_module: ClassVar[str] = "of the module of that name ([paths.md](paths.md#middleboxes))"
    notes: ClassVar[Mapping[str, str]] = {
        "mtu_bytes": "0: no limit",
        "strips": "kinds of TCP options",
        "lost": "numbers of packets, from 1",
    }

    active: bool
    mtu_bytes: int
    answers: bool
    clears_ecn: bool
    strips: list[int]
    duplicate_ratio: float
    corrupt_ratio: float
    lost: list[int]
    seed: int

    def encode(self) -> bytes:
        flags = _ACTIVE * self.active | _ANSWERS * self.answers | _CLEARS_ECN * self.clears_ecn
        kinds = sum(1 << kind for kind in self.strips)
        ratios = (round(ratio * U32_MAX) for ratio in (self.duplicate_ratio, self.corrupt_ratio))
        lost = self.lost
        head = struct.pack("=QIIIIII", self.seed, flags, self.mtu_bytes, kinds, *ratios, len(lost))
        return head + struct.pack(f"={len(lost)}I", *lost)

    def words(self) -> Words:
        if not self.active:
            return ["off"]
        words: Words = []
        if self.mtu_bytes:
            words += ["mtu", self.mtu_bytes, "icmp" if self.answers else "noicmp"]
        if self.clears_ecn:
            words.append("clear-ecn")
        if self.strips:
            words += ["strip", ",".join(name for name, kind in OPTIONS.items() if kind in self.strips)]
        if self.lost:
            words += ["lose", f"list[{len(self.lost)}]"]
        for name, ratio in (("duplicate", self.duplicate_ratio), ("corrupt", self.corrupt_ratio)):
            if ratio:
                words += [name, f"{ratio * 100:.10g}%"]
        return [*words, "seed", self.seed]

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:
        """Counts of its changes to packets while active. ``largest_bytes``: the largest IPv4 packet that passed."""
        if len(statistics) < _STATISTICS.size:
            return {}
        return dict(zip(COUNTERS, _STATISTICS.unpack_from(statistics), strict=True))
