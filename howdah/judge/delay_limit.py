# SPDX-License-Identifier: Apache-2.0
"""Delay lines that have too little room on purpose: they hold no more than that, and drop only what finds no room."""

from __future__ import annotations

import numpy as np

from howdah.judge.check import DURING, Check
from howdah.judge.loss_readings import delay_lines
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory

_MANY = 20  # drops, after which one of the readings that saw some drops finds the line full, or one packet short
_READ = ("sent_packets", "drops_packets", "backlog_packets")


def delay_limit_checks(directory: RunDirectory, plan: Plan) -> list[Check]:
    """One check of each delay line towards a receiver; nothing where the plan gives them no limit."""
    limit = plan.path.delay_limit_packets
    if limit is None:
        return []
    table = store.read(directory, "qdisc")
    forward = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends)}
    lines = [(":".join(place), samples) for place, samples in delay_lines(table, plan) if place in forward]
    return [_check(place, samples, limit, plan.duration_us * 1000) for place, samples in lines]


def _check(place: str, samples: Samples, limit: int, end_ns: int) -> Check:
    """Between two readings in which it dropped, a line held at most what it held before and what came meanwhile: that
    must reach the limit."""
    name = f"delay limit {place}"
    inside = np.flatnonzero((samples.time_ns >= 0) & (samples.time_ns < end_ns))
    if inside.size < 2 or not all(samples.has(column) for column in _READ):
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="packets")
    held, sent, drops = (samples[column][inside] for column in ("backlog_packets", "sent_packets", "drops_packets"))
    dropped, peak = np.diff(drops), int(held.max())
    most = held[:-1] + np.diff(held) + np.diff(sent)
    total = int(dropped.sum())
    message = f"the delay line at {place} has room for {limit} packets, held at most {peak} and dropped {total}"
    early = np.flatnonzero((dropped > 0) & (most < limit))
    wrong = ""
    if peak > limit:
        wrong = "its limit is not in force"
    elif early.size:
        wrong = f"it dropped while it held at most {int(most[early[0]])}"
    elif total >= _MANY and peak < limit - 1:
        wrong = "its limit is smaller"
    message += f"; {wrong}" if wrong else ""
    return Check(name, DURING, not wrong, message, limit, peak, 0, "packets")
