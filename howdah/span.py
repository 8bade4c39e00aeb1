# SPDX-License-Identifier: Apache-2.0
"""How long a plan takes on its own clock. Plans are given as plan.json has them, which is how the agent reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A queue that takes longer than this to empty is filled only in part when the path is measured, and a flow that the
# end of a run leaves with data of that size is reset.
MOST_FILLED_US = 30_000_000
MOST_HELD_US = 3_600_000_000  # what the queues of one way may take to empty
LONGEST_QUIET_US = 30_000_000  # for what flows left over, where no measurement of the path waits for the end of it


def forward_queue_us(path: Mapping[str, Any]) -> int:
    """How long the full queues of the forward way take to empty, all at the bottleneck's rate."""
    queued_bytes = path["buffer_bytes"] + sum(hop["buffer_bytes"] for hop in path.get("hops", []))
    return int(queued_bytes * 8_000_000 // path["rate_bits_per_second"])


def reverse_queue_us(path: Mapping[str, Any]) -> int:
    """The same of the way back, where that has a rate of its own: full of full frames."""
    rate = path.get("reverse_rate_bits_per_second")
    return int((path.get("reverse_buffer_bytes") or 0) * 8_000_000 // rate) if rate else 0


def holding_us(path: Mapping[str, Any]) -> int:
    """How long packets may stay in the queues of both ways once nobody sends any more."""
    return forward_queue_us(path) + reverse_queue_us(path)


def leaving_us(path: Mapping[str, Any], rtt_us: int) -> int:
    """From the end of the flows until what they left has left: two windows at most, and what the queues hold then.

    A flow whose two windows would take longer than ``MOST_FILLED_US`` is reset; what the queues hold is waited for.
    """
    forward_us, reverse_us = forward_queue_us(path), reverse_queue_us(path)
    windows_us = 4 * (rtt_us + min(forward_us, MOST_FILLED_US) + min(reverse_us, MOST_FILLED_US))
    return windows_us + rtt_us + forward_us + reverse_us


def end_us(plan: Mapping[str, Any]) -> int:
    """From the epoch to when the run must be over: flows, silence, and the second measurement of the path."""
    calibration = plan["calibration"]
    if calibration["enabled"]:
        return int(calibration["after_us"] + calibration["phase_us"] + calibration["settle_us"])
    return int(plan["duration_us"]) + quiet_us(plan["path"])


def quiet_us(path: Mapping[str, Any]) -> int:
    """How long silence is waited for after the flows where no measurement of the path follows."""
    return LONGEST_QUIET_US + leaving_us(path, path["rtt_us"])
