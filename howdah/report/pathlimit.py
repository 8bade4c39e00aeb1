# SPDX-License-Identifier: Apache-2.0
"""The limits of a path: the reference lines of every figure, in the units of the series that show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from howdah.plan.path import Path

_SAME = 1.03  # repetitions differ a little, by their perturbation


@dataclass(frozen=True)
class PathLimit:
    """One limit. ``of`` computes it from a path, in the unit of the series."""

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
    """All limits of a path by name."""
    return {each.name: float(each.of(path)) for each in LIMITS.values()}


def common_limits(series: str, paths: list[dict[str, float]]) -> list[tuple[str, float]]:
    """The limits of a series that are equal on all paths, the largest first; ``paths`` has the limits of each path by
    name."""
    found = []
    for limit in reversed([each for each in LIMITS.values() if each.series == series]):
        values = [round(each[limit.name], 3) for each in paths if limit.name in each]
        if values and len(values) == len(paths) and max(values) <= _SAME * min(values):
            found.append((limit.name, min(values)))
    return found
