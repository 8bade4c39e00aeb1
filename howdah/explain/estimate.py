# SPDX-License-Identifier: Apache-2.0
"""A number read off a recording, with its interval and how it was found; or no number, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """``low`` and ``high`` enclose the true value as far as the recording tells; None is an open end.

    ``value`` is None where the recording cannot tell, and ``reason`` says why.
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
        """Whether the interval is at most so much of the value, on either side."""
        if self.value is None or self.low is None or self.high is None:
            return False
        return self.high - self.value <= share * self.value and self.value - self.low <= share * self.value


def absent(reason: str, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(None, low, high, reason=reason)
