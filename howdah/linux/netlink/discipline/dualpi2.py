# SPDX-License-Identifier: Apache-2.0
"""dualpi2: a low-latency queue coupled with a classic one (RFC 9332)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words, asked, duration
from howdah.linux.netlink.discipline.fair import memory_bytes
from howdah.linux.netlink.message import attribute, parse_attributes, u32

if TYPE_CHECKING:
    from fractions import Fraction  # slow to import in a guest, which does not need it

_LIMIT, _MEMORY_LIMIT, _TARGET, _TUPDATE, _ALPHA, _BETA, _STEP_PACKETS, _STEP_US, _STEP_LEAST = range(1, 10)
_COUPLING, _DROP_OVERLOAD, _DROP_EARLY, _C_PROTECTION, _ECN_MASK, _SPLIT_GSO = range(10, 16)
_STATISTICS = struct.Struct("=8IiIII")  # struct tc_dualpi2_xstats
_MOST_GAIN = 2**31 - 1
_HERTZ = 256  # the kernel takes gains in 1/256 Hz
_MASKS = {"ect1": 1, "any": 3}  # bits of the IP header's ECN field; CE has both
_MASK_WORDS = {"ect1": "l4s_ect", "any": "any_ect"}
_RARE_DROP = 1 / 1000


@planned
class Dualpi2Parameters(Parameters):
    """DualPI2 (RFC 9332; in Linux since 6.17, which `kernel: debian-newest` provides): a low-latency queue for L4S,
    which marks packets after a short wait, and a classic one. One controller serves both: with its probability p,
    classic packets are dropped, or marked if ECN-capable, with probability p squared, and low-latency packets are
    marked with `coupling` times p. It always marks ECN-capable packets. Its buffer holds both queues."""

    target: int = asked("15 ms", "wait that the controller aims at", "duration")
    update: int = asked("16 ms", "time between updates of the probability", "duration")
    alpha: int = asked(
        41, "weight of the wait's deviation from target, in 1/256 Hz: 0.16 Hz by default", least=1, most=_MOST_GAIN
    )
    beta: int = asked(819, "weight of the wait's change, in 1/256 Hz: 3.2 Hz by default", least=1, most=_MOST_GAIN)
    step: int | None = asked(
        None, "wait from which each low-latency packet is marked; 1 ms without step_packets", "duration"
    )
    step_packets: int | None = asked(
        None, "the same threshold in queued packets, instead of step", least=1, most=1_000_000
    )
    step_least: int = asked(0, "queued low-latency packets below which the step marks none", least=0, most=1_000_000)
    coupling: int = asked(2, "ratio of the low-latency marking probability to the controller's", least=1, most=255)
    classic_share: Fraction = asked("10 %", "of the rate, for the classic queue while both have packets", "share")
    low_latency: str = asked(
        "ect1",
        "ECN codepoints of the low-latency queue: ECT(1), which L4S sends, or any, as DCTCP needs; both include CE",
        choices=tuple(_MASKS),
    )
    overload: str = asked(
        "drop",
        "drops of low-latency packets at a probability of 100 %: like classic ones, or none until the buffer is full",
        choices=("drop", "fill"),
    )
    decide: str = asked("dequeue", "when a packet is dropped or marked", choices=("dequeue", "enqueue"))

    def wrong(self) -> tuple[str, str] | None:
        if self.step is not None and self.step_packets is not None:
            return "step_packets", "step and step_packets are both given; give one"
        if (self.classic_share * 100).denominator != 1 or self.classic_share > 1:
            return "classic_share", "expected a whole percentage of at most 100 %"
        return None


@planned
class Dualpi2(HopQueue):
    """DualPI2; it splits large packets, which is the kernel's default."""

    kind: ClassVar[str] = "dualpi2"
    name: ClassVar[str] = "dualpi2"
    asked: ClassVar[type[Parameters]] = Dualpi2Parameters
    since: ClassVar[tuple[int, ...]] = (6, 17)
    strict: ClassVar[bool] = True
    drops_held: ClassVar[bool] = True
    marks_always: ClassVar[bool] = True
    marks_at: ClassVar[int | None] = 24
    readings: ClassVar[Mapping[str, int]] = {
        "probability": 0,
        "classic_delay_us": 4,
        "low_latency_delay_us": 8,
        "classic_packets": 12,
        "low_latency_packets": 16,
        "marks_packets": 24,
        "step_marks_packets": 28,
    }
    told: ClassVar[Mapping[str, str]] = {
        "limit": "limit_packets",
        "memory limit": "memory_limit_bytes",
        "target": "target_us",
        "update": "update_us",
        "alpha": "alpha",
        "beta": "beta",
        "step": "step_us",
        "step of packets": "step_packets",
        "least for a step": "step_least_packets",
        "coupling": "coupling",
        "classic share": "classic_percent",
        "low latency": "low_latency",
        "overload": "overload",
        "decision": "decide",
    }

    limit_packets: int
    memory_limit_bytes: int
    target_us: int
    update_us: int
    alpha: int
    beta: int
    step_us: int | None
    step_packets: int | None
    step_least_packets: int
    coupling: int
    classic_percent: int
    low_latency: str
    overload: str
    decide: str

    @classmethod
    def settled(cls, asked: Dualpi2Parameters, room: Room) -> Self:
        step_us = 1000 if asked.step is None and asked.step_packets is None else asked.step
        return cls(
            limit_packets=room.packets,
            memory_limit_bytes=memory_bytes(room),
            target_us=asked.target,
            update_us=asked.update,
            alpha=asked.alpha,
            beta=asked.beta,
            step_us=step_us,
            step_packets=asked.step_packets,
            step_least_packets=asked.step_least,
            coupling=asked.coupling,
            classic_percent=int(asked.classic_share * 100),
            low_latency=asked.low_latency,
            overload=asked.overload,
            decide=asked.decide,
        )

    def train_packets(self, room: Room) -> int | None:
        """Of n frames that arrive at an empty queue, n (beta × wait)² are dropped after an update. Two always pass."""
        frame_s = room.frame_bytes * 8 / room.rate_bits_per_second
        return max(int((_RARE_DROP / (self.beta / _HERTZ * frame_s) ** 2) ** (1 / 3)), 2)

    @property
    def decides_on_arrival(self) -> bool:
        return self.decide == "enqueue"

    def encode(self) -> bytes:
        """The limit comes first, because the kernel derives the memory limit from it."""
        sizes = u32(_LIMIT, self.limit_packets) + u32(_MEMORY_LIMIT, self.memory_limit_bytes)
        control = u32(_TARGET, self.target_us) + u32(_TUPDATE, self.update_us)
        control += u32(_ALPHA, self.alpha) + u32(_BETA, self.beta)
        step = u32(_STEP_PACKETS, self.step_packets) if self.step_packets else u32(_STEP_US, self.step_us or 0)
        step += u32(_STEP_LEAST, self.step_least_packets)
        switches = {
            _COUPLING: self.coupling,
            _DROP_OVERLOAD: self.overload == "drop",
            _DROP_EARLY: self.decide == "enqueue",
            _C_PROTECTION: self.classic_percent,
            _ECN_MASK: _MASKS[self.low_latency],
            _SPLIT_GSO: 1,
        }
        return sizes + control + step + b"".join(attribute(name, bytes([value])) for name, value in switches.items())

    def words(self) -> Words:
        sizes: Words = ["limit", self.limit_packets, "memlimit", self.memory_limit_bytes]
        times: Words = ["target", duration(self.target_us), "tupdate", duration(self.update_us)]
        gains: Words = ["alpha", f"{self.alpha / _HERTZ:.9g}", "beta", f"{self.beta / _HERTZ:.9g}"]
        step = f"{self.step_packets}p" if self.step_packets else duration(self.step_us or 0)
        steps: Words = ["step_thresh", step, "min_qlen_step", f"{self.step_least_packets}p"]
        both: Words = ["coupling_factor", self.coupling, "classic_protection", f"{self.classic_percent}%"]
        both += ["drop_on_overload" if self.overload == "drop" else "overflow", f"drop_{self.decide}"]
        return [*sizes, *times, *gains, *steps, *both, _MASK_WORDS[self.low_latency], "split_gso"]

    @classmethod
    def settings(cls, options: bytes) -> dict[str, int | str]:
        """Parse the options, because iproute2 before 6.17 does not know this kind. The kernel keeps gains in steps
        slightly smaller than 1/256 Hz and rounds them down twice, so that it always reports one less."""
        found = {name: int.from_bytes(value, "little") for name, value in parse_attributes(options).items()}
        numbers = {
            "limit_packets": _LIMIT,
            "memory_limit_bytes": _MEMORY_LIMIT,
            "target_us": _TARGET,
            "update_us": _TUPDATE,
            "step_us": _STEP_US,
            "step_packets": _STEP_PACKETS,
            "step_least_packets": _STEP_LEAST,
            "coupling": _COUPLING,
            "classic_percent": _C_PROTECTION,
        }
        told: dict[str, int | str] = {name: found[number] for name, number in numbers.items() if number in found}
        gains = {"alpha": _ALPHA, "beta": _BETA}
        told |= {name: found[number] + 1 for name, number in gains.items() if number in found}
        masks = {mask: word for word, mask in _MASKS.items()}
        told["low_latency"] = masks.get(found.get(_ECN_MASK, 0), "none")
        told["overload"] = "drop" if found.get(_DROP_OVERLOAD) else "fill"
        told["decide"] = "enqueue" if found.get(_DROP_EARLY) else "dequeue"
        return told

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:
        """``classic``, ``low_latency``: packets that arrived at each queue. ``step_marks``: marks by the step; a packet
        that the controller has marked is counted again."""
        if len(statistics) < _STATISTICS.size:
            return {}
        told = _STATISTICS.unpack_from(statistics)
        return {"classic": told[3], "low_latency": told[4], "step_marks": told[7]}
