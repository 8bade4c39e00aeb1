# SPDX-License-Identifier: Apache-2.0
"""Whether the path lost what its schedule asks for, when it asks for it."""

from __future__ import annotations

from howdah.judge.burst import allowed_losses
from howdah.judge.loss_readings import Changes, changes_of, delay_lines, hidden_by, loss_readings
from howdah.judge.tolerance import Tolerance
from howdah.measure.sampled import Samples
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import DURING, Check


def loss_schedule_checks(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> list[Check]:
    """One check of each delay line whose loss changes; nothing without a schedule of losses."""
    path = plan.path
    if not (path.forward_loss_steps or path.reverse_loss_steps):
        return []
    if (why := hidden_by(plan)) is not None:
        return [Check("loss schedule", DURING, None, why, unit="packets")]
    table = store.read(directory, "qdisc")
    forward = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends)}
    reverse = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends[::-1])}
    checks = []
    for place, samples in delay_lines(table, plan):
        ahead = place in forward
        if not ahead and place not in reverse:
            continue
        if (loss := path.losses(ahead=ahead)).steps:
            changes = changes_of(loss.steps)
            checks.append(scheduled_loss(":".join(place), samples, loss.ratio, changes, tolerance, loss.burst_packets))
    return checks


def scheduled_loss(
    place: str,
    samples: Samples,
    base: float,
    changes: Changes,
    tolerance: Tolerance,
    burst_packets: float | None = None,
) -> Check:
    """Drops between readings against the ratios that held then; where one changed in between, anything between the
    least and the largest of them is allowed.

    Readings between which one ratio held are judged together with all others of that ratio.
    """
    name = f"loss schedule {place}"
    read = loss_readings(samples, base, changes)
    if read is None:
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="packets")
    groups: dict[tuple[float, float], list[int]] = {}
    for number, (begin, end) in enumerate(zip(read.first.tolist(), read.last.tolist(), strict=True)):
        held = read.ratios[begin : end + 1]
        groups.setdefault((min(held), max(held)), []).append(number)
    wrong, told = [], []
    for (low, high), numbers in groups.items():
        count, lost = int(read.entered[numbers].sum()), int(read.dropped[numbers].sum())
        allowed = max(allowed_losses(lost, count, ratio, burst_packets, tolerance.deviations) for ratio in (low, high))
        words = f"{lost} of {count} packets at {low:.4g}" + (f" to {high:.4g}" if high > low else "")
        told.append(words)
        if not count * low - allowed <= lost <= count * high + allowed:
            wrong.append(words)
    message = f"the delay line at {place} dropped {', '.join(told)}"
    if wrong:
        message += f": it does not follow its schedule ({', '.join(wrong)})"
    total = int(read.dropped.sum())
    return Check(name, DURING, not wrong, message, None, total, None, "packets")
