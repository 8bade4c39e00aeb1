# SPDX-License-Identifier: Apache-2.0
"""Queues that may be full: none holds more than its limit, and it drops only what finds no room."""

from __future__ import annotations

import numpy as np

from howdah.measure.sampled import Samples
from howdah.record.verdict import DURING, Check

_MANY = 20  # drops, after which one of the readings that saw some drops finds the queue full, or one packet short
_READ = ("sent_packets", "drops_packets", "backlog_packets")


def room_check(name: str, what: str, samples: Samples, room: tuple[int, int], end_ns: int) -> Check:
    """``room`` is the least that it holds when it drops, and the most that it ever holds, in packets.

    Between two readings in which it dropped, a queue held at most what it held before and what came meanwhile: that
    must reach the limit.
    """
    least, limit = room
    inside = np.flatnonzero((samples.time_ns >= 0) & (samples.time_ns < end_ns))
    if inside.size < 2 or not all(samples.has(column) for column in _READ):
        return Check(name, DURING, None, f"{what} was not read", unit="packets")
    held, sent, drops = (samples[column][inside] for column in ("backlog_packets", "sent_packets", "drops_packets"))
    dropped, peak = np.diff(drops), int(held.max())
    most = held[1:] + np.diff(sent)  # what left, and what is left
    total = int(dropped.sum())
    has = f"{limit} packets" if least == limit else f"{limit} packets, {least} of one flow or priority"
    message = f"{what} has room for {has}, held at most {peak} and dropped {total}"
    early = np.flatnonzero((dropped > 0) & (most < least))
    wrong = ""
    if peak > limit:
        wrong = "its limit is not in force"
    elif early.size:
        wrong = f"it dropped while it held at most {int(most[early[0]])}"
    elif total >= _MANY and peak < least - 1:
        wrong = "its limit is smaller"
    message += f"; {wrong}" if wrong else ""
    return Check(name, DURING, not wrong, message, limit, peak, 0, "packets")
