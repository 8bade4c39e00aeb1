# SPDX-License-Identifier: Apache-2.0
"""When a link could carry something, as the plan says: how many opportunities it had until an instant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from howdah.linux.netlink.discipline.gaps import unpacked
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.plan.plan import Plan

Int64 = npt.NDArray[np.int64]
Times = npt.NDArray[np.int64] | npt.NDArray[np.float64] | int


@dataclass(frozen=True)
class LinkOpportunities:
    """Each is of ``size_bytes`` as the link counts packets. ``once_ns`` are those of the first round, which lasts
    ``round_ns``; the first round alone may lack those behind the end of the flows, ``end_ns``.

    Before the epoch and from ``end_ns`` on the link has the constant ``rate_bits_per_second``, frames counted.
    """

    node: str
    once_ns: Int64
    round_ns: int
    size_bytes: int
    overhead_bytes_less: int
    rate_bits_per_second: int
    end_ns: int

    def until(self, time_ns: Times) -> Int64:
        """How many there were since the epoch until instants, those at them included; same shape."""
        rounds, within = np.divmod(np.asarray(time_ns), self.round_ns)
        # Of another type they would have all instants copied, ten million in a trace of 220 Mbit/s.
        inside = np.searchsorted(self.once_ns, within.astype(np.int64), side="right")
        return np.asarray(np.where(rounds < 0, 0, rounds * self.once_ns.size + inside), dtype=np.int64)


def opportunities(plan: Plan, *, reverse: bool = False) -> LinkOpportunities | None:
    """Of the link of one way; None where it follows no trace. Raises ValueError for a plan that is damaged."""
    facts = plan.path.reverse_link if reverse else plan.path.link
    if facts is None:
        return None
    link = next((item for item in plan.operations if _is_link(plan, item.op, item.arguments, reverse)), None)
    if link is None:
        raise ValueError("the plan has no operation that makes the link of its path")
    options = TraceLink(**link.arguments["options"])
    return LinkOpportunities(
        node=str(link.arguments["node"]),
        once_ns=_once_ns(options.gaps),
        round_ns=options.round_us * 1000,
        size_bytes=options.opportunity_bytes,
        overhead_bytes_less=options.overhead_bytes_less,
        rate_bits_per_second=options.rate_bits_per_second,
        end_ns=plan.duration_us * 1000,
    )


def _is_link(plan: Plan, op: str, arguments: dict[str, object], reverse: bool) -> bool:
    """The forward one is at the bottleneck."""
    if op != "qdisc" or arguments["kind"] != TraceLink.kind:
        return False
    calibration = plan.calibration
    place = (calibration.bottleneck_node, calibration.bottleneck_interface)
    return ((arguments["node"], arguments["interface"]) == place) != reverse


@lru_cache(maxsize=4)
def _once_ns(gaps: str) -> Int64:
    return np.cumsum(np.array(unpacked(gaps), dtype=np.int64)) * 1000
