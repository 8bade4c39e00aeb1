# SPDX-License-Identifier: Apache-2.0
"""How much of a run there is to show: to a little behind the end of its last flow, if its plan goes on far beyond."""

from __future__ import annotations

from howdah.record.result import Run

_RTTS, _SHARE = 4, 0.05  # what is shown behind the last flow: the longer of the two
_WORTH_IT = 0.8  # of the plan: what ends later is shown to the plan's end
_COLUMNS = ("flow", "end_ns", "complete")


def shown_us(run: Run) -> int:
    """From the epoch. A run of which a flow has not completed is shown to the end of its plan."""
    assert run.plan is not None
    plan = run.plan
    table = run.table("flow")
    if table is None or not table.num_rows:
        return plan.duration_us
    ends = {
        flow: end_ns
        for flow, end_ns, complete in zip(*(table[name].to_pylist() for name in _COLUMNS), strict=True)
        if complete
    }
    if any(ends.get(flow.id) is None for flow in plan.flows):
        return plan.duration_us
    last_us = max(ends.values()) // 1000
    shown = last_us + max(_RTTS * max(flow.rtt_us for flow in plan.flows), int(_SHARE * last_us))
    return int(shown) if shown < _WORTH_IT * plan.duration_us else plan.duration_us
