# SPDX-License-Identifier: Apache-2.0
"""What a link could carry according to the plan, and what a path delivered of a flow: bytes that had arrived at the
receiver at each instant.

The receiving kernel counts arriving segments. Between two readings of that count, or without any, an ACK proves that
what it confirms had arrived; and because no path exceeds its rate, part of it had arrived earlier. So the bytes of a
long hole do not all arrive with the segment that fills it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from howdah.linux.netlink.discipline.gaps import unpacked
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.plan.plan import Flow, Plan

Times = npt.NDArray[np.int64] | npt.NDArray[np.float64] | int


@dataclass(frozen=True)
class LinkOpportunities:
    """A link's transmission opportunities, each of ``size_bytes`` as the link counts packets. ``once_ns`` are those of
    the first round, which lasts ``round_ns``; those after the end of the flows, ``end_ns``, may be missing from it.

    Before the epoch and from ``end_ns`` on, the link has the constant ``rate_bits_per_second``, in whole frames.
    """

    node: str
    once_ns: Int64
    round_ns: int
    size_bytes: int
    overhead_bytes_less: int
    rate_bits_per_second: int
    end_ns: int

    def until(self, time_ns: Times) -> Int64:
        """The number of opportunities from the epoch up to and including these instants; same shape."""
        rounds, within = np.divmod(np.asarray(time_ns), self.round_ns)
        # With another type numpy would copy all instants, ten million in a trace of 220 Mbit/s.
        inside = np.searchsorted(self.once_ns, within.astype(np.int64), side="right")
        return np.asarray(np.where(rounds < 0, 0, rounds * self.once_ns.size + inside), dtype=np.int64)


def opportunities(plan: Plan, *, reverse: bool = False) -> LinkOpportunities | None:
    """The opportunities of the link in one direction; None if it follows no trace. Raise ValueError for a damaged
    plan."""
    facts = plan.path.reverse_link if reverse else plan.path.link
    if facts is None:
        return None
    bottleneck = plan.calibration.bottleneck[:2]
    links = ((queue.node, queue.discipline) for queue in plan.queues if (queue.at == bottleneck) != reverse)
    node, link = next(((node, link) for node, link in links if isinstance(link, TraceLink)), ("", None))
    if link is None:
        raise ValueError("the plan has no operation that makes the link of its path")
    return LinkOpportunities(
        node=node,
        once_ns=_once_ns(link.gaps),
        round_ns=link.round_us * 1000,
        size_bytes=link.opportunity_bytes,
        overhead_bytes_less=link.overhead_bytes_less,
        rate_bits_per_second=link.rate_bits_per_second,
        end_ns=plan.duration_us * 1000,
    )


@lru_cache(maxsize=4)
def _once_ns(gaps: str) -> Int64:
    return np.cumsum(np.array(unpacked(gaps), dtype=np.int64)) * 1000


Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Proof:
    """Proof that ``value`` bytes had arrived at ``time_ns``. ``own``: by the receiver's count, not by an ACK."""

    time_ns: Int64
    value: Float64
    own: bool = False

    def at(self, time_ms: Int64) -> Float64:
        """The bytes proved at each time. The receiver's readings are interpolated, and before the first one bytes
        arrive during as much time as lies between the first two; ACKs prove what the last one did."""
        wanted, time, value = time_ms * 1_000_000, self.time_ns, self.value
        if self.own and len(time) > 1:
            time = np.concatenate([[2 * time[0] - time[1]], time])
            return np.asarray(np.interp(wanted, time, np.concatenate([[0.0], value]), left=0.0), dtype=np.float64)
        last = np.searchsorted(time, wanted, side="right") - 1
        return np.where(last < 0, 0.0, value[np.maximum(last, 0)])


def arrived_bytes(segments: Float64, in_order: Float64, mss_bytes: int) -> Float64:
    """The bytes that had arrived at each reading of a receiver, each byte counted once.

    ``segments`` counts segments with data, ``in_order`` bytes that were passed on. Segments waiting behind a hole are
    only in the first, as are duplicates: what never enters the second arrived twice, or was not a full segment.
    """
    ahead = segments * mss_bytes - in_order
    never = np.minimum.accumulate(ahead[::-1])[::-1]
    return np.asarray(in_order + ahead - never, dtype=np.float64)


def carried_bytes(plan: Plan, flow: Flow, time_ms: Int64) -> Float64:
    """Payload in bytes that the path can carry to a flow's receiver from the epoch until each instant, in full
    frames."""
    path = plan.path
    share = path.mss_bytes / path.frame_bytes / 8000  # bytes in a millisecond
    link = opportunities(plan, reverse=flow.direction != "forward")
    if link is not None:
        after_ms = np.maximum(time_ms - link.end_ns / 1e6, 0)
        come = link.until(np.minimum(time_ms * 1_000_000, link.end_ns))
        payload_bytes = link.size_bytes * path.mss_bytes / (path.frame_bytes - link.overhead_bytes_less)
        return np.asarray(come * payload_bytes + after_ms * link.rate_bits_per_second * share, dtype=np.float64)
    rate, steps = path.rate_bits_per_second, path.rate_steps
    if flow.direction != "forward":
        rate = path.reverse_rate_bits_per_second or path.highest_rate_bits_per_second
        steps = path.reverse_rate_steps
    at = np.array([0.0, *(step / 1000 for step, _ in steps)])
    rates = np.array([rate, *(each for _, each in steps)]) * share
    total = np.concatenate([[0.0], np.cumsum(np.diff(at) * rates[:-1])])
    step = np.maximum(np.searchsorted(at, time_ms, side="right") - 1, 0)
    return np.asarray(total[step] + (time_ms - at[step]) * rates[step], dtype=np.float64)


def delivered_bytes(proved: Float64, carried: Float64) -> Float64:
    """The least number of bytes that had arrived at each instant, if ``proved`` had and the path carries at most
    ``carried``: it grows by no more than that between any two instants."""
    return np.asarray(carried + np.maximum.accumulate((proved - carried)[::-1])[::-1], dtype=np.float64)
