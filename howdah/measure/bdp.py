# SPDX-License-Identifier: Apache-2.0
"""The bandwidth-delay product that a window is compared with: that of the moment, where the path's rate changes."""

from __future__ import annotations

import numpy as np

from howdah.measure.capacity import FairCapacity
from howdah.measure.trace import SECOND_NS, Integers, Reals
from howdah.plan.path import Path
from howdah.plan.plan import Flow


def bdp_packets(capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers | int) -> Reals:
    """BDP of a flow at instants, in full frames, same shape as ``time_ns``.

    rate · RTT of the flow / frame. Where the path's rate changes it is what the link could carry in the flow's RTT
    (without queues) before the instant, at the rates that it had in it: 0 where it carried nothing.
    """
    if not path.rate_changes:
        return np.full(np.shape(time_ns), flow.bdp_packets(path))
    at = np.asarray(time_ns, dtype=np.int64)
    return capacity.carried_bytes(at - flow.rtt_us * 1000, at) / path.mss_bytes


def held_packets(capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers) -> Reals:
    """BDP + buffer at instants, in full frames, same shape as ``time_ns``."""
    if not path.rate_changes:
        return np.full(np.shape(time_ns), (flow.bdp_bytes(path) + path.buffer_bytes) / path.frame_bytes)
    return bdp_packets(capacity, flow, path, time_ns) + path.buffer_bytes / path.frame_bytes


def share_of_bdp(
    packets: float | None, capacity: FairCapacity, flow: Flow, path: Path, time_ns: Integers | int | None
) -> float | None:
    """A window as a share of the BDP at an instant; None without a window, or where the link carried nothing."""
    if packets is None or time_ns is None:
        return None
    bdp = float(bdp_packets(capacity, flow, path, time_ns))
    return packets / bdp if bdp else None


def buffer_drain_ns(capacity: FairCapacity, path: Path, until_ns: int) -> int:
    """How long the link took to send a full buffer, at the rates that it had before an instant."""
    if not path.rate_changes:
        return path.buffer_bytes * 8 * SECOND_NS // path.rate_bits_per_second
    goodput_bytes = path.buffer_bytes * path.mss_bytes / path.frame_bytes
    longest = path.buffer_bytes * 8 * SECOND_NS // max(min([path.rate_bits_per_second, *_rates(path)]), 1)
    if path.link is not None:
        longest += max(until_ns, 0)  # it may carry nothing at all from the epoch on, and has its rate before
    shortest = 0
    while longest - shortest > 1:
        middle = (shortest + longest) // 2
        enough = capacity.whole_bytes(until_ns - middle, until_ns) >= goodput_bytes
        shortest, longest = (shortest, middle) if enough else (middle, longest)
    return longest


def _rates(path: Path) -> list[int]:
    return [rate for _, rate in path.rate_steps]
