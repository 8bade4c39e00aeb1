# SPDX-License-Identifier: Apache-2.0
"""Names of the events and reasons of ``howdah:slow_start``, and the units their numbers are in.

The numbers are those of modules/include/slow_start_event.h; a position in these tuples is a number there.
"""

from __future__ import annotations

EVENTS = (
    "exit",
    "phase",
    "resume",
    "estimate",
    "jump",
    "jump-end",
    "drain-end",
    "retreat",
)

REASONS = (
    "none",
    "ack-train",
    "delay",
    "loss",
    "rto",
    "congestion-signal",
    "initial-ssthresh",
    "delivery-rate",
    "css-rounds",
    "queue-estimate",
    "packet-pair",
    "rate-estimate",
    "inflight-limit",
    "jump-size",
    "cached",
    "rtt-growth",
    "spurious",
)


def name_of(number: int, names: tuple[str, ...]) -> str:
    """The name of an event or reason; one that is newer than this program is ``unknown-N``."""
    return names[number] if 0 <= number < len(names) else f"unknown-{number}"
