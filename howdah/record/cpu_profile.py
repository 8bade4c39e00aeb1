# SPDX-License-Identifier: Apache-2.0
"""raw/cpu-profile.json: what perf saw of a guest's kernel, beside its samples."""

from __future__ import annotations

from dataclasses import dataclass, field

from howdah.codec import OCCASIONAL

PROFILE_FILE, SAMPLES_FILE = "cpu-profile.json", "cpu-profile.txt"


@dataclass
class CpuProfile:
    """``why`` there are no samples, None where there are. ``stamps`` are the guest's CLOCK_MONOTONIC in ns and the
    host's CLOCK_REALTIME in us at one instant. ``inlined_why`` nothing is known of inlined functions; "" until
    somebody looked for their names."""

    event: str
    period_ns: int
    format: int = 1
    samples: int = 0
    lost: int = 0
    why: str | None = None
    stamps: list[tuple[int, int]] = field(default_factory=list)
    inlined_why: str | None = field(default="", metadata=OCCASIONAL)
