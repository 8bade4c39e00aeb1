# SPDX-License-Identifier: Apache-2.0
"""What only runs on several kernels in one virtual time must show: the wires between the kernels carried every frame,
each to the step of the clock at its time."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.judge.tolerance import Tolerance
from howdah.plan.plan import Plan
from howdah.record.verdict import ENGINE, Check
from howdah.record.wire import CarriedFrames, WireRecord


def wire_checks(plan: Plan, record: WireRecord | None, tolerance: Tolerance) -> list[Check]:
    """``record`` is wire.json, None where it is missing; nothing of a run in one kernel."""
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
    """Of one wire in every kernel that has it."""
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
