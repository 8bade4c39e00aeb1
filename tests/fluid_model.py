# SPDX-License-Identifier: Apache-2.0
"""A small fluid model of TCP flows at a drop-tail bottleneck, for traces that look and add up like real ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from howdah.plan.plan import Plan

STEP_S = 0.002


@dataclass
class Trace:
    """State of one flow at every step; ``exit`` is None or (step, cwnd, cause)."""

    cwnd: list[float] = field(default_factory=list)
    ssthresh: list[float] = field(default_factory=list)
    rtt: list[float] = field(default_factory=list)
    acked: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    exit: tuple[int, float, str] | None = None


def simulate(plan: Plan) -> tuple[list[Trace], list[float], list[float]]:
    """Traces of the flows, the queue in packets and the drops so far, at every step."""
    path = plan.path
    rate = path.rate_bits_per_second / 8 / path.frame_bytes
    base = path.rtt_us / 1e6
    limit = path.buffer_bytes / path.frame_bytes
    steps = int(plan.duration_us / 1e6 / STEP_S)
    noise = 1 + 0.01 * plan.repetition
    traces = [Trace() for _ in plan.flows]
    cwnd = [10.0] * len(traces)
    ssthresh = [np.inf] * len(traces)
    acked = [0.0] * len(traces)
    lost = [0.0] * len(traces)
    hold = [-1] * len(traces)
    queues, drops, dropped = [], [], 0.0
    for step in range(steps):
        now = step * STEP_S
        active = [index for index, flow in enumerate(plan.flows) if now * 1e6 >= flow.start_us]
        flight = sum(cwnd[index] for index in active)
        queue = min(max(0.0, flight - rate * base), limit)
        rtt = base + queue / rate
        overflow = flight - rate * base > limit
        for index, trace in enumerate(traces):
            if index in active:
                gained = cwnd[index] / max(rtt, flight / rate) * STEP_S
                acked[index] += gained
                early = plan.algorithm in ("cubic", "bbr") and cwnd[index] >= 0.85 * noise * path.bdp_packets / len(
                    active
                )
                if overflow and step >= hold[index]:
                    over = max(1.0, (flight - rate * base - limit) * cwnd[index] / flight)
                    lost[index] += over
                    dropped += over
                    if np.isinf(ssthresh[index]):
                        trace.exit = (step, cwnd[index], "loss")
                    ssthresh[index] = max(2.0, cwnd[index] * 0.5 if plan.algorithm == "reno" else cwnd[index] * 0.7)
                    cwnd[index] = ssthresh[index]
                    hold[index] = step + int(2 * rtt / STEP_S)
                elif np.isinf(ssthresh[index]) and early:
                    trace.exit = (step, cwnd[index], "ack-train" if plan.algorithm == "cubic" else "bbr-drain")
                    ssthresh[index] = cwnd[index]
                elif np.isinf(ssthresh[index]):
                    cwnd[index] += gained
                else:
                    cwnd[index] += gained / cwnd[index] * (1.0 if plan.algorithm == "reno" else 6.0)
            trace.cwnd.append(cwnd[index])
            trace.ssthresh.append(ssthresh[index])
            trace.rtt.append(rtt)
            trace.acked.append(acked[index])
            trace.lost.append(lost[index])
        queues.append(queue)
        drops.append(dropped)
    return traces, queues, drops
