# SPDX-License-Identifier: Apache-2.0
"""Quantiles of many values, with intervals from order statistics, which assume no distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from howdah.measure.statistics import interval_ranks


@dataclass(frozen=True)
class Quantile:
    """``value`` in the unit of the values; None where there are fewer than one value beyond it. ``low`` and ``high``
    are an interval of at least 95 %; None where so few values do not bound it."""

    value: float | None
    low: float | None
    high: float | None


def quantile(ordered: Sequence[float], share: float) -> Quantile:
    """The quantile of values in order of size, 0 < ``share`` < 1, between neighbours as ``numpy.quantile`` has it."""
    count = len(ordered)
    if count * min(share, 1 - share) < 1 - 1e-9 and not (count and share == 0.5):
        return Quantile(None, None, None)
    first, last = interval_ranks(count, share)
    low = ordered[first - 1] if first else None
    high = ordered[last - 1] if last <= count else None
    return Quantile(float(np.quantile(ordered, share)), low, high)
