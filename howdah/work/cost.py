# SPDX-License-Identifier: Apache-2.0
"""Estimate from its plan how long a run takes, to start the longest first and to show the time left."""

from __future__ import annotations

from howdah.plan.plan import Flow, Plan

# Seconds on a core of 2024, fitted to the times of the 59 atlas profiles (least squares of relative errors). Only their
# ratios matter: finished runs show how long such a second takes on this machine.
FIXED_S = 1.0  # per run: boot, calibrate, analyse
BIT_S = 3.4e-10  # per bit carried over the bottleneck
PROFILED_BIT_S = 5e-10  # per bit in addition under perf, which interrupts the kernel's process and decodes samples
USER_BYTE_S = 6e-8  # per byte through a program's read() or write()
FLOW_S = 0.01  # per flow: open, close, analyse
CHANGE_S = 0.001  # per change of a queueing discipline, and per start or stop of a flow
READING_S = 3e-5  # per reading of a node's queueing disciplines and per node: the cost is quadratic in nodes


def carried_bits(plan: Plan) -> float:
    """Return the most bits that can cross the bottleneck: the flows' data, or the rate while flows are active."""
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
    """Return the expected seconds of one core, up to a factor that is the same for all runs on a machine."""
    bits, nodes = carried_bits(plan), len(plan.hosts)
    return (
        FIXED_S
        + BIT_S * bits
        + (PROFILED_BIT_S * bits if plan.collect.cpu else 0.0)
        + USER_BYTE_S * min(_user_bytes(plan), bits / 8)
        + FLOW_S * len(plan.flows)
        + CHANGE_S * len(plan.timeline)
        + READING_S * nodes * nodes * _readings(plan)
    )


def _user_bytes(plan: Plan) -> float:
    """Bytes that a program reads or writes, instead of the kernel's own source and sink."""
    rate = plan.path.highest_rate_bits_per_second
    return sum(_offered_bits(flow, rate) / 8 for flow in plan.flows if not flow.traffic == flow.sink == "kernel")


def _readings(plan: Plan) -> float:
    """How often the queueing disciplines of a node are read; other collectors are rarer, or read single hosts."""
    return plan.duration_us / plan.collect.qdisc_us if plan.collect.qdisc_us is not None else 0.0
