# SPDX-License-Identifier: Apache-2.0
"""When a link was busy, by the readings of what it sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, Integers, Reals

BUSY_SHARE = 0.9


@dataclass(frozen=True)
class Busy:
    """Between the readings at ``time_ns``, shape (readings,), the link was busy or not, shape (readings - 1,)."""

    time_ns: Integers
    busy: npt.NDArray[np.bool_]

    def at(self, time_ns: Integers) -> npt.NDArray[np.bool_]:
        """Whether it was at each time; never where nothing was read."""
        if not self.busy.size:
            return np.zeros(time_ns.size, dtype=bool)
        place = np.searchsorted(self.time_ns, time_ns) - 1
        inside = (place >= 0) & (place < self.busy.size)
        return np.asarray(inside & self.busy[np.clip(place, 0, self.busy.size - 1)])


NEVER = Busy(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))


def busy_of(readings: Samples, sent: str, carries: Callable[[Integers, Integers], Reals]) -> Busy:
    """Where a counter of bytes ``sent``, as frames, grew by 90 % or more of what the link ``carries`` meanwhile."""
    if len(readings) < 2 or not readings.has(sent):
        return NEVER
    most = carries(readings.time_ns[:-1], readings.time_ns[1:])
    return Busy(readings.time_ns, np.asarray(np.diff(readings[sent]) >= BUSY_SHARE * most))


def steady(bits_per_second: float) -> Callable[[Integers, Integers], Reals]:
    """What a link of one rate carries."""
    return lambda begin_ns, end_ns: np.asarray((end_ns - begin_ns) * (bits_per_second / 8 / SECOND_NS))
