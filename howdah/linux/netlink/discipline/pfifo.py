# SPDX-License-Identifier: Apache-2.0
"""pfifo: a queue of so many packets that drops at its tail."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Words


@planned
class Pfifo(HopQueue):
    """``limit_packets`` counts packets of any size. The form of a fifo that counts packets."""

    kind: ClassVar[str] = "pfifo"
    name: ClassVar[str] = "fifo"
    named_by: ClassVar[str] = "bfifo"
    fills: ClassVar[bool] = True
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_packets"}

    limit_packets: int

    def encode(self) -> bytes:
        return struct.pack("=I", self.limit_packets)

    def words(self) -> Words:
        return ["limit", self.limit_packets]
