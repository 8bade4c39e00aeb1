# SPDX-License-Identifier: Apache-2.0
"""Clocks of several machines as one: what was found out about them (raw/clock.json), and times put right by it.

Each machine has the epoch on its own CLOCK_MONOTONIC, named before the run. The offset of its clock from the clock of
the machine that ran the engine was bounded before and after, so that what it gained in between is known too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

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


def read_clocks(raw: Path) -> dict[str, Any] | None:
    """clock.json of a run on several machines; None of any other run. Raises ValueError for one that cannot be read."""
    path = raw / CLOCK_FILE
    if not raw_exists(path):
        return None
    value = raw_value(read_raw_bytes(path))
    if not isinstance(value, dict) or value.get("format") != CLOCK_FORMAT:
        raise ValueError(f"{path} is not a record of clocks of format {CLOCK_FORMAT}")
    return value


def correction_of(machine: dict[str, Any]) -> Correction:
    """Of an entry of ``machines`` in clock.json."""
    return Correction(float(machine["gain"]), int(machine["right_ns"]))
