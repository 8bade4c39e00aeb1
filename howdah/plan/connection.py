# SPDX-License-Identifier: Apache-2.0
"""What a traffic model makes: when a connection starts and how much it carries."""

from __future__ import annotations

from dataclasses import dataclass

MOST_GENERATED = 10_000  # of all groups; each needs a port of its own


@dataclass(frozen=True)
class Connection:
    """One connection of a group; microseconds after the epoch, ``stop_us`` None: the size or the run ends it."""

    start_us: int
    stop_us: int | None
    size_bytes: int | None
    bursts: tuple[tuple[int, int], ...] = ()
