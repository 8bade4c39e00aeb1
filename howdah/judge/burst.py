# SPDX-License-Identifier: Apache-2.0
"""Random loss: how far a count may be from its mean, and whether packets are lost in bursts where the plan says so."""

from __future__ import annotations

import math

from howdah.judge.loss_readings import Changes, changes_of, delay_lines, hidden_by, loss_readings
from howdah.judge.tolerance import Tolerance
from howdah.measure.sampled import Samples
from howdah.plan.burst import in_bursts, transitions
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import DURING, Check


def allowed_losses(lost: float, count: float, ratio: float, burst_packets: float | None, deviations: float) -> float:
    """How far ``lost`` of ``count`` packets may be from the mean: a binomial number of packets.

    In bursts it is the number of bursts times a geometric length: the variance is larger by (1 + c) / (1 - c), with the
    correlation c of neighbours. Above the mean few bursts have a long tail, which Bernstein's inequality bounds.
    """
    variance = count * ratio * (1 - ratio)
    if not in_bursts(ratio, burst_packets):
        return deviations * math.sqrt(variance) + (1 if ratio else 0)
    assert burst_packets is not None
    begins, ends = transitions(ratio, burst_packets)
    tail = deviations**2 / 2 * burst_packets if lost > count * ratio else 0.0
    return deviations * math.sqrt(variance * (2 - begins - ends) / (begins + ends)) + tail


def burst_checks(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> list[Check]:
    """One check of each delay line of a way that loses packets in bursts."""
    if all(plan.path.losses(ahead=ahead).burst_packets is None for ahead in (True, False)):
        return []
    if (why := hidden_by(plan)) is not None:
        return [Check("loss bursts", DURING, None, why, unit="readings")]
    table = store.read(directory, "qdisc")
    forward = {(hop.node, hop.interface) for flow in plan.flows for hop in way(plan, *flow.ends)}
    checks = []
    for place, samples in delay_lines(table, plan):
        loss = plan.path.losses(ahead=place in forward)
        if loss.burst_packets is not None:
            changes = changes_of(loss.steps)
            checks.append(bursts(":".join(place), samples, loss.ratio, changes, loss.burst_packets, tolerance))
    return checks


def bursts(
    place: str,
    samples: Samples,
    base: float,
    changes: Changes,
    burst_packets: float,
    tolerance: Tolerance,
) -> Check:
    """Times between readings in which something was lost, against as many as the model has.

    Each expectation is what the model gives for as many packets as entered, after what happened before. That the
    last packet was lost is certain after a time in which all were, impossible after one in which none was, and
    otherwise as likely as one burst of so many packets reaches the end. Packets lost one by one are spread over more
    times.
    """
    name = f"loss bursts {place}"
    read = loss_readings(samples, base, changes)
    if read is None:
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="readings")
    expected = variance = 0.0
    found = lost = 0
    was_lost = 0.0
    columns = (each.tolist() for each in (read.first, read.last, read.entered, read.dropped))
    for begin, end, count, drops in zip(*columns, strict=True):
        ratio = read.ratios[begin]
        if begin != end or not in_bursts(ratio, burst_packets):
            was_lost = 0.0  # a change begins the kernel's model anew, with no burst
            continue
        if not count:
            continue
        begins, ends = transitions(ratio, burst_packets)
        clean = (was_lost * ends + (1 - was_lost) * (1 - begins)) * (1 - begins) ** (count - 1)
        expected += 1 - clean
        variance += clean * (1 - clean)
        found += drops > 0
        lost += drops
        was_lost = 1 / (1 + (count - drops) * ends) if drops else 0.0
    if found > expected:
        allowed = tolerance.deviations * math.sqrt(variance) + tolerance.deviations**2 / 2
    else:  # of what is not negative, the second moment bounds the lower tail alone
        allowed = tolerance.deviations * math.sqrt(expected)
    ok = abs(found - expected) <= allowed
    message = f"the delay line at {place} lost {lost} packets between {found} pairs of readings"
    message += f", expected {expected:.4g} ± {allowed:.3g} with bursts of {burst_packets:g} packets"
    if not ok:
        message += ": its bursts are " + ("shorter" if found > expected else "longer or fewer") + " than the plan's"
    return Check(name, DURING, ok, message, expected, found, allowed, "readings")
