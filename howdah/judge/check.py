# SPDX-License-Identifier: Apache-2.0
"""Makes checks, and says how far a measurement may be from what the plan says: docs/calibration.md says why."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.plan.plan import Plan
from howdah.record.verdict import Check

MOST_TOLD = 10  # of the connections of a group that fail


def none_of(name: str, stage: str, count: int | None, unit: str, good: str, bad: str) -> Check:
    """A count that must be zero; None means it is not known. ``bad`` may contain ``{count}``."""
    if count is None:
        return Check(name, stage, None, f"{unit} were not counted", 0, None, 0, unit)
    ok = count == 0
    return Check(name, stage, ok, good if ok else bad.format(count=count), 0, count, 0, unit)


def told_of_many(checks: list[Check]) -> str:
    """What the first of many checks say that fail, and how many more fail; empty where none does."""
    wrong = [check.message for check in checks if check.ok is False]
    more = f"; and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
    return ": " + "; ".join(wrong[:MOST_TOLD]) + more if wrong else ""


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
    """A value within ``tolerance`` of what is expected; ``why`` says why it is missing."""
    if measured is None:
        return Check(name, stage, None, f"{what} was not measured: {why or 'no data'}", expected, None, tolerance, unit)
    ok = abs(measured - expected) <= tolerance
    relation = "is as configured" if ok else ("is too high" if measured > expected else "is too low")
    message = f"{what} {relation}: {measured:.10g} {unit}, expected {expected:.10g} ± {tolerance:.4g}"
    return Check(name, stage, ok, message, expected, measured, tolerance, unit)


@dataclass(frozen=True)
class Tolerance:
    """Shares are ratios of the expected value; the others are in the units of their names.

    ``delay_us`` and ``delay_share`` add up; ``clock_us`` is how far an instant may be from the plan's,
    ``clock_step_us`` how exactly an interval is known. ``buffer_frames`` is how far the depth of a buffer may be off,
    beside that of a step: half a frame is what a byte limit leaves open. ``limited_share`` is how much of its busy time
    a flow may be held back by windows or buffers nobody asked for, and ``deviations`` how many standard deviations
    random loss may be away from its mean.
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
        """Of one delay, in microseconds."""
        return self.delay_us + self.delay_share * delay_us


# Virtual time has no scheduling noise: what remains is the clock's step of 256 ns, a timer's rounding, and the time a
# probe or a frame itself takes on the wire.
VIRTUAL = Tolerance(
    rate_share=0.001, delay_us=20, delay_share=0.0001, clock_us=10_000, clock_step_us=1, buffer_frames=0.5
)
# A real machine adds timer slack and interrupts of its own.
REAL = Tolerance(rate_share=0.01, delay_us=1000, delay_share=0.01, clock_us=100_000, clock_step_us=100, buffer_frames=1)


def tolerance_of(plan: Plan) -> Tolerance:
    return VIRTUAL if plan.traits.exact_uptime else REAL
