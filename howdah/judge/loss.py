# SPDX-License-Identifier: Apache-2.0
"""Check random loss: the number of losses, and whether packets are lost at the times and in the bursts of the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from howdah.judge.check import Tolerance
from howdah.linux.netlink.discipline.netem import Netem
from howdah.measure.sampled import Samples, qdisc_samples
from howdah.plan.burst import in_bursts, transitions
from howdah.plan.line import HOP_HANDLE
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import DURING, Check


def allowed_losses(lost: float, count: float, ratio: float, burst_packets: float | None, deviations: float) -> float:
    """Return the allowed difference between ``lost`` of ``count`` packets and the mean of a binomial distribution.

    In bursts the count is the number of bursts times a geometric length: the variance grows by (1 + c) / (1 - c), where
    c is the correlation of neighbours. Above the mean, few bursts have a long tail, which Bernstein's inequality
    bounds.
    """
    variance = count * ratio * (1 - ratio)
    if not in_bursts(ratio, burst_packets):
        return deviations * math.sqrt(variance) + (1 if ratio else 0)
    assert burst_packets is not None
    begins, ends = transitions(ratio, burst_packets)
    tail = deviations**2 / 2 * burst_packets if lost > count * ratio else 0.0
    return deviations * math.sqrt(variance * (2 - begins - ends) / (begins + ends)) + tail


def burst_checks(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> list[Check]:
    """Return a check for each delay line that loses packets in bursts."""
    if all(plan.path.losses(ahead=ahead).burst_packets is None for ahead in (True, False)):
        return []
    if (why := hidden_by(plan)) is not None:
        return [Check("loss bursts", DURING, None, why, unit="readings")]
    table = store.read(directory, "qdisc")
    forward = places_passed(plan)
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
    """Compare the number of intervals with losses with the number that the model expects.

    The expectation of each interval depends on how many packets entered and on what happened before. The probability
    that the last packet was lost is 1 after an interval that lost all packets, 0 after one that lost none, and
    otherwise that of one burst of this length reaching the interval's end. Packets lost one by one spread over more
    intervals.
    """
    name = f"loss bursts {place}"
    read = loss_readings(samples, base, changes)
    if read is None:
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="readings")
    found, lost, expected, variance = _count_bursts(read, burst_packets)
    if found > expected:
        allowed = tolerance.deviations * math.sqrt(variance) + tolerance.deviations**2 / 2
    else:  # for a non-negative count the second moment bounds only the lower tail
        allowed = tolerance.deviations * math.sqrt(expected)
    ok = abs(found - expected) <= allowed
    message = f"the delay line at {place} lost {lost} packets between {found} pairs of readings"
    message += f", expected {expected:.4g} ± {allowed:.3g} with bursts of {burst_packets:g} packets"
    if not ok:
        message += ": its bursts are " + ("shorter" if found > expected else "longer or fewer") + " than the plan's"
    return Check(name, DURING, ok, message, expected, found, allowed, "readings")


def _count_bursts(read: LossReadings, burst_packets: float) -> tuple[int, int, float, float]:
    """Return the number of intervals with losses and of lost packets, and mean and variance of the first."""
    expected = variance = 0.0
    found = lost = 0
    was_lost = 0.0  # the probability that the last packet was lost
    columns = (each.tolist() for each in (read.first, read.last, read.entered, read.dropped))
    for begin, end, count, drops in zip(*columns, strict=True):
        ratio = read.ratios[begin]
        if begin != end or not in_bursts(ratio, burst_packets):
            was_lost = 0.0  # a change restarts the kernel's model outside a burst
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
    return found, lost, expected, variance


_DROPS = "drops_packets"
_OWN_DROPS = "own_drops_packets"  # without drops of a middlebox below
_READ = ("sent_packets", _DROPS, "backlog_packets")

Changes = list[tuple[int, float]]  # time in nanoseconds, and the ratio from then on


def changes_of(steps: list[list[float]]) -> Changes:
    """Convert a plan's steps, in microseconds."""
    return [(round(at_us * 1000), ratio) for at_us, ratio in steps]


@dataclass(frozen=True)
class LossReadings:
    """For each interval between two readings: packets that entered and were dropped, and the range ``first`` to
    ``last`` of ``ratios`` that applied.

    Loss is decided when a packet enters the delay line. Packets that entered in an interval have left, were dropped, or
    are still held.
    """

    entered: np.ndarray
    dropped: np.ndarray
    ratios: list[float]
    first: np.ndarray
    last: np.ndarray


def places_passed(plan: Plan, *, ahead: bool = True) -> set[tuple[str, str]]:
    """Return node and interface of each hop that the flows' data pass, or their ACKs if ``ahead`` is false."""
    ends = [flow.ends if ahead else flow.ends[::-1] for flow in plan.flows]
    return {(hop.node, hop.interface) for each in ends for hop in way(plan, *each)}


def delay_lines(table: pa.Table, plan: Plan) -> Iterator[tuple[tuple[str, str], Samples]]:
    """Yield node and interface of each delay line, and its readings."""
    for queue in plan.queues:
        if queue.kind == Netem.kind:
            line = qdisc_samples(table, *queue.place)
            if plan.path.middlebox is not None:
                line = _without_hop(line, qdisc_samples(table, *queue.at, HOP_HANDLE))
            yield queue.at, line


def _without_hop(line: Samples, hop: Samples) -> Samples:
    """Return the line's readings with a column of its own drops, without those of the hop below it, which it also
    counts."""
    if len(hop) != len(line) or not line.has(_DROPS) or not hop.has(_DROPS):
        return line
    return Samples(line.time_ns, {**line.columns, _OWN_DROPS: line[_DROPS] - hop[_DROPS]})


def hidden_by(plan: Plan) -> str | None:
    """Return why the delay lines' counters do not show how many packets entered; None if they do."""
    middlebox = plan.path.middlebox
    return "copies that a middlebox makes leave it, too" if middlebox and middlebox.duplicate_ratio else None


def loss_readings(samples: Samples, base: float, changes: Changes) -> LossReadings | None:
    """Return the readings of a delay line, or None if there are fewer than two. ``base`` is the ratio before
    ``changes``."""
    if len(samples) < 2 or not all(samples.has(column) for column in _READ):
        return None
    times = [time_ns for time_ns, _ in changes]
    first = np.searchsorted(times, samples.time_ns[:-1], side="right")
    last = np.maximum(np.searchsorted(times, samples.time_ns[1:], side="left"), first)
    entered = np.asarray(sum(np.diff(samples[column]) for column in _READ))
    ratios = [base, *(ratio for _, ratio in changes)]
    dropped = np.diff(samples[_OWN_DROPS if _OWN_DROPS in samples.columns else _DROPS])
    return LossReadings(entered, dropped, ratios, first, last)


def loss_schedule_checks(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> list[Check]:
    """Return a check for each delay line whose loss changes."""
    path = plan.path
    if not (path.forward_loss_steps or path.reverse_loss_steps):
        return []
    if (why := hidden_by(plan)) is not None:
        return [Check("loss schedule", DURING, None, why, unit="packets")]
    table = store.read(directory, "qdisc")
    forward = places_passed(plan)
    reverse = places_passed(plan, ahead=False)
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
    """Compare drops between readings with the ratios that applied. If the ratio changed in between, any value between
    its least and largest is allowed.

    Intervals with the same ratio are judged together.
    """
    name = f"loss schedule {place}"
    read = loss_readings(samples, base, changes)
    if read is None:
        return Check(name, DURING, None, f"the delay line at {place} was not read", unit="packets")
    groups: dict[tuple[float, float], list[int]] = {}
    for number, (begin, end) in enumerate(zip(read.first.tolist(), read.last.tolist(), strict=True)):
        held = read.ratios[begin : end + 1]
        groups.setdefault((min(held), max(held)), []).append(number)
    wrong, parts = [], []
    for (low, high), numbers in groups.items():
        count, lost = int(read.entered[numbers].sum()), int(read.dropped[numbers].sum())
        allowed = max(allowed_losses(lost, count, ratio, burst_packets, tolerance.deviations) for ratio in (low, high))
        words = f"{lost} of {count} packets at {low:.4g}" + (f" to {high:.4g}" if high > low else "")
        parts.append(words)
        if not count * low - allowed <= lost <= count * high + allowed:
            wrong.append(words)
    message = f"the delay line at {place} dropped {', '.join(parts)}"
    if wrong:
        message += f": it does not follow its schedule ({', '.join(wrong)})"
    total = int(read.dropped.sum())
    return Check(name, DURING, not wrong, message, None, total, None, "packets")
