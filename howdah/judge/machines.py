# SPDX-License-Identifier: Apache-2.0
"""Checks for runs on several machines in real time or several kernels in one virtual time: clocks, processors, round
trips, and that the wires between kernels carried every frame on time."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.judge.check import Tolerance
from howdah.plan.plan import Plan
from howdah.record.agent import AgentRecord, ProcessorRecord
from howdah.record.calibration import CalibrationRecord
from howdah.record.clock import ClockRecord, MachineClock
from howdah.record.verdict import AFTER, BEFORE, ENGINE, Check
from howdah.record.wire import CarriedFrames, WireRecord

# The clocks' largest uncertainty, as a share of the round trip. Measurements between machines, such as the end
# of a transfer, are no better.
CLOCK_UNCERTAINTY_SHARE = 0.1
# The largest relative error of a machine's CLOCK_MONOTONIC. Its rates and delays have the same error.
LARGEST_GAIN = 0.001
_LATE_SHARE = 0.01  # share of wake-ups that may be later than the tolerance of a delay
_LARGEST_STEAL = 0.01


def machine_checks(
    plan: Plan, clocks: ClockRecord | None, agent: AgentRecord | None, tolerance: Tolerance
) -> list[Check]:
    """Return the checks of clocks and processors. ``clocks`` is clock.json, ``agent`` agent.json; None if missing."""
    if clocks is None or agent is None:
        return [Check("clocks", ENGINE, False, "the record of the machines' clocks is missing")]
    checks = []
    for name, entry in clocks.machines.items():
        checks += [clock_known(plan, name, entry), clock_gain(name, entry)]
        kernel = (agent.machines or {}).get(name)
        checks += processor(plan, name, kernel.processor if kernel else None, tolerance)
    return checks


def clock_known(plan: Plan, machine: str, entry: MachineClock) -> Check:
    allowed = CLOCK_UNCERTAINTY_SHARE * plan.path.rtt_us
    uncertain = entry.uncertainty_ns / 1000
    ok = uncertain <= allowed
    message = f"the clock of {machine} is known to {uncertain:.0f} us"
    if not ok:
        message += f", {allowed:.0f} us are allowed: what happens on two machines cannot be put in order"
    return Check(f"clock of {machine}", ENGINE, ok, message, 0, uncertain, allowed, "us")


def clock_gain(machine: str, entry: MachineClock) -> Check:
    gain = entry.gain
    ok = abs(gain) <= LARGEST_GAIN
    message = f"the clock of {machine} gained {gain * 1e6:.1f} us a second"
    if not ok:
        message += ": it does not run at the speed of time"
    return Check(f"clock rate of {machine}", ENGINE, ok, message, 0, gain, LARGEST_GAIN, "ratio")


def processor(plan: Plan, machine: str, found: ProcessorRecord | None, tolerance: Tolerance) -> list[Check]:
    """Check that a high-priority process woke up on time and that no other machine took the processor away.

    A packet that waits for a timer waits as long as that process does.
    """
    name = f"processor of {machine}"
    if found is None or not found.wakeups or found.late_worst_ns is None:
        return [Check(name, ENGINE, False, f"the processor of {machine} was not watched while the flows ran")]
    allowed_us = tolerance.delay(plan.path.rtt_us)
    late = sum(late_ns > allowed_us * 1000 for _, late_ns in found.late)
    # A wake-up later than a whole interval replaces all that were due meanwhile.
    total = found.wakeups + found.missed
    share = (late + found.missed) / total
    worst_us = found.late_worst_ns / 1000
    ok = share <= _LATE_SHARE and worst_us <= tolerance.clock_us
    message = (
        f"{machine}: {share:.2%} of {total} wake-ups came more than {allowed_us / 1000:.3g} ms late, the worst "
        f"{worst_us / 1000:.3g} ms"
    )
    if not ok:
        message += ": it was short of processor time, and so was the network in it"
    checks = [Check(name, ENGINE, ok, message, 0, share, _LATE_SHARE, "ratio")]
    steal = found.steal
    if steal is not None:
        taken = steal > _LARGEST_STEAL
        message = f"{steal:.2%} of the processor time of {machine} went to other virtual machines"
        checks.append(Check(f"stolen time of {machine}", ENGINE, not taken, message, 0, steal, _LARGEST_STEAL, "ratio"))
    return checks


def round_trip_checks(plan: Plan, stage: str, found: CalibrationRecord | None, tolerance: Tolerance) -> list[Check]:
    """Check the shortest round trip between hosts before or after the flows: the path's two delays, each with its own
    tolerance, and nothing else."""
    if not plan.calibration.enabled or found is None or stage not in (BEFORE, AFTER):
        return []
    measured = {(item.sender, item.receiver): item.round_trip_ns for item in found.round_trips or []}
    checks = []
    for target in plan.calibration.targets:
        name = f"round trip {target.sender}-{target.receiver}"
        expected = target.forward_delay_us + target.reverse_delay_us
        trips_ns = measured.get((target.sender, target.receiver))
        if not trips_ns:
            message = f"no echo came from {target.receiver} to {target.sender}"
            checks.append(Check(name, stage, False, message, expected, None, None, "us"))
            continue
        least = trips_ns[0] / 1000
        allowed = tolerance.delay(target.forward_delay_us) + tolerance.delay(target.reverse_delay_us)
        varies = target.variation_us + target.variation_reverse_us
        early = plan.calibration.early_us
        ok = expected - early - allowed <= least <= expected + varies + allowed
        relation = "is as configured" if ok else "is too short" if least < expected else "is too long"
        message = (
            f"the round trip from {target.sender} to {target.receiver} {relation}: {least:.10g} us, "
            f"expected {expected} ± {allowed:.4g}"
        )
        checks.append(Check(name, stage, ok, message, expected, least, allowed + varies, "us"))
    return checks


def wire_checks(plan: Plan, record: WireRecord | None, tolerance: Tolerance) -> list[Check]:
    """Return the checks of wires; none for a run in one kernel. ``record`` is wire.json, None if it is missing."""
    if not plan.parts:
        return []
    if record is None:
        return [Check("wires", ENGINE, False, "the record of the wires between the kernels is missing")]
    numbers = {host.name: number for number, host in enumerate(plan.hosts)}
    checks: list[Check] = []
    for part in plan.parts:
        for host in part.hosts:
            ends = list(_ends(record, numbers[host]))
            checks += [_frames(host, ends), _times(host, ends, tolerance)]
    return checks


def _ends(record: WireRecord, number: int) -> Iterator[CarriedFrames]:
    """Yield the counts of one wire in every kernel that has it."""
    for wires in record.parts.values():
        yield from (wire for wire in wires if wire.wire == number)


def _frames(host: str, ends: list[CarriedFrames]) -> Check:
    left, arrived = sum(end.left_frames for end in ends), sum(end.arrived_frames for end in ends)
    lost = sum(end.lost_frames for end in ends)
    ok = bool(ends) and left == arrived and not lost
    message = f"{left} frames left by the wire to {host}, {arrived} arrived"
    if lost:
        message += f", {lost} found no room"
    return Check(f"wire to {host}", ENGINE, ok, message, left, arrived, 0, "frames")


def _times(host: str, ends: list[CarriedFrames], tolerance: Tolerance) -> Check:
    latest_us = max((end.latest_ns for end in ends), default=0) / 1000
    late = sum(end.late_frames for end in ends)
    ok = latest_us <= tolerance.clock_step_us
    message = f"{late} frames arrived at {host} after their time, by {latest_us:.4g} us at most"
    return Check(f"delay of the wire to {host}", ENGINE, ok, message, 0, latest_us, tolerance.clock_step_us, "us")
