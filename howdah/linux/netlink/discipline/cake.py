# SPDX-License-Identifier: Apache-2.0
"""cake: fair queueing with a descendant of CoDel; its own rate limit is off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Self

from howdah.codec import OCCASIONAL, planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words, asked, duration
from howdah.linux.netlink.discipline.fair import LARGEST_MEMORY_BYTES
from howdah.linux.netlink.message import u32, u64

_BASE_RATE64, _DIFFSERV_MODE, _FLOW_MODE, _RTT, _TARGET, _MEMORY, _ACK_FILTER = 2, 3, 5, 7, 8, 10, 16
_TIN_STATS, _FIRST_TIN, _ECN_MARKED_PACKETS = 10, 1, 8
_BESTEFFORT = 3
_FLOW_MODES = {"flowblind": 0, "hosts": 3, "flows": 4, "dual-srchost": 5, "dual-dsthost": 6, "triple-isolate": 7}
_FILTERS = {"none": None, "filter": "enabled", "aggressive": "aggressive"}
_FILTER_MODES = {"enabled": 1, "aggressive": 2}
# CAKE counts struct sk_buff and its data area, at least 2.2 kB for a full frame of 1514 bytes. This factor (11 / 5) on
# the buffer's bytes makes it hold about as many full frames as the profile means.
_MEMORY_OF_BYTES = (11, 5)
_TARGETS = 20  # target = RTT / 20, like tc's


@planned
class CakeParameters(Parameters):
    """CAKE (Høiland-Jørgensen and others 2018): fair queueing with a descendant of CoDel, after this path's own rate
    limit (CAKE's shaper is off). Its buffer counts kernel memory, so it gets 2.2 times the buffer's bytes.
    """

    rtt: int = asked("100 ms", "RTT to which it is tuned; its target is a twentieth of that", "duration")
    ack_filter: str = asked(
        "none",
        "drops queued ACKs that a later ACK of their flow makes redundant",
        choices=("none", "filter", "aggressive"),
    )
    isolation: str = asked("triple-isolate", "which flows or hosts share fairly", choices=tuple(_FLOW_MODES))


@planned
class Cake(HopQueue):
    """CAKE with one tin and without a rate limit of its own; it always marks ECN-capable packets."""

    kind: ClassVar[str] = "cake"
    name: ClassVar[str] = "cake"
    asked: ClassVar[type[Parameters]] = CakeParameters
    drops_held: ClassVar[bool] = True
    marks_always: ClassVar[bool] = True
    marks_in: ClassVar[tuple[int, ...]] = (_TIN_STATS, _FIRST_TIN, _ECN_MARKED_PACKETS)
    marks_at: ClassVar[int | None] = 0
    told: ClassVar[Mapping[str, str]] = {"rtt": "rtt_us", "memlimit": "memory_limit_bytes", "ack-filter": "ack_filter"}

    rtt_us: int
    target_us: int
    isolation: str
    memory_limit_bytes: int
    ack_filter: str | None = field(default=None, metadata=OCCASIONAL)  # as tc shows it

    @classmethod
    def settled(cls, asked: CakeParameters, room: Room) -> Self:
        memory = min(room.buffer_bytes * _MEMORY_OF_BYTES[0] // _MEMORY_OF_BYTES[1], LARGEST_MEMORY_BYTES)
        return cls(asked.rtt, max(asked.rtt // _TARGETS, 1), asked.isolation, memory, _FILTERS[asked.ack_filter])

    def train_packets(self, room: Room) -> int | None:
        """The first drop is the second packet that waited longer than the target (cobalt_should_drop: the interval is
        scaled by a root that is zero until then)."""
        return max(room.time_bytes(self.target_us) * 9 // 10 // room.frame_bytes + 1, 2)

    def encode(self) -> bytes:
        shape = u64(_BASE_RATE64, 0) + u32(_DIFFSERV_MODE, _BESTEFFORT) + u32(_FLOW_MODE, _FLOW_MODES[self.isolation])
        times = u32(_RTT, self.rtt_us) + u32(_TARGET, self.target_us)
        filtered = u32(_ACK_FILTER, _FILTER_MODES[self.ack_filter]) if self.ack_filter else b""
        return shape + times + u32(_MEMORY, self.memory_limit_bytes) + filtered

    def words(self) -> Words:
        rest: Words = ["rtt", duration(self.rtt_us), "memlimit", f"{self.memory_limit_bytes}b"]
        if self.ack_filter:
            rest.append("ack-filter" if self.ack_filter == "enabled" else "ack-filter-aggressive")
        return ["unlimited", "besteffort", self.isolation, *rest]
