# SPDX-License-Identifier: Apache-2.0
"""How repetitions differ. The draws depend only on the seed and the repetition.

Algorithms and sweep points have no influence, so repetition r meets the same perturbation everywhere and comparisons
are paired.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from fractions import Fraction

from howdah.errors import ProfileError
from howdah.profile.model import Scenario

_LONGEST_JITTER_US = 86_400_000_000


def derived_seed(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose, independent of the seeds for all other purposes."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Perturbation:
    """``rtt_factor`` scales every propagation delay; ``start_offset_us`` is added to the start of each flow."""

    rtt_factor: Fraction
    start_offset_us: tuple[int, ...]
    jitter_us: int

    def delay_us(self, nominal_us: int) -> int:
        return round(nominal_us * self.rtt_factor)


def draw(scenario: Scenario, repetition: int, rtt_us: int) -> Perturbation:
    """Draw the perturbation of a repetition: the RTT uniformly within ± ``perturbation.rtt``, each start uniformly
    within ``perturbation.start``. A profile with one repetition is not perturbed. ``rtt_us`` is the nominal RTT."""
    asked = scenario.perturbation
    if scenario.repetitions == 1:
        return Perturbation(Fraction(1), (0,) * len(scenario.every_flow), 0)
    generator = random.Random(derived_seed(scenario.seed, "perturbation", repetition))
    factor = 1 + asked.rtt * Fraction(2 * generator.random() - 1)
    # Parts per million: what the plan records is then exactly what was applied.
    factor = Fraction(round(factor * 10**6), 10**6)
    span = asked.start.to_us(rtt_us)
    offsets = tuple(int(generator.random() * span) for _ in scenario.every_flow)
    return Perturbation(factor, offsets, asked.jitter.to_us(rtt_us))


def check_jitter(perturbation: Perturbation, where: str) -> None:
    """Raise ProfileError for a jitter longer than any duration in a profile may be."""
    if perturbation.jitter_us > _LONGEST_JITTER_US:
        raise ProfileError("expected a jitter of at most one day", where=where)
