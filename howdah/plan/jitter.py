# SPDX-License-Identifier: Apache-2.0
"""Delays that are drawn for each packet while flows run, so that packets overtake. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from howdah.codec import planned
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.event import Event
from howdah.plan.placed import Qdisc

DISTRIBUTION_SCALE = 8192  # NETEM_DIST_SCALE of include/uapi/linux/pkt_sched.h: one standard deviation
LARGEST_DRAW = 32767  # largest entry of a table, which has 16 bits


@planned
class Jitter:
    """The delay that each packet draws, in addition to the path's. It is measured before and after the flows with
    ``packets`` small packets, one each ``spacing_us``, in each direction that has it.
    """

    packets: int
    spacing_us: int
    mean_us: int
    deviation_us: int
    largest_us: int
    forward: bool
    reverse: bool

    def way(self, *, ahead: bool) -> bool:
        """Whether packets towards receivers (``ahead``) or towards senders have a drawn delay."""
        return self.forward if ahead else self.reverse

    @property
    def measuring_us(self) -> int:
        """How much longer a measurement of the path takes because of it."""
        return self.packets * self.spacing_us + 2 * self.largest_us + 200_000


def jitter_events(timeline: Sequence[Event], at_us: int) -> Iterator[tuple[Qdisc, Netem]]:
    """Yield the delay lines with drawn delays, and their new settings, when the draws begin or end at ``at_us``."""
    changes = [(event.at_us, event.change) for event in timeline if isinstance(event.change, Qdisc)]
    netems = [(when_us, line, line.discipline) for when_us, line in changes if isinstance(line.discipline, Netem)]
    lines = {line.at for _, line, netem in netems if netem.distribution}
    for when_us, line, netem in netems:
        if when_us == at_us and line.at in lines:
            yield line, netem


def drawn_us(netem: Netem) -> list[float]:
    """Return the delays that packets draw, all equally likely; sorted."""
    table = netem.distribution or []
    return sorted(netem.jitter_us * each / DISTRIBUTION_SCALE for each in table)
