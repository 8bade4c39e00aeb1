# SPDX-License-Identifier: Apache-2.0
"""Which flows of a plan are shown one by one."""

from __future__ import annotations

from collections import Counter

from howdah.plan.plan import Flow, Plan

MANY_FLOWS = 10_000  # of more, nobody asks for the curves of each
_OF_A_GROUP = 3


def shown_flows(plan: Plan) -> list[Flow]:
    """Every flow that the profile writes out, and the first connections of each group; its table has all together."""
    seen: Counter[str] = Counter()
    found = []
    for flow in plan.flows:
        if flow.group is not None:
            seen[flow.group] += 1
            if seen[flow.group] > _OF_A_GROUP:
                continue
        found.append(flow)
    return found
