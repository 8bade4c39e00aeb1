# SPDX-License-Identifier: Apache-2.0
"""Quantiles of many values, with intervals from order statistics, which assume no distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_BEYOND = 0.025  # on either side of an interval of 95 %


@dataclass(frozen=True)
class Quantile:
    """``value`` in the unit of the values; None where there are fewer than one value beyond it. ``low`` and ``high``
    are an interval of at least 95 %; None where so few values do not bound it."""

    value: float | None
    low: float | None
    high: float | None


def quantile(ordered: Sequence[float], share: float) -> Quantile:
    """The quantile of values in order of size, 0 < ``share`` < 1, between neighbours as ``numpy.quantile`` has it.

    The interval is that of the order statistics whose ranks bound it: B(n, share) is the number of values below it
    (David and Nagaraja, Order Statistics, 3rd edition, section 7.1).
    """
    count = len(ordered)
    if count * min(share, 1 - share) < 1 - 1e-9 and not (count and share == 0.5):
        return Quantile(None, None, None)
    below = _at_most(count, share)
    first = int(np.searchsorted(below, _BEYOND, side="right"))  # P(B < first) is at most that
    last = int(np.searchsorted(below, 1 - _BEYOND, side="left")) + 1
    low = ordered[first - 1] if first >= 1 else None
    high = ordered[last - 1] if last <= count else None
    return Quantile(float(np.quantile(ordered, share)), low, high)


def _at_most(count: int, share: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """P(B(count, share) <= k) for k = 0 … count."""
    k = np.arange(1, count + 1)
    steps = np.log((count - k + 1) / k) + math.log(share / (1 - share))
    logs = np.concatenate(([0.0], np.cumsum(steps)))
    terms = np.exp(logs - logs.max())
    return np.asarray(np.cumsum(terms / terms.sum()))
