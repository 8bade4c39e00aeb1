# SPDX-License-Identifier: Apache-2.0
"""pfifo_fast: the kernel's default, for a sender's interface."""

from __future__ import annotations

from typing import ClassVar, Self

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HostQueue, Parameters, Words, asked


@planned
class PfifoFastParameters(Parameters):
    """pfifo_fast (`net/sched/sch_generic.c`): three queues by priority. TCP's packets without a DSCP share one."""

    limit: int = asked(1000, "packets of one priority: the interface's `txqueuelen`", least=1, most=100_000)


@planned
class PfifoFast(HostQueue):
    """pfifo_fast; it takes ``limit_packets`` from the interface's ``txqueuelen`` when it is made."""

    kind: ClassVar[str] = "pfifo_fast"
    name: ClassVar[str] = "pfifo_fast"
    asked_of_host: ClassVar[type[Parameters]] = PfifoFastParameters
    priorities: ClassVar[int] = 3

    limit_packets: int

    @classmethod
    def of_host(cls, asked: PfifoFastParameters, roomy_packets: int) -> Self:  # noqa: ARG003 - as all others have it
        return cls(asked.limit)

    @property
    def room_packets(self) -> tuple[int, int]:
        return self.limit_packets, self.limit_packets

    def encode(self) -> bytes:
        return b""

    def words(self) -> Words:
        return []
