# SPDX-License-Identifier: Apache-2.0
"""netem: a delay line, with loss and reordering."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from howdah.codec import OCCASIONAL, planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words, duration
from howdah.linux.netlink.discipline.rate import TICK_NS, U32_MAX
from howdah.linux.netlink.message import attribute, nested, s64, u64

_DELAY_DIST, _REORDER, _LOSS, _RATE, _RATE64 = 2, 3, 5, 6, 8
_LATENCY64, _JITTER64, _SLOT, _PRNG_SEED = 10, 11, 12, 14
_GILBERT_ELLIOTT = 2


@planned
class Netem(Discipline):
    """A delay line. With a rate, packets stay in order when the delay falls. If loss comes in bursts, a burst begins
    and ends at each packet with the probability ``burst_begins_ratio`` and ``burst_ends_ratio``."""

    kind: ClassVar[str] = "netem"
    notes: ClassVar[Mapping[str, str]] = {
        "distribution": "deviations that packets draw from, in 8192ths of the jitter; null: unchanged",
        "burst_begins_ratio": "where loss comes in bursts",
        "burst_ends_ratio": "where loss comes in bursts",
        "tick_us": "of a change; 0 ends the ticks",
    }

    delay_us: int
    limit_packets: int
    seed: int | None = None
    jitter_us: int = 0
    distribution: list[int] | None = None
    loss_ratio: float = 0.0
    rate_bits_per_second: int | None = None
    reorder_ratio: float = 0.0
    reorder_gap: int = 0
    burst_begins_ratio: float | None = field(default=None, metadata=OCCASIONAL)
    burst_ends_ratio: float | None = field(default=None, metadata=OCCASIONAL)
    # Used in changes only; absent: unchanged.
    tick_us: int | None = field(default=None, metadata=OCCASIONAL)

    @property
    def least_us(self) -> int:
        """The shortest delay; zero if packets may overtake."""
        if self.reorder_ratio:
            return 0
        earliest_us = -self.jitter_us
        if self.distribution:
            earliest_us = self.jitter_us * min(self.distribution) // 8192
        return max(self.delay_us + min(earliest_us, 0), 0)

    @property
    def plain(self) -> bool:
        """Whether it only delays every packet by the same time."""
        others = (self.loss_ratio, self.jitter_us, self.distribution, self.rate_bits_per_second, self.reorder_ratio)
        return not any(others)

    def encode(self) -> bytes:
        delay_ns, jitter_ns = self.delay_us * 1000, self.jitter_us * 1000
        bursts = () if self.burst_begins_ratio is None else (self.burst_begins_ratio, self.burst_ends_ratio or 0.0)
        reorder = round(self.reorder_ratio * U32_MAX)
        encoded = struct.pack(
            "=IIIIII",
            min(delay_ns // TICK_NS, U32_MAX),
            self.limit_packets,
            0 if bursts else round(self.loss_ratio * U32_MAX),
            self.reorder_gap if reorder else 0,
            0,
            min(jitter_ns // TICK_NS, U32_MAX),
        )
        if reorder:
            encoded += attribute(_REORDER, struct.pack("=II", reorder, 0))
        if bursts:  # struct tc_netem_gemodel: begin, end, pass within a burst (never), loss outside (never)
            ratios = (round(ratio * U32_MAX) for ratio in bursts)
            encoded += nested(_LOSS, attribute(_GILBERT_ELLIOTT, struct.pack("=IIII", *ratios, 0, 0)))
        encoded += s64(_LATENCY64, delay_ns) + s64(_JITTER64, jitter_ns)
        if self.distribution:
            encoded += attribute(_DELAY_DIST, struct.pack(f"={len(self.distribution)}h", *self.distribution))
        if self.rate_bits_per_second:
            rate = self.rate_bits_per_second // 8
            encoded += attribute(_RATE, struct.pack("=IiIi", min(rate, U32_MAX), 0, 0, 0))
            encoded += u64(_RATE64, rate) if rate > U32_MAX else b""
        if self.seed is not None:
            encoded += u64(_PRNG_SEED, self.seed)
        if self.tick_us is not None:  # struct tc_netem_slot; zeros switch it off
            tick_ns = self.tick_us * 1000
            encoded += attribute(_SLOT, struct.pack("=qqiiqq", tick_ns, tick_ns, 0, 0, 0, 0))
        return encoded

    def words(self) -> Words:
        words: Words = ["limit", self.limit_packets, "delay", duration(self.delay_us)]
        if self.jitter_us:
            words.append(duration(self.jitter_us))
        if self.distribution is not None:
            words += ["distribution", f"table[{len(self.distribution)}]"]
        if self.burst_begins_ratio is not None:
            words += ["loss", "gemodel", _percent(self.burst_begins_ratio), _percent(self.burst_ends_ratio or 0.0)]
        elif self.loss_ratio:
            words += ["loss", _percent(self.loss_ratio)]
        if self.reorder_ratio:
            words += ["reorder", _percent(self.reorder_ratio), "gap", self.reorder_gap]
        if self.seed is not None:
            words += ["seed", self.seed]
        if self.rate_bits_per_second is not None:
            words += ["rate", f"{self.rate_bits_per_second}bit"]
        if self.tick_us is not None:
            words += ["slot", duration(self.tick_us)]
        return words


def _percent(ratio: float) -> str:
    return f"{ratio * 100:.10g}%"
