# SPDX-License-Identifier: Apache-2.0
"""Whether the path lost what its schedule asks for, when it asks for it."""

from __future__ import annotations

import numpy as np

from howdah.judge.burst import allowed_losses
from howdah.judge.check import DURING, Check
from howdah.judge.tolerance import Tolerance
from howdah.measure.sampled import Samples, qdisc_samples
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory

_READ = ("sent_packets", "drops_packets", "backlog_packets")


def loss_schedule_checks(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> list[Check]:
    """One check of each delay line whose loss changes; nothing without a schedule of losses."""
    path = plan.path
    if not (path.forward_loss_steps or path.reverse_loss_steps):
        return []
    table = store.read(directory, "qdisc")
    forward = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends)}
    reverse = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends[::-1])}
    checks = []
    bursts = path.loss_burst_packets
    for operation in plan.operations:
        arguments = operation.arguments
        if operation.op != "qdisc" or arguments["kind"] != "netem":
            continue
        node, interface = arguments["node"], arguments["interface"]
        ahead = (node, interface) in forward
        if not ahead and (node, interface) not in reverse:
            continue
        steps = path.forward_loss_steps if ahead else path.reverse_loss_steps
        if steps:
            base = path.loss_ratio if ahead else 0.0
            samples = qdisc_samples(table, node, interface, arguments["handle"])
            changes = [(round(at_us * 1000), ratio) for at_us, ratio in steps]
            checks.append(
                scheduled_loss(f"{node}:{interface}", samples, base, changes, tolerance, bursts if ahead else None)
            )
    return checks


def scheduled_loss(
    place: str,
    samples: Samples,
    base: float,
    changes: list[tuple[int, float]],
    tolerance: Tolerance,
    burst_packets: float | None = None,
) -> Check:
    """Drops between readings against the ratios that held then; where one changed in between, anything between the
    least and the largest of them is allowed.

    Loss is decided when a packet enters the delay line; what entered between two readings has left, was dropped, or is
    held. Readings between which one ratio held are judged together with all others of that ratio.
    """
    name = f"loss schedule {place}"
    if len(samples) < 2 or not all(samples.has(column) for column in _READ):
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="packets")
    entered = np.asarray(sum(np.diff(samples[column]) for column in _READ))
    dropped = np.diff(samples["drops_packets"])
    times = [time for time, _ in changes]
    ratios = [base, *(ratio for _, ratio in changes)]
    first = np.searchsorted(times, samples.time_ns[:-1], side="right")
    last = np.maximum(np.searchsorted(times, samples.time_ns[1:], side="left"), first)
    groups: dict[tuple[float, float], list[int]] = {}
    for number, (begin, end) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        held = ratios[begin : end + 1]
        groups.setdefault((min(held), max(held)), []).append(number)
    wrong, told = [], []
    for (low, high), numbers in groups.items():
        count, lost = int(entered[numbers].sum()), int(dropped[numbers].sum())
        allowed = max(allowed_losses(lost, count, ratio, burst_packets, tolerance.deviations) for ratio in (low, high))
        words = f"{lost} of {count} packets at {low:.4g}" + (f" to {high:.4g}" if high > low else "")
        told.append(words)
        if not count * low - allowed <= lost <= count * high + allowed:
            wrong.append(words)
    message = f"the delay line at {place} dropped {', '.join(told)}"
    if wrong:
        message += f": it does not follow its schedule ({', '.join(wrong)})"
    total = int(dropped.sum())
    return Check(name, DURING, not wrong, message, None, total, None, "packets")
