# SPDX-License-Identifier: Apache-2.0
"""What the goodput of runs is made of, in words."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from howdah.record.result import Run
from howdah.record.shown import shown_flows

COUNTED = "Goodput: payload as it arrived at the receiver."
PROVED = (
    "Goodput: payload that ACKs prove to have arrived, at most what the path carries; no receiver counted segments."
)
_MOST_NAMES = 3


def goodput_words(runs: Sequence[Run]) -> str:
    """One sentence for the caption of their curves."""
    counted = [_is_counted(run) for run in runs]
    others = [run.name for run, is_counted in zip(runs, counted, strict=True) if not is_counted and _is_drawn(run)]
    if not others:
        return COUNTED
    if not any(counted):
        return PROVED
    named = ", ".join(others[:_MOST_NAMES])
    more = f" and {len(others) - _MOST_NAMES} more" if len(others) > _MOST_NAMES else ""
    return f"{COUNTED[:-1]}; of {named}{more} what ACKs prove to have arrived, at most what the path carries."


def _is_drawn(run: Run) -> bool:
    return run.table("tcp_info") is not None or run.table("tcp_probe") is not None


def _is_counted(run: Run) -> bool:
    """Whether the receivers of all flows that are shown counted segments."""
    table = run.table("tcp_info")
    if table is None or run.plan is None:
        return False
    own = pc.equal(table.column("end").cast(pa.string()), "receiver")
    own = pc.and_(own, pc.is_valid(table.column("data_segs_in_packets")))
    counted = set(table.column("flow").filter(own).unique().to_pylist())
    return {flow.id for flow in shown_flows(run.plan)} <= counted
