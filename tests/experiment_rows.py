# SPDX-License-Identifier: Apache-2.0
"""Rows of events and of metrics for the runs of the factory (experiment_factory.py), from what its model did."""

from __future__ import annotations

from typing import Any

from howdah.plan.plan import Plan
from tests.fluid_model import STEP_S, Trace


def told_rows(plan: Plan, traces: list[Trace]) -> list[dict[str, Any]]:
    """What a module like HyStart++ would tell of each flow that left slow start: a phase, a return, and the exit."""
    rows = []
    for flow, trace in zip(plan.flows, traces, strict=True):
        if trace.exit is None:
            continue
        step, cwnd, cause = trace.exit
        story = (("phase", "delay", 0.12), ("resume", "delay", 0.06), ("exit", cause, 0.0))
        for name, why, before_s in story:
            numbers = {"quantity": 3, "threshold": 0} if why == "loss" else {"quantity": 112_500, "threshold": 108_000}
            rows.append(
                {
                    "flow": flow.id,
                    "time_ns": round((step * STEP_S - before_s) * 1e9),
                    "event": name,
                    "reason": why,
                    "cwnd_packets": int(cwnd) if name == "exit" else int(cwnd) // 2,
                    "ssthresh_packets": int(cwnd) // 2 if name == "exit" else None,
                    **numbers,
                    "round": 5,
                    "min_rtt_us": plan.path.rtt_us,
                }
            )
    return rows


def metric_rows(run: str, plan: Plan, traces: list[Trace]) -> list[dict[str, Any]]:
    common = {
        "run": run,
        "engine": plan.engine,
        "kernel": plan.kernel,
        "algorithm": plan.algorithm,
        "receiver": "linux",
        "repetition": plan.repetition,
        "axes": plan.axes,
    }
    rows: list[dict[str, Any]] = []

    def add(flow: int | None, metric: str, value: Any, unit: str, why: str | None = None) -> None:
        rows.append(
            {**common, "flow": flow, "metric": metric, "value": value, "unit": unit} | ({"why": why} if why else {})
        )

    for flow, trace in zip(plan.flows, traces, strict=True):
        if trace.exit is None:
            for metric, unit in (("exit_time_s", "s"), ("exit_cwnd_packets", "packets"), ("exit_cause", "")):
                add(flow.id, metric, None, unit, "no exit seen")
        else:
            step, cwnd, cause = trace.exit
            add(flow.id, "exit_time_s", step * STEP_S - flow.start_us / 1e6, "s")
            add(flow.id, "exit_cwnd_packets", int(cwnd), "packets")
            add(flow.id, "exit_cwnd_bdp", cwnd / plan.path.bdp_packets, "ratio")
            add(flow.id, "exit_cause", cause, "")
        add(flow.id, "retransmitted_packets", int(trace.lost[-1]), "packets")
        add(flow.id, "overshoot_packets", max(0, int(max(trace.cwnd) - 2 * plan.path.bdp_packets)), "packets")
        add(flow.id, "time_to_90_percent_s", 1.2 + 0.05 * plan.repetition, "s")
        add(flow.id, "blackout_s", 0.0, "s")
    add(None, "utilisation", 0.93 - 0.01 * plan.repetition, "ratio")
    add(None, "queue_peak_bytes", plan.path.buffer_bytes - 1000 * plan.repetition, "bytes")
    add(None, "jain_index", 0.97, "ratio")
    return rows
