# SPDX-License-Identifier: Apache-2.0
"""Medians of whole numbers.

``statistics`` of the standard library loads fractions, decimals and random numbers, too. A guest emulates every system
call, and its agent would use a tenth of the time it takes to start for modules that nothing else in it needs.
"""

from __future__ import annotations

from collections.abc import Sequence


def median_low(values: Sequence[int]) -> int:
    """The middle one, or the lower of the two in the middle.

    >>> median_low([5, 1, 3]), median_low([5, 1, 3, 2])
    (3, 2)
    """
    return sorted(values)[(len(values) - 1) // 2]


def median(values: Sequence[int]) -> float:
    """
    >>> median([5, 1, 3]), median([5, 1, 3, 2])
    (3.0, 2.5)
    """
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def summary(values: Sequence[int]) -> list[int] | None:
    """Least, median and largest; None of nothing."""
    return [min(values), median_low(values), max(values)] if values else None
