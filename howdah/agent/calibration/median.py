# SPDX-License-Identifier: Apache-2.0
"""Medians of whole numbers.

``statistics`` of the standard library also loads fractions, decimals and random. A guest emulates every system call,
and these modules, which nothing else in the agent needs, would take a tenth of its start-up time.
"""

from __future__ import annotations

from collections.abc import Sequence


def median_low(values: Sequence[int]) -> int:
    """The middle value, or the lower of the two in the middle.

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
    """Minimum, median and maximum; None without values."""
    return [min(values), median_low(values), max(values)] if values else None
