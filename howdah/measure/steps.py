# SPDX-License-Identifier: Apache-2.0
"""Values that change at instants, or come at them: their integral over time, and how often they change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from howdah.measure.trace import Integers, Reals


class Steps:
    """``base`` until the first of ``changes`` (time in ns, value from then on), which are sorted."""

    def __init__(self, base: float, changes: list[tuple[int, float]]) -> None:
        self._times = np.array([time for time, _ in changes], dtype=np.float64)
        self._values = np.array([base, *(value for _, value in changes)], dtype=np.float64)
        lengths = np.diff(self._times) * self._values[1:-1] if len(changes) else np.zeros(0)
        self._total = np.concatenate([np.zeros(1), np.cumsum(lengths)])

    @property
    def times(self) -> list[int]:
        return [int(time) for time in self._times]

    def at(self, time_ns: float) -> float:
        return float(self._values[np.searchsorted(self._times, time_ns, side="right")])

    def integral(self, time_ns: Integers | Reals | int) -> NDArray[np.float64]:
        """Value x nanoseconds from the first change (or time 0 without any) to ``time_ns``; negative before it."""
        at = np.asarray(time_ns, dtype=np.float64)
        if not self._times.size:
            return np.asarray(at * self._values[0], dtype=np.float64)
        inside = np.interp(at, self._times, self._total)
        before = np.minimum(at - self._times[0], 0.0) * self._values[0]
        after = np.maximum(at - self._times[-1], 0.0) * self._values[-1]
        return np.asarray(before + inside + after, dtype=np.float64)

    def weights(self, begin_ns: Integers, end_ns: Integers, weights: list[float]) -> NDArray[np.float64]:
        """Sum over the changes in each interval, its ends included; one weight a change."""
        total = np.concatenate([np.zeros(1), np.cumsum(weights)])
        first = np.searchsorted(self._times, begin_ns, side="left")
        last = np.searchsorted(self._times, end_ns, side="right")
        return np.asarray(total[last] - total[first], dtype=np.float64)


class Stairs:
    """``rate`` until time 0 and from ``end_ns`` on; between them ``height`` at each of the instants that ``until``
    counts."""

    def __init__(self, rate: float, end_ns: int, until: Callable[[Reals], Integers], height: float) -> None:
        self._rate, self._end_ns = rate, end_ns
        self._until, self._height = until, height

    def integral(self, time_ns: Integers | Reals | int) -> NDArray[np.float64]:
        """From time 0 to ``time_ns``, what comes at it included; negative before."""
        at = np.asarray(time_ns, dtype=np.float64)
        outside = np.minimum(at, 0.0) + np.maximum(at - self._end_ns, 0.0)
        come = self._until(np.minimum(at, float(self._end_ns)))
        return np.asarray(outside * self._rate + come * self._height, dtype=np.float64)
