# SPDX-License-Identifier: Apache-2.0
"""htb: a rate limit, and its classes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from howdah.codec import OCCASIONAL, planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.discipline.rate import U32_MAX, rate_specification, ticks
from howdah.linux.netlink.message import attribute, u64

_STAB_BASE = 1
_PARMS, _INIT, _RATE64, _CEIL64 = 1, 2, 6, 7
_VERSION, _RATE_TO_QUANTUM = 3, 10


@planned
class HtbClass(Discipline):
    """A class of HTB: a rate, which is also the ceiling, and its bursts."""

    rate_bits_per_second: int
    burst_bytes: int
    cburst_bytes: int
    quantum_bytes: int

    def encode(self) -> bytes:
        rate = self.rate_bits_per_second // 8
        times = (ticks(self.burst_bytes, rate), ticks(self.cburst_bytes, rate))
        limits = struct.pack("=IIIII", *times, self.quantum_bytes, 0, 0)
        encoded = attribute(_PARMS, rate_specification(rate) * 2 + limits)
        return encoded + (u64(_RATE64, rate) + u64(_CEIL64, rate) if rate > U32_MAX else b"")

    def words(self) -> Words:
        burst: Words = ["burst", f"{self.burst_bytes}b", "cburst", f"{self.cburst_bytes}b"]
        return ["rate", f"{self.rate_bits_per_second}bit", *burst, "quantum", self.quantum_bytes]


@planned
class Htb(Discipline):
    """HTB. ``default_class`` is the minor number of the class for packets that no filter assigns. ``overhead_bytes``
    are added to the length of each packet, for its rate and for the queue below it."""

    kind: ClassVar[str] = "htb"
    classes: ClassVar[type[Discipline] | None] = HtbClass
    notes: ClassVar[Mapping[str, str]] = {"overhead_bytes": "of a tunnel; `tc stab`"}

    default_class: int
    overhead_bytes: int = field(default=0, metadata=OCCASIONAL)

    def size_table(self) -> bytes:
        if not self.overhead_bytes:
            return b""
        # struct tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, and no table.
        return attribute(_STAB_BASE, struct.pack("=BBhiIIII", 0, 0, 0, self.overhead_bytes, 0, 0, 0, 0))

    def stab_words(self) -> Words:
        return ["stab", "overhead", self.overhead_bytes] if self.overhead_bytes else []

    def encode(self) -> bytes:
        return attribute(_INIT, struct.pack("=IIIII", _VERSION, _RATE_TO_QUANTUM, self.default_class, 0, 0))

    def words(self) -> Words:
        return ["default", self.default_class]
