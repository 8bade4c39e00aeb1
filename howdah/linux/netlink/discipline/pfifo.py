# SPDX-License-Identifier: Apache-2.0
"""pfifo: a queue of so many packets that drops at its tail."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words


@planned
class Pfifo(Discipline):
    """``limit_packets`` counts packets of any size."""

    kind: ClassVar[str] = "pfifo"
    told: ClassVar[Mapping[str, str]] = {"limit": "limit_packets"}

    limit_packets: int

    def encode(self) -> bytes:
        return struct.pack("=I", self.limit_packets)

    def words(self) -> Words:
        return ["limit", self.limit_packets]
