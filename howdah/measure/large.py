# SPDX-License-Identifier: Apache-2.0
"""Connections of a group that do not fit into an initial window: how long they take and what they lose.

The Jump Start paper (section IV.A, Fig. 4) leaves out all others, because no start-up can make them faster or slower.
"""

from __future__ import annotations

import numpy as np

from howdah.measure.row import Sheet
from howdah.plan.plan import Flow

_RFC_3390_BYTES = 4380
QUANTILES = {"p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9}
SHORT_S = 1.0  # from here on the paper sees no difference


def initial_window_bytes(mss_bytes: int) -> int:
    """RFC 3390: min(4 MSS, max(2 MSS, 4380 bytes))."""
    return min(4 * mss_bytes, max(2 * mss_bytes, _RFC_3390_BYTES))


def is_large(flow: Flow, mss_bytes: int) -> bool:
    """Whether a connection of a known size carries more than the initial window of RFC 3390."""
    return flow.size_bytes is not None and flow.size_bytes > initial_window_bytes(mss_bytes)


def large_rows(
    sheet: Sheet,
    group: str,
    algorithm: str,
    role: str,
    times_s: list[float | None],
    counts: list[tuple[int, int]],
) -> None:
    """Rows of a group from its large connections: completion times (None: not completed), and segments (sent,
    retransmitted) of those that were counted. No rows of a group without large connections.

    ``large_connections``; ``large_completion_time_p25_s``, ``_median_s``, ``_p75_s``, ``_p90_s`` over the completed
    ones; ``large_within_1_s_share`` of all; ``large_retransmission_free_share``, ``large_retransmission_ratio``.
    """
    if not times_s:
        return
    name = {"algorithm": algorithm, "group": group, "role": role}
    done = [time for time in times_s if time is not None]
    sheet.add(None, "large_connections", len(times_s), "connections", **name)
    for label, share in QUANTILES.items():
        value = float(np.quantile(done, share)) if done else None
        why = "no connection larger than the initial window was completed"
        sheet.add(None, f"large_completion_time_{label}_s", value, "s", why, **name)
    within = sum(time <= SHORT_S for time in done) / len(times_s)
    sheet.add(None, "large_within_1_s_share", within, "ratio", **name)
    why = "the agent did not count segments of this group"
    clean = sum(again == 0 for _, again in counts) / len(counts) if counts else None
    sheet.add(None, "large_retransmission_free_share", clean, "ratio", why, **name)
    sent = sum(count for count, _ in counts)
    ratio = sum(again for _, again in counts) / sent if sent else None
    sheet.add(None, "large_retransmission_ratio", ratio, "ratio", why, **name)
