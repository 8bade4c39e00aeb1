# SPDX-License-Identifier: Apache-2.0
"""Delay lines that have too little room on purpose: they hold no more than that, and drop only what finds no room."""

from __future__ import annotations

from howdah.judge.loss_readings import delay_lines
from howdah.judge.room import room_check
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check


def delay_limit_checks(directory: RunDirectory, plan: Plan) -> list[Check]:
    """One check of each delay line towards a receiver; nothing where the plan gives them no limit."""
    limit = plan.path.delay_limit_packets
    if limit is None:
        return []
    table = store.read(directory, "qdisc")
    forward = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends)}
    lines = [(":".join(place), samples) for place, samples in delay_lines(table, plan) if place in forward]
    end_ns, room = plan.duration_us * 1000, (limit, limit)
    return [
        room_check(f"delay limit {place}", f"the delay line at {place}", samples, room, end_ns)
        for place, samples in lines
    ]
