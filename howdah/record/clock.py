# SPDX-License-Identifier: Apache-2.0
"""Clocks of several machines as one: what was found out about them (raw/clock.json), and times put right by it.

Each machine has the epoch on its own CLOCK_MONOTONIC, named before the run. The offset of its clock from the clock of
the machine that ran the engine was bounded before and after, so that what it gained in between is known too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from howdah.codec import OCCASIONAL, planned
from howdah.record.model import checked
from howdah.record.raw import raw_exists, raw_value, read_raw_bytes

CLOCK_FILE = "clock.json"
CLOCK_FORMAT = 1

Integers = npt.NDArray[np.int64]
_Time = TypeVar("_Time", int, Integers)


@dataclass(frozen=True)
class Correction:
    """A machine's clock against the one of the experiment: it gains ``gain`` (a ratio), and was right at ``right_ns``
    (nanoseconds since the epoch, by itself)."""

    gain: float = 0.0
    right_ns: int = 0

    def apply(self, time_ns: _Time) -> _Time:
        """Nanoseconds since the epoch by the machine's clock, to those of the experiment; of one or of an array."""
        if isinstance(time_ns, int):
            return time_ns - round(self.gain * (time_ns - self.right_ns))
        moved: Integers = time_ns - np.rint(self.gain * (time_ns - self.right_ns)).astype(np.int64)
        return moved


@dataclass(frozen=True)
class Offset:
    """``offset_ns`` = the machine's clock - ours, to ``uncertainty_ns`` either way, when the machine's said ``at_ns``.

    ``round_trip_ns`` is the shortest one.
    """

    offset_ns: int
    uncertainty_ns: int
    at_ns: int
    round_trip_ns: int
    samples: int


@planned
class MachineClock:
    """A machine's clock; kernels in one virtual time have no offsets."""

    epoch_monotonic_ns: int = 0
    before: Offset | None = field(default=None, metadata=OCCASIONAL)
    after: Offset | None = field(default=None, metadata=OCCASIONAL)
    gain: float = 0.0
    right_ns: int = 0
    uncertainty_ns: int = 0

    @property
    def correction(self) -> Correction:
        return Correction(self.gain, self.right_ns)


@planned
class ClockRecord:
    """The file."""

    format: int
    reference: str = ""
    dilation: int | None = field(default=None, metadata=OCCASIONAL)
    epoch_ns: int = 0
    machines: dict[str, MachineClock] = field(default_factory=dict)


def read_clocks(raw: Path) -> ClockRecord | None:
    """clock.json of a run on several machines; None of any other run. Raises ValueError for one that cannot be read."""
    path = raw / CLOCK_FILE
    if not raw_exists(path):
        return None
    found = checked(ClockRecord, raw_value(read_raw_bytes(path)), path)
    if found.format != CLOCK_FORMAT:
        raise ValueError(f"{path} is not a record of clocks of format {CLOCK_FORMAT}")
    return found
