# SPDX-License-Identifier: Apache-2.0
"""bfifo: a queue of so many bytes that drops at its tail."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, Room, Words


@planned
class FifoParameters(Parameters):
    """First in, first out: drops what does not fit into the buffer, to the byte."""


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
    def settled(cls, asked: Parameters, room: Room) -> Self:  # noqa: ARG003 - as all others have it
        return cls(limit_bytes=room.buffer_bytes)

    def encode(self) -> bytes:
        return struct.pack("=I", self.limit_bytes)

    def words(self) -> Words:
        return ["limit", f"{self.limit_bytes}b"]
