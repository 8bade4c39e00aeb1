# SPDX-License-Identifier: Apache-2.0
"""How exact a path must be. docs/calibration.md says why."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.plan.plan import Plan


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
