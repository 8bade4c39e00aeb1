# SPDX-License-Identifier: Apache-2.0
"""pfifo: a tail-drop queue with a limit in packets."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, HostQueue, Parameters, Words


@planned
class RoomyParameters(Parameters):
    """First in, first out, with room for all packets that flows queue, so that it never drops."""


@planned
class Pfifo(HopQueue, HostQueue):
    """A FIFO in packets; ``limit_packets`` counts packets of any size."""

    kind: ClassVar[str] = "pfifo"
    name: ClassVar[str] = "fifo"
    named_by: ClassVar[str] = "bfifo"
    asked_of_host: ClassVar[type[Parameters]] = RoomyParameters
    fills: ClassVar[bool] = True
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_packets"}

    limit_packets: int

    @classmethod
    def of_host(cls, asked: Any, roomy_packets: int) -> Self:  # noqa: ARG003 - it has no parameters
        return cls(roomy_packets)

    @property
    def room_packets(self) -> tuple[int, int]:
        return self.limit_packets, self.limit_packets

    def encode(self) -> bytes:
        return struct.pack("=I", self.limit_packets)

    def words(self) -> Words:
        return ["limit", self.limit_packets]
