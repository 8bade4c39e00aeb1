# SPDX-License-Identifier: Apache-2.0
"""fq: fair queueing with pacing, of a sender's interface."""

from __future__ import annotations

from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.message import u32

_PLIMIT, _FLOW_PLIMIT = 1, 2


@planned
class Fq(Discipline):
    """``flow_limit_packets`` is the limit of one flow."""

    kind: ClassVar[str] = "fq"

    limit_packets: int
    flow_limit_packets: int

    def encode(self) -> bytes:
        return u32(_PLIMIT, self.limit_packets) + u32(_FLOW_PLIMIT, self.flow_limit_packets)

    def words(self) -> Words:
        return ["limit", self.limit_packets, "flow_limit", self.flow_limit_packets]
