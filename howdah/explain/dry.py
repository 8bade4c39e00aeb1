# SPDX-License-Identifier: Apache-2.0
"""Where a sender had nothing more to send: all that had left was acknowledged, and the next data came later.

A congestion window lets segments go for those that arrive, whatever ended its growth; so does a window that one ACK
answers as a whole.
"""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, RoundTrips
from howdah.explain.seen import Flags, Seen

_WAITED = 0.25  # of the base round trip


def dry(seen: Seen, course: SenderCourse, trips: RoundTrips) -> Flags:
    """Whether each ACK was of the last byte that had left, and the application was waited for behind it."""
    near = 0 if trips.at == SENDER else trips.near_ns or 0
    following = np.searchsorted(seen.sent.top, course.una_after, side="right")
    left = seen.sent.time_ns[np.minimum(following, seen.sent.time_ns.size - 1)]
    waited = left - near - course.time_ns > _WAITED * (trips.base_ns.value or 0)
    empty = course.nxt - course.una_after < course.mss_bytes
    return np.asarray(empty & waited & (following < seen.sent.time_ns.size))


def ran_dry(seen: Seen, course: SenderCourse, trips: RoundTrips, at: int) -> bool:
    """Whether that is so when what had left by an ACK is acknowledged, and nothing was sent again until then."""
    row = int(np.searchsorted(course.una_after, course.nxt[at]))
    again = course.again[course.again >= at]
    if row >= len(course) or (again.size and int(again.min()) <= row):
        return False
    return bool(dry(seen, course, trips)[row])


def drained(seen: Seen, course: SenderCourse, trips: RoundTrips) -> Flags:
    """ACKs from the last data that left to the one behind which the application was waited for."""
    ends = dry(seen, course, trips)
    last = np.unique(course.nxt[ends])
    return np.isin(course.nxt, last)
