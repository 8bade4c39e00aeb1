# SPDX-License-Identifier: Apache-2.0
"""Other flows of a recording that competed with one of them, as its twin has them.

Flows between the same two hosts, the same way, have the same path. Of others no recording says whether they shared it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from howdah.explain.explained import Explained

_MOST = 8
_LEAST_SHARE = 0.02  # of the recorded flow's bytes; what has less is noise


@dataclass(frozen=True)
class Competitor:
    """``start_s`` counts from the first packet of the recorded flow, and is negative where this one began before it.
    ``ended`` says whether it ended first."""

    flow: Explained
    start_s: float
    ended: bool


def competitors(flow: Explained, flows: Sequence[Explained]) -> tuple[list[Competitor], int]:
    """Those of ``flows`` that had the path of ``flow`` at the same time, the largest first, and how many more flows of
    that size were there between other hosts."""
    if flow.begins_s is None or flow.hosts is None:
        return [], 0
    names, found, elsewhere = {flow.name}, [], 0
    for each in sorted(flows, key=lambda other: -other.data_bytes):
        if each.begins_s is None or each.file != flow.file or each.name in names:
            continue
        start_s = each.begins_s - flow.begins_s
        overlaps = start_s < flow.duration_s and start_s + each.duration_s > 0
        if not overlaps or each.data_bytes < _LEAST_SHARE * flow.data_bytes:
            continue
        names.add(each.name)  # two taps may have recorded it
        if each.hosts == flow.hosts:
            found.append(Competitor(each, start_s, start_s + each.duration_s < flow.duration_s))
        else:
            elsewhere += 1
    return found[:_MOST], elsewhere
