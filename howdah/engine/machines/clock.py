# SPDX-License-Identifier: Apache-2.0
"""How far a machine's clock is from ours, by asking it many times: where every answer's bounds agree.

A clock that is asked at ``sent`` and whose answer is there at ``received``, both by our clock, was read in between. Its
offset (its time minus ours) is therefore at least ``told - received`` and at most ``told - sent``. All samples together
leave a span that is never longer than the shortest round trip, whatever the two ways take.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from howdah.errors import RunFailedError
from howdah.record.clock import Correction, MachineClock, Offset

# By how much two clocks may run apart while one is asked: a crystal's error and a rough calibration of it.
_DRIFT = 200e-6


class Ours:
    """Our clock, as slow as the machines' are (howdah/machines/qemu.py)."""

    def __init__(self, dilation: int = 1) -> None:
        self.dilation = dilation

    def now_ns(self) -> int:
        return time.monotonic_ns() // self.dilation

    def real_s(self, machines_s: float) -> float:
        """How long it takes here until so much time has passed there."""
        return machines_s * self.dilation


@dataclass(frozen=True)
class ClockSample:
    """``sent_ns`` and ``received_ns`` by our clock, ``told_ns`` by the machine's."""

    sent_ns: int
    told_ns: int
    received_ns: int


def estimate(samples: Sequence[ClockSample], machine: str) -> Offset:
    """Raises RunFailedError where no offset fits all samples: the clock was set meanwhile."""
    middle = samples[len(samples) // 2].told_ns
    lower = max(item.told_ns - item.received_ns - _slack(item, middle) for item in samples)
    upper = min(item.told_ns - item.sent_ns + _slack(item, middle) for item in samples)
    if lower > upper:
        raise RunFailedError(
            f"the clock of {machine} jumped by {(lower - upper) / 1e6:.3f} ms while it was asked",
            hint="Nothing may set CLOCK_MONOTONIC's rate or suspend the machine during a run.",
        )
    shortest = min(item.received_ns - item.sent_ns for item in samples)
    return Offset((lower + upper) // 2, -(-(upper - lower) // 2), middle, shortest, len(samples))


def _slack(item: ClockSample, middle_ns: int) -> int:
    return round(abs(item.told_ns - middle_ns) * _DRIFT)


def correction(before: Offset, after: Offset, epoch_ns: int) -> Correction:
    """``epoch_ns`` is the epoch on the machine's clock, which ``before`` was used to name."""
    gain = (after.offset_ns - before.offset_ns) / (after.at_ns - before.at_ns)
    return Correction(gain, before.at_ns - epoch_ns)


def described(before: Offset, after: Offset, epoch_ns: int) -> MachineClock:
    """A machine's entry in clock.json."""
    found = correction(before, after, epoch_ns)
    uncertainty_ns = max(before.uncertainty_ns, after.uncertainty_ns)
    return MachineClock(epoch_ns, before, after, found.gain, found.right_ns, uncertainty_ns)
