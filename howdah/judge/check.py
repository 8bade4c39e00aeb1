# SPDX-License-Identifier: Apache-2.0
"""Constructors of checks, and the tolerances of measurements. docs/calibration.md explains the tolerances."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.plan.plan import Plan
from howdah.record.verdict import Check

MOST_NAMED = 10  # the most failed connections of a group in a message


def none_of(name: str, stage: str, count: int | None, unit: str, good: str, bad: str) -> Check:
    """Return a check that a count is zero; None means that it is unknown. ``bad`` may contain ``{count}``."""
    if count is None:
        return Check(name, stage, None, f"{unit} were not counted", 0, None, 0, unit)
    ok = count == 0
    return Check(name, stage, ok, good if ok else bad.format(count=count), 0, count, 0, unit)


def failure_summary(checks: list[Check]) -> str:
    """Return the messages of the first MOST_NAMED failed checks and the number of others; empty if none."""
    wrong = [check.message for check in checks if check.ok is False]
    more = f"; and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    return ": " + "; ".join(wrong[:MOST_NAMED]) + more if wrong else ""


def within(
    name: str,
    stage: str,
    measured: float | None,
    expected: float,
    tolerance: float,
    unit: str,
    what: str,
    why: str = "",
) -> Check:
    """Return a check that a value is within ``tolerance`` of ``expected``. ``why`` explains a missing value."""
    if measured is None:
        return Check(name, stage, None, f"{what} was not measured: {why or 'no data'}", expected, None, tolerance, unit)
    ok = abs(measured - expected) <= tolerance
    relation = "is as configured" if ok else ("is too high" if measured > expected else "is too low")
    message = f"{what} {relation}: {measured:.10g} {unit}, expected {expected:.10g} ± {tolerance:.4g}"
    return Check(name, stage, ok, message, expected, measured, tolerance, unit)


@dataclass(frozen=True)
class Tolerance:
    """Allowed errors. Shares are relative to the expected value; the others have the units in their names.

    ``delay_us`` and ``delay_share`` add up. ``clock_us`` is the allowed error of an instant, ``clock_step_us`` the
    precision of an interval. ``buffer_frames`` is the allowed error of a buffer's depth, beside that of a step; a byte
    limit leaves half a frame open. ``limited_share`` is the share of its busy time for which windows or buffers that
    nobody configured may limit a flow. ``deviations`` is the allowed number of standard deviations between random loss
    and its mean.
    """

    rate_share: float
    delay_us: float
    delay_share: float
    clock_us: float
    clock_step_us: float
    buffer_frames: float
    limited_share: float = 0.05
    deviations: float = 4.0

    def delay(self, delay_us: int) -> float:
        """Return the tolerance of a delay, in microseconds."""
        return self.delay_us + self.delay_share * delay_us


# Virtual time has no scheduling noise. What remains is the clock's step of 256 ns, the rounding of timers, and the time
# that a probe or frame takes on the wire.
VIRTUAL = Tolerance(
    rate_share=0.001, delay_us=20, delay_share=0.0001, clock_us=10_000, clock_step_us=1, buffer_frames=0.5
)
# A real machine adds timer slack and interrupts of its own.
REAL = Tolerance(rate_share=0.01, delay_us=1000, delay_share=0.01, clock_us=100_000, clock_step_us=100, buffer_frames=1)


def tolerance_of(plan: Plan) -> Tolerance:
    return VIRTUAL if plan.traits.exact_uptime else REAL
