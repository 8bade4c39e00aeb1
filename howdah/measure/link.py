# SPDX-License-Identifier: Apache-2.0
"""The bottleneck link itself: how busy it was, whatever became of what it carried."""

from __future__ import annotations

import numpy as np

from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples

_FEWEST_READINGS = 2


def sent_bytes(bottleneck: Samples, begin_ns: int, end_ns: int) -> float | None:
    """Bytes that left the bottleneck's queue in an interval, frames as they are on the wire.

    Between two readings of the queue's counter its bytes count as sent evenly. None where the readings do not reach
    over the interval: they begin before it or at its beginning, and end with it or behind it, or a gap of their own
    usual length short of it.
    """
    if not bottleneck.has("sent_bytes") or len(bottleneck) < _FEWEST_READINGS or end_ns <= begin_ns:
        return None
    time = bottleneck.time_ns
    gap = int(np.diff(time).max())
    if time[0] > begin_ns + gap or time[-1] < end_ns - gap:
        return None
    begin, end = np.interp([begin_ns, end_ns], time, bottleneck["sent_bytes"])
    return float(end - begin)


def link_utilisation(data: Measured, begin_ns: int, end_ns: int) -> float | None:
    """What the bottleneck sent in an interval over what it can send in it, frames counted on both sides.

    Retransmissions and background count, and so does what is lost behind it: it is the link that is watched, as in the
    HyStart paper (section 5.1), not what the receivers got.
    """
    path = data.plan.path
    sent = sent_bytes(data.bottleneck, begin_ns, end_ns)
    if sent is None:
        return None
    carried = data.capacity.whole_bytes(begin_ns, end_ns)
    return sent / (carried * path.frame_bytes / path.mss_bytes) if carried else None


def link_rows(sheet: Sheet, data: Measured) -> None:
    """``link_utilisation`` of the measurement window."""
    begin, end = (edge * 1000 for edge in data.plan.measure_window_us)
    why = "the window is empty, or the queue was not read all through it"
    sheet.add(None, "link_utilisation", link_utilisation(data, begin, end), why)
