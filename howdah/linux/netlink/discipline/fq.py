# SPDX-License-Identifier: Apache-2.0
"""fq: fair queueing with pacing, for a sender's interface."""

from __future__ import annotations

import struct
from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Attributes, HostQueue, Parameters, asked, sent

_STATISTICS = struct.Struct("=5Q")  # struct tc_fq_qd_stats up to flows_plimit


@planned
class FqParameters(Parameters):
    """fq (`net/sched/sch_fq.c`): a queue for each connection, paced at the rate that TCP sets."""

    limit: int = asked(10_000, "packets of all connections", least=1, most=1_000_000)
    flow_limit: int = asked(100, "packets of one connection", least=1, most=1_000_000)

    def wrong(self) -> tuple[str, str] | None:
        return ("flow_limit", "expected at most limit") if self.flow_limit > self.limit else None


@planned
class Fq(Attributes, HostQueue):
    """fq; ``flow_limit_packets`` is the limit of one flow."""

    kind: ClassVar[str] = "fq"
    name: ClassVar[str] = "fq"
    asked_of_host: ClassVar[type[Parameters]] = FqParameters

    limit_packets: int = sent(1, "limit")
    flow_limit_packets: int = sent(2, "flow_limit")

    @classmethod
    def of_host(cls, asked: FqParameters, roomy_packets: int) -> Self:  # noqa: ARG003 - as all others have it
        return cls(asked.limit, asked.flow_limit)

    @property
    def room_packets(self) -> tuple[int, int]:
        return min(self.flow_limit_packets, self.limit_packets), self.limit_packets

    @classmethod
    def limits(cls, options: bytes) -> dict[str, int]:
        return cls.read(options)

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:
        """``of_one_flow``: drops at the limit of one flow. ``throttled``: how often a flow had to wait for its pacing
        time."""
        if len(statistics) < _STATISTICS.size:
            return {}
        _gc, _priority, _retransmitted, throttled, of_one_flow = _STATISTICS.unpack_from(statistics)
        return {"of_one_flow": of_one_flow, "throttled": throttled}
