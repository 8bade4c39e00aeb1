# SPDX-License-Identifier: Apache-2.0
"""Background: flows that take part and are not measured. Whose bytes count in which measure."""

from __future__ import annotations

from howdah.measure import throughput
from howdah.measure.capacity import FairCapacity
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import BACKGROUND, MEASURED, Flow, Plan
from howdah.plan.route import way

_ROLES = (MEASURED, BACKGROUND)


def crosses(plan: Plan, flow: Flow) -> bool:
    """Whether a flow's data goes over the bottleneck in the direction in which it is one."""
    if flow.direction != "forward":
        return False
    if flow.role != BACKGROUND:
        return True  # the plan refuses measured flows that do not
    bottleneck = plan.calibration.bottleneck[:2]
    return any((hop.node, hop.interface) == bottleneck for hop in way(plan, flow.sender, flow.receiver))


def forward(plan: Plan, traces: list[FlowTrace]) -> list[FlowTrace]:
    """The traces of the flows that share the bottleneck's capacity."""
    return [trace for trace in traces if crosses(plan, trace.flow)]


def background_rows(sheet: Sheet, plan: Plan, trace: FlowTrace) -> None:
    """Goodput of a background flow in the measured window; nothing else is measured of it."""
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    begin, end = max(begin, trace.start_ns), min(end, trace.stop_ns)
    rate = throughput.goodput_bits_per_second(trace, begin, end) if len(trace) else None
    why = "no ACK of this flow was traced, or it was not active in the window"
    sheet.add(trace.flow, "background_goodput_bits_per_second", rate, why, role=BACKGROUND)


def role_rows(sheet: Sheet, plan: Plan, crossing: list[FlowTrace], capacity: FairCapacity) -> None:
    """Utilisation by each role, where there is background: together they are ``utilisation``."""
    if all(flow.role != BACKGROUND for flow in plan.flows):
        return
    begin, end = (edge * 1000 for edge in plan.measure_window_us)
    for role in _ROLES:
        traces = [trace for trace in crossing if trace.flow.role == role]
        used = throughput.utilisation(traces, capacity, begin, end)
        sheet.add(None, f"utilisation_{role}", used, "the window is empty", role=role)
