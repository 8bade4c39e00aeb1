# SPDX-License-Identifier: Apache-2.0
"""Estimation of the offset between a machine's clock and the local one, from many queries.

A query sent at ``sent`` and answered at ``received``, both by the local clock, reads the machine's clock at some
instant in between. The offset (``machine``'s reading minus the local time) is therefore at least ``machine - received``
and at most ``machine - sent``. The interval on which all samples agree is never longer than the shortest round trip,
however that divides into its two directions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from howdah.errors import RunFailedError
from howdah.record.clock import Correction, MachineClock, Offset

# Most relative drift of two clocks during the queries: a crystal's error plus that of its rough calibration.
_DRIFT = 200e-6


class LocalClock:
    """The local clock, slowed down as much as the machines' clocks (howdah/machines/qemu.py)."""

    def __init__(self, dilation: int = 1) -> None:
        self.dilation = dilation

    def now_ns(self) -> int:
        return time.monotonic_ns() // self.dilation

    def real_s(self, machines_s: float) -> float:
        """Return the local seconds in which ``machines_s`` pass on the machines."""
        return machines_s * self.dilation


@dataclass(frozen=True)
class ClockSample:
    """One query: ``sent_ns`` and ``received_ns`` by the local clock, ``machine_ns`` by the machine's."""

    sent_ns: int
    machine_ns: int
    received_ns: int


def estimate(samples: Sequence[ClockSample], machine: str) -> Offset:
    """Return the offset that fits all samples. Raises RunFailedError if none does: the clock was set meanwhile."""
    middle = samples[len(samples) // 2].machine_ns
    lower = max(item.machine_ns - item.received_ns - _slack(item, middle) for item in samples)
    upper = min(item.machine_ns - item.sent_ns + _slack(item, middle) for item in samples)
    if lower > upper:
        raise RunFailedError(
            f"the clock of {machine} jumped by {(lower - upper) / 1e6:.3f} ms while it was queried",
            hint="Nothing may set CLOCK_MONOTONIC's rate or suspend the machine during a run.",
        )
    shortest = min(item.received_ns - item.sent_ns for item in samples)
    return Offset((lower + upper) // 2, -(-(upper - lower) // 2), middle, shortest, len(samples))


def _slack(item: ClockSample, middle_ns: int) -> int:
    return round(abs(item.machine_ns - middle_ns) * _DRIFT)


def correction(before: Offset, after: Offset, epoch_ns: int) -> Correction:
    """Return the correction from the offsets before and after a run.

    ``epoch_ns`` is the epoch on the machine's clock, computed with ``before``.
    """
    gain = (after.offset_ns - before.offset_ns) / (after.at_ns - before.at_ns)
    return Correction(gain, before.at_ns - epoch_ns)


def described(before: Offset, after: Offset, epoch_ns: int) -> MachineClock:
    """Return a machine's entry in clock.json."""
    found = correction(before, after, epoch_ns)
    uncertainty_ns = max(before.uncertainty_ns, after.uncertainty_ns)
    return MachineClock(epoch_ns, before, after, found.gain, found.right_ns, uncertainty_ns)
