# SPDX-License-Identifier: Apache-2.0
"""Where a sender had nothing more to send: all that had left was acknowledged, and the next data came later.

A congestion window lets segments go for those that arrive, whatever ended its growth; so does a window that one ACK
answers as a whole.
"""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, RoundTrips
from howdah.explain.seen import NEW, Flags, Seen

_WAITED = 0.25  # of the base round trip
_SHORT = 0.9  # of a full segment: options of a few bytes make none short
_LEAST_MSS_BYTES = 536  # no path takes less: segments that are all smaller are pieces
_ROUNDS_APART = 2  # a piece may last for so many


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


def fed(seen: Seen, course: SenderCourse) -> Flags:
    """ACKs around which the application writes piece by piece: a new segment that is not full leaves where nothing more
    waits. Whole segments that leave steadily are those of a sender that paces, or of such an application."""
    sent, found = seen.sent, np.zeros(len(course), bool)
    if seen.narrowed_bytes is not None or not course.of_sender:
        return found
    rest = (sent.end - sent.begin) % course.mss_bytes
    short = (rest > 0) & (rest < _SHORT * course.mss_bytes) if course.mss_bytes >= _LEAST_MSS_BYTES else rest >= 0
    ends = sent.top[short & (sent.kind == NEW) & (sent.top < sent.top[-1])]
    at = np.searchsorted(course.nxt, ends)
    rounds = np.unique(np.searchsorted(course.rounds, at[at < len(course)], side="right") - 1)
    # Pieces that come now and then end where they end: only those that follow one another are a flow's.
    apart = np.flatnonzero(np.diff(rounds) <= _ROUNDS_APART + 1)
    for first, last in zip(rounds[apart].tolist(), rounds[apart + 1].tolist(), strict=True):
        stop = int(course.rounds[last + 1]) if last + 1 < course.rounds.size else len(course)
        found[course.rounds[max(first, 0)] : stop] = True
    return found
