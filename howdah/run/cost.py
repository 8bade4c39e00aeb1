# SPDX-License-Identifier: Apache-2.0
"""How long a run is expected to take, from its plan: to begin with the longest, and to say how much time is left."""

from __future__ import annotations

from howdah.plan.plan import Flow, Plan

# A core of 2024 carries so much of a simulated path in a second, and boots, calibrates and analyses in the other.
# Only the ratio of the two matters: what runs take here is learnt from those that are done.
BITS_PER_CORE_SECOND = 2.2e9
FIXED_S = 0.7


def carried_bits(plan: Plan) -> float:
    """Bits that cross the bottleneck, at most: what flows have to send, or the path's rate while one of them does."""
    path = plan.path
    limit = {"forward": path.rate_bits_per_second, "reverse": path.reverse_rate_bits_per_second}
    highest = max([path.rate_bits_per_second, *(rate for _, rate in path.rate_steps)])
    total = 0.0
    for direction in ("forward", "reverse"):
        flows = [flow for flow in plan.flows if flow.direction == direction]
        if not flows:
            continue
        rate = highest if direction == "forward" else (limit["reverse"] or highest)
        begin = min(flow.start_us for flow in flows)
        total += min(rate * max(plan.duration_us - begin, 0) / 1e6, sum(_offered_bits(flow, rate) for flow in flows))
    return total


def _offered_bits(flow: Flow, rate: int) -> float:
    if flow.size_bytes is not None:
        return flow.size_bytes * 8.0
    if flow.datagram_bytes is not None and flow.datagram_interval_ns:
        active_us = sum(end - begin for begin, end in flow.bursts) if flow.bursts else flow.stop_us - flow.start_us
        return active_us * 1e3 / flow.datagram_interval_ns * flow.datagram_bytes * 8
    return rate * max(flow.stop_us - flow.start_us, 0) / 1e6


def expected_core_s(plan: Plan) -> float:
    """Seconds of one core; right to a factor that is the same for all runs on a machine."""
    return FIXED_S + carried_bits(plan) / BITS_PER_CORE_SECOND
