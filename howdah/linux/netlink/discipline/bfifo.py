# SPDX-License-Identifier: Apache-2.0
"""bfifo: a queue of so many bytes that drops at its tail."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words, asked
from howdah.linux.netlink.discipline.pfifo import Pfifo


@planned
class FifoParameters(Parameters):
    """First in, first out: drops what does not fit into the buffer. It counts bytes (the kernel's bfifo), to the byte,
    or packets of any size (its pfifo): as many as full frames fit.
    """

    counts: str | None = asked(
        None,
        "what the limit counts; by default bytes, and on the way back what reverse_buffer is given in",
        choices=("bytes", "packets"),
    )


@planned
class Bfifo(HopQueue):
    """``limit_bytes`` counts link-layer frames."""

    kind: ClassVar[str] = "bfifo"
    name: ClassVar[str] = "fifo"
    asked: ClassVar[type[Parameters]] = FifoParameters
    fills: ClassVar[bool] = True
    unmarked: ClassVar[str] = "a fifo marks nothing"
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_bytes"}

    limit_bytes: int

    @classmethod
    def settled(cls, asked: FifoParameters, room: Room) -> HopQueue:
        if asked.counts == "packets":
            return Pfifo(limit_packets=max(room.buffer_bytes // room.frame_bytes, 1))
        return cls(limit_bytes=room.buffer_bytes)

    def encode(self) -> bytes:
        return struct.pack("=I", self.limit_bytes)

    def words(self) -> Words:
        return ["limit", f"{self.limit_bytes}b"]
