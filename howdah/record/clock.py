# SPDX-License-Identifier: Apache-2.0
"""Align the clocks of several machines: raw/clock.json has what was measured of them, and times are corrected by it.

On each machine the epoch is a time of its CLOCK_MONOTONIC that was agreed before the run. Before and after the run, the
offset of its clock from that of the engine's machine was bounded, which also gives the drift between.
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
    """The correction of a machine's clock to the experiment's: it gains ``gain`` (a ratio), and was right at
    ``right_ns`` (nanoseconds since the epoch, by that clock)."""

    gain: float = 0.0
    right_ns: int = 0

    def apply(self, time_ns: _Time) -> _Time:
        """Convert nanoseconds since the epoch, one or an array, from the machine's clock to the experiment's."""
        if isinstance(time_ns, int):
            return time_ns - round(self.gain * (time_ns - self.right_ns))
        moved: Integers = time_ns - np.rint(self.gain * (time_ns - self.right_ns)).astype(np.int64)
        return moved


@dataclass(frozen=True)
class Offset:
    """``offset_ns`` = the machine's clock - the engine's, within ``uncertainty_ns``, when the machine's clock showed
    ``at_ns``.

    ``round_trip_ns`` is the shortest one of ``samples``.
    """

    offset_ns: int
    uncertainty_ns: int
    at_ns: int
    round_trip_ns: int
    samples: int


@planned
class MachineClock:
    """A machine's clock. Kernels in one virtual time have no offsets."""

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
    """The content of clock.json."""

    format: int
    reference: str = ""
    dilation: int | None = field(default=None, metadata=OCCASIONAL)
    epoch_ns: int = 0
    machines: dict[str, MachineClock] = field(default_factory=dict)


def read_clocks(raw: Path) -> ClockRecord | None:
    """Read clock.json of a run on several machines; None for other runs. Raise ValueError if it cannot be read."""
    path = raw / CLOCK_FILE
    if not raw_exists(path):
        return None
    found = checked(ClockRecord, raw_value(read_raw_bytes(path)), path)
    if found.format != CLOCK_FORMAT:
        raise ValueError(f"{path} is not a record of clocks of format {CLOCK_FORMAT}")
    return found
