# SPDX-License-Identifier: Apache-2.0
"""Which flows of a plan are shown one by one."""

from __future__ import annotations

from howdah.plan.plan import Flow, Plan

MANY_FLOWS = 2_000  # of more, nobody asks for the curves of each
_OF_A_GROUP = 3


def shown_flows(plan: Plan) -> list[Flow]:
    """Every flow that the profile writes out, and of each group the connections with the most data, of equal ones the
    first: the shortest are over before there is a record of them. A table has all of a group together."""
    shown = {flow.id for flow in plan.flows if flow.group is None}
    for group in {flow.group for flow in plan.flows if flow.group is not None}:
        mine = sorted((flow for flow in plan.flows if flow.group == group), key=lambda flow: -(flow.size_bytes or 0))
        shown |= {flow.id for flow in mine[:_OF_A_GROUP]}
    return [flow for flow in plan.flows if flow.id in shown]
