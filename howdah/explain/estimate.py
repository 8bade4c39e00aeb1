# SPDX-License-Identifier: Apache-2.0
"""A number estimated from a recording, with its interval and how it was found; or the reason why it is not known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """``low`` and ``high`` enclose the true value as far as the recording shows; None is an open end. ``value`` is None
    if the recording does not show it, and ``reason`` says why.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    how: str = ""
    reason: str = ""

    @property
    def known(self) -> bool:
        return self.value is not None

    def within(self, share: float) -> bool:
        """Whether the interval extends at most this share of the value to either side."""
        if self.value is None or self.low is None or self.high is None:
            return False
        return self.high - self.value <= share * self.value and self.value - self.low <= share * self.value


def absent(reason: str, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(None, low, high, reason=reason)
