# SPDX-License-Identifier: Apache-2.0
"""Check random delays of packets: their distribution and the packets' order before and after the flows, and the order
while flows ran where the plan promises it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from howdah.judge.accounting import Snapshots
from howdah.judge.check import Tolerance
from howdah.plan.jitter import drawn_us, jitter_events
from howdah.plan.plan import Plan
from howdah.plan.route import way
from howdah.record.calibration import CalibrationRecord
from howdah.record.verdict import ACCOUNTING, Check

# Kolmogorov's distance times the root of the number of samples; equal distributions exceed it once in 20 000 cases.
_MOST_DISTANCE = 2.3
_REORDERED = ("TcpExtTCPSACKReorder", "TcpExtTCPTSReorder", "TcpExtTCPRenoReorder")
_CERTAIN = 100  # expected events from which on at least one is certain


def jitter_checks(plan: Plan, stage: str, found: CalibrationRecord | None, tolerance: Tolerance) -> list[Check]:
    """Return the checks of calibration-*.json. Return none if the file is missing, which another check reports."""
    jitter = plan.path.jitter
    if jitter is None or not plan.calibration.enabled or found is None:
        return []
    bases = {(item.sender, item.receiver): item for item in found.targets}
    entries = {(item.sender, item.receiver, item.way): item for item in found.jitter or []}
    checks = []
    for target in plan.calibration.targets:
        for direction in ("forward", "reverse"):
            if not jitter.way(ahead=direction == "forward"):
                continue
            pair = (target.sender, target.receiver)
            base = bases[pair].delays_ns(direction) if pair in bases else None
            expected = _planned_delays_us(plan, *(pair if direction == "forward" else pair[::-1]))
            entry = entries.get((*pair, direction))
            where = f"{direction} {'-'.join(pair)}"
            if entry is None or not base or expected is None:
                what = f"the delays that packets draw, {where}, were not measured"
                checks.append(Check(f"jitter {where}", stage, False, what, unit="ratio"))
                continue
            arrived = np.array([math.nan if each is None else each for each in entry.came_ns]) / 1000
            sent = np.array(entry.sent_ns) / 1000
            checks.append(_distribution(where, stage, arrived - sent - base[0] / 1000, expected, tolerance))
            checks.append(_order(where, stage, arrived, expected, jitter.spacing_us, tolerance))
    return checks


def _planned_delays_us(plan: Plan, start: str, end: str) -> NDArray[np.float64] | None:
    """Return the delays that packets to a host draw in the plan; None if its delay line draws none."""
    hops = way(plan, start, end)
    last = (hops[-1].node, hops[-1].interface) if hops else None
    for line, netem in jitter_events(plan.timeline, 0):
        if line.at == last:
            return np.array(drawn_us(netem))
    return None


def _distribution(
    where: str, stage: str, delays: NDArray[np.float64], expected: NDArray[np.float64], tolerance: Tolerance
) -> Check:
    """Check Kolmogorov's distance, mean and spread, with as many standard errors as random loss is allowed."""
    name = f"jitter {where}"
    measured = np.sort(delays[~np.isnan(delays)])
    if measured.size < 2:
        return Check(name, stage, False, f"of the packets that measure the jitter {where} none came", unit="ratio")
    mean, deviation = float(expected.mean()), float(expected.std())
    # The clock's error widens each step of the distribution.
    slack = tolerance.delay_us
    below = np.searchsorted(expected, measured - slack, side="right") / expected.size
    above = np.searchsorted(expected, measured + slack, side="left") / expected.size
    steps = np.arange(measured.size + 1) / measured.size
    distance = float(max((below - steps[1:]).max(), (steps[:-1] - above).max(), 0.0))
    most = _MOST_DISTANCE / math.sqrt(measured.size)
    fourth = float(((expected - mean) ** 4).mean())
    errors = tolerance.deviations / math.sqrt(measured.size)
    off_mean = abs(float(measured.mean()) - mean) - slack - errors * deviation
    off_spread = abs(float(measured.var()) - deviation**2) - 2 * slack * deviation
    off_spread -= errors * math.sqrt(max(fourth - deviation**4, 0.0))
    wrong = [
        words
        for words, off in (
            ("it is another distribution", distance - most),
            ("its mean is another", off_mean),
            ("its spread is another", off_spread),
        )
        if off > 0
    ]
    message = (
        f"{measured.size} packets {where} drew a delay of {measured.mean():.4g} ± {measured.std():.4g} us, "
        f"the plan's is {mean:.4g} ± {deviation:.4g}; the distributions are {distance:.3f} apart, {most:.3f} at most"
    )
    message += f": {' and '.join(wrong)}" if wrong else ""
    return Check(name, stage, not wrong, message, 0.0, distance, most, "ratio")


def _order(
    where: str,
    stage: str,
    arrived: NDArray[np.float64],
    expected: NDArray[np.float64],
    spacing_us: int,
    tolerance: Tolerance,
) -> Check:
    """Check how many neighbours overtook: as many as pairs of draws that differ by more than their spacing."""
    share = float(np.searchsorted(expected, expected - spacing_us, side="left").mean() / expected.size)
    steps = np.diff(arrived)
    pairs = int((~np.isnan(steps)).sum())
    overtook = int((steps < 0).sum())
    mean = share * pairs
    allowed = tolerance.deviations * math.sqrt(mean * (1 - share)) + 1
    ok = abs(overtook - mean) <= allowed
    message = f"{overtook} of {pairs} packets {where} overtook the one before, expected {mean:.4g} ± {allowed:.3g}"
    if not ok:
        message += ": packets keep their order" if overtook < mean else ": more overtake than draw a shorter delay"
    return Check(f"jitter order {where}", stage, ok, message, mean, overtook, allowed, "packets")


def order_checks(plan: Plan, state: Snapshots | None) -> list[Check]:
    """Return the checks of packet order by the hosts' own counters, where the plan has a varying delay. ``state`` is
    accounting.json; if it is missing, another check reports that."""
    path = plan.path
    asked = path.delay_variation.asked if path.delay_variation else None
    if state is None or not (asked or path.jitter):
        return []
    if path.jitter is not None:
        return [_reordering_check(plan, state)] if path.jitter.forward else []
    if path.early_us:
        return []
    if path.losses(ahead=False).ratio or path.losses(ahead=False).steps or path.reverse_rate_bits_per_second:
        why = "where ACKs are lost a sender cannot tell reordered packets from lost ones"
        return [Check("order", ACCOUNTING, None, why, unit="packets")]
    total = _reordered(state)
    message = "no sender saw packets out of order"
    if total:
        message = f"senders saw packets out of order {total} times, and the plan's delay keeps their order"
    return [Check("order", ACCOUNTING, not total, message, 0, total, 0, "packets")]


def _reordering_check(plan: Plan, state: Snapshots) -> Check:
    """Check that some packets came out of order if enough were sent, back to back at the bottleneck's rate, to make
    that certain."""
    expected = 0.0
    frame_us = plan.path.frame_bytes * 8e6 / plan.path.rate_bits_per_second
    for sender, receiver in dict.fromkeys(flow.ends for flow in plan.flows):
        drawn, hops = _planned_delays_us(plan, sender, receiver), way(plan, sender, receiver)
        if drawn is not None and hops:
            share = float(np.searchsorted(drawn, drawn - frame_us, side="left").mean()) / drawn.size
            expected += share * state.interface(hops[-1].to_node, hops[-1].to_interface, "rx_packets")
    seen = _reordered(state)
    ok = seen > 0 or expected < _CERTAIN
    message = f"senders saw packets out of order {seen} times; {expected:.4g} overtake where all go back to back"
    message += "" if ok else ": packets keep their order"
    return Check("order", ACCOUNTING, ok, message, expected, seen, None, "packets")


def _reordered(state: Snapshots) -> int:
    """Return how often senders detected reordering instead of loss (tcp_check_sack_reordering())."""
    return sum(sum(state.counter(name).values()) for name in _REORDERED)
