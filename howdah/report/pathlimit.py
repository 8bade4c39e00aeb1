# SPDX-License-Identifier: Apache-2.0
"""What a path can hold: the reference lines of every figure, in the units of the series that show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from howdah.plan.path import Path

_SAME = 1.03  # repetitions differ a little, by their perturbation


@dataclass(frozen=True)
class PathLimit:
    """``of`` is in the unit of the series."""

    name: str
    series: str
    of: Callable[[Path], float]


# The least of a series first.
LIMITS = {
    "bdp_packets": PathLimit("BDP", "cwnd", lambda path: path.bdp_packets),
    "bdp_and_buffer_packets": PathLimit("BDP + buffer", "cwnd", lambda path: path.full_packets),
    "rtt_ms": PathLimit("propagation", "rtt", lambda path: path.rtt_us / 1e3),
    "full_rtt_ms": PathLimit("buffer full", "rtt", lambda path: path.full_rtt_ms),
    "capacity_mbit": PathLimit("capacity", "goodput", lambda path: path.capacity_goodput_bits_per_second / 1e6),
    "buffer_kb": PathLimit("buffer", "queue", lambda path: path.buffer_bytes / 1e3),
}


def limits_of(path: Path) -> dict[str, float]:
    """All, by name."""
    return {each.name: float(each.of(path)) for each in LIMITS.values()}


def common_limits(series: str, paths: list[dict[str, float]]) -> list[tuple[str, float]]:
    """Those of a series, the most first, that are the same on all paths; ``paths`` hold the limits of each by name."""
    found = []
    for limit in reversed([each for each in LIMITS.values() if each.series == series]):
        values = [round(each[limit.name], 3) for each in paths if limit.name in each]
        if values and len(values) == len(paths) and max(values) <= _SAME * min(values):
            found.append((limit.name, min(values)))
    return found
