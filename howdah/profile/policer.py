# SPDX-License-Identifier: Apache-2.0
"""``path.policer`` of a profile: a limit that drops what exceeds it and delays nothing."""

from __future__ import annotations

from pydantic import Field

from howdah.profile.field import Bytes, FieldError, Rate, Section
from howdah.quantity import format_duration, format_rate, format_size

_LONGEST_US = 270_000_000  # of a burst: the kernel counts it in 32 bits of 64 ns


class PolicerSection(Section):
    """Forward, in front of the bottleneck's queue: each frame takes its bytes from a bucket of tokens, which holds
    ``burst`` and fills at ``rate``; a frame that finds too few is dropped. The kernel's police action."""

    rate: Rate = Field(description="at which the bucket fills, link-layer frames counted")
    burst: Bytes = Field(description="what the bucket holds: what passes at once after a pause")

    def check(self, frame_bytes: int) -> None:
        """Raises FieldError for a policer that lets no full frame pass, or that the kernel cannot have."""
        if self.burst < frame_bytes:
            what = f"a burst of {format_size(self.burst)} drops every full frame, which has {frame_bytes} bytes"
            raise FieldError(f"{what}; give at least that, or a smaller path.mtu", "policer", "burst")
        if self.rate < 8:
            raise FieldError(f"{format_rate(self.rate)} is below a byte a second; give more", "policer", "rate")
        full_us = self.burst * 8_000_000 // self.rate
        if full_us > _LONGEST_US:
            what = f"a burst of {format_duration(full_us)} of the policer's rate; the kernel counts up to"
            raise FieldError(
                f"{what} {format_duration(_LONGEST_US)}; make burst smaller or rate higher", "policer", "burst"
            )
