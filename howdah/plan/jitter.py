# SPDX-License-Identifier: Apache-2.0
"""Delays that each packet draws for itself while flows run, so that packets overtake. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from howdah.codec import planned
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.event import Event
from howdah.plan.placed import Qdisc

DISTRIBUTION_SCALE = 8192  # NETEM_DIST_SCALE of include/uapi/linux/pkt_sched.h: of a deviation
LARGEST_DRAW = 32767  # of a table, whose numbers have 16 bits


@planned
class Jitter:
    """It is measured before and after the flows by ``packets`` small packets, one each ``spacing_us``, on each way that
    has it. A packet waits for ``mean_us`` on average and ``largest_us`` at most, beside the path's delay."""

    packets: int
    spacing_us: int
    mean_us: int
    deviation_us: int
    largest_us: int
    forward: bool
    reverse: bool

    def way(self, *, ahead: bool) -> bool:
        """Whether packets draw on the way to receivers, or to senders."""
        return self.forward if ahead else self.reverse

    @property
    def measuring_us(self) -> int:
        """What a measurement of the path takes longer."""
        return self.packets * self.spacing_us + 2 * self.largest_us + 200_000


def jitter_events(timeline: Sequence[Event], at_us: int) -> Iterator[tuple[Qdisc, Netem]]:
    """Delay lines that have it as they are from that time on, when it begins or ends."""
    changes = [(event.at_us, event.change) for event in timeline if isinstance(event.change, Qdisc)]
    netems = [(when_us, line, line.discipline) for when_us, line in changes if isinstance(line.discipline, Netem)]
    lines = {line.at for _, line, netem in netems if netem.distribution}
    for when_us, line, netem in netems:
        if when_us == at_us and line.at in lines:
            yield line, netem


def drawn_us(netem: Netem) -> list[float]:
    """What its packets draw, each as often as any other; sorted."""
    table = netem.distribution or []
    return sorted(netem.jitter_us * each / DISTRIBUTION_SCALE for each in table)
