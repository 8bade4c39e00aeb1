# SPDX-License-Identifier: Apache-2.0
"""bfifo: a tail-drop queue with a limit in bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words, asked
from howdah.linux.netlink.discipline.pfifo import Pfifo


@planned
class FifoParameters(Parameters):
    """First in, first out: drops packets that do not fit into the buffer. It counts bytes exactly (the kernel's bfifo),
    or packets of any size (its pfifo): as many as full frames fit.
    """

    counts: str | None = asked(
        None,
        "unit of the limit; by default bytes, and in the reverse direction the unit of reverse_buffer",
        choices=("bytes", "packets"),
    )


@planned
class Bfifo(HopQueue):
    """A FIFO in bytes; ``limit_bytes`` counts link-layer frames."""

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
