# SPDX-License-Identifier: Apache-2.0
"""Where growth ends: the fall of D = flight - acknowledged, in packets (``gain``), which startup.py explains."""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, Reals, RoundTrips
from howdah.explain.hystart import Detections
from howdah.explain.seen import AGAIN, FILLS, Seen
from howdah.ingest.source import Integers

_LEAST_FALL_PACKETS = 6  # fall of D, beyond the size of the ACKs, that counts at all
_FALL = 0.35  # share of the flight by which D must fall to have fallen for good
_KNEE_PACKETS = 12  # packets acknowledged over which the fall of D is measured
_KNEE_SHARE = 0.6  # fall of D per packet acknowledged from which on growth has ended
_GREW_ON = 0.25  # fall of D per packet acknowledged below which growth went on
_FEW_PACKETS = 8  # packets by which D may be lower at a repair without having fallen
FEW_ACKS = 4  # ACKs that are too few to judge, or one event
_APART_PACKETS = 6  # packets acknowledged between two events that can be distinguished
_GREW_ON_PACKETS = 24  # packets acknowledged since a detector that had no effect
_ALLOWED_FALL = 0.15  # share of the flight by which D may fall after a repair that was undone
_PASSED_OVER = 2  # trains of ACKs, in different rounds, that a varying delay does not imitate


def last_growth(gain: Reals, course: SenderCourse, first_repair: int | None) -> int | None:
    """The last ACK at which D has not fallen; None if D never falls for good before the first repair.

    D has fallen for good when it is lower by a third of what is in flight. It has also fallen if, at the first repair,
    it is lower than the size of the ACKs explains.
    """
    flight = course.flight / course.mss_bytes
    steps = np.diff(course.una, prepend=course.una[:1]) / course.mss_bytes
    step = float(np.percentile(steps, 90)) if steps.size else 1.0
    rows = np.flatnonzero(course.exact)
    if first_repair is not None:
        rows = rows[rows <= first_repair]
    if not rows.size:
        return first_repair
    # ACKs that arrive together are answered after all are read: D has not fallen where it recovers later.
    gain = gain.copy()
    gain[rows] = np.maximum.accumulate(gain[rows][::-1])[::-1]
    most = np.maximum.accumulate(gain[rows])
    slack = np.maximum(3.0, step)
    below = most - gain[rows]
    fallen = rows[below > np.maximum(slack + _LEAST_FALL_PACKETS, _FALL * flight[rows])]
    until = int(fallen[0]) if fallen.size else None
    if first_repair is not None and (until is None or first_repair < until):
        if below[-1] <= slack + _FEW_PACKETS:
            return first_repair
        until = first_repair
    if until is None:
        return None
    return _knee(rows[rows <= until], gain, course, step)


def _knee(rows: Integers, gain: Reals, course: SenderCourse, step: float) -> int | None:
    """The ACK at which D began to fall towards the last of these ACKs. Before it, the last packets acknowledged lowered
    D by less than most of their number. A single step of D is a pause."""
    una = course.una[rows] / course.mss_bytes
    back = np.searchsorted(una, una - max(_KNEE_PACKETS, 3 * step))
    falls = (gain[rows[back]] - gain[rows]) >= _KNEE_SHARE * np.maximum(una - una[back], 1e-9)
    flat = np.flatnonzero(~falls)
    if not flat.size:
        return int(rows[0])
    first, last = int(back[flat[-1]]), int(flat[-1])
    window = gain[rows[first : last + 1]]
    return int(rows[first + int(np.flatnonzero(window >= window.max() - 0.5)[-1])])


def first_repair(seen: Seen, course: SenderCourse, gain: Reals) -> int | None:
    """The first repair that was not undone. A sender that learns that the original had arrived may restore its state
    (RFC 3522, RFC 5682)."""
    again = np.flatnonzero(np.isin(seen.sent.kind, (AGAIN, FILLS)))
    needed = ~np.isin(again, seen.needless)
    at = np.maximum(course.again, 0)
    places: list[int] = np.unique(at).tolist()
    for place in places:
        if needed[at == place].any():
            return place
        later = gain[int(np.searchsorted(course.una, course.nxt[place])) :]
        if later.size < FEW_ACKS or float(later.max()) < float(gain[place]) - _allowed_fall(course, place):
            return place
    return None


def _allowed_fall(course: SenderCourse, at: int) -> float:
    """The packets by which D may be lower after a repair that was undone: half of what reduces a window."""
    return _FEW_PACKETS + _APART_PACKETS + _ALLOWED_FALL * float(course.flight[at]) / course.mss_bytes


def left_before(
    gain: Reals, course: SenderCourse, found: Detections, loss: int, trips: RoundTrips
) -> tuple[int | None, bool]:
    """Return the ACK at which a detector ended growth shortly before a loss showed, if D has since fallen by most of
    what was acknowledged; and whether every detector that spoke left enough time to judge. A sender without HyStart
    grows on after a detector, and one that grew on for long has none."""
    told, passed_over = True, 0
    exact = np.maximum.accumulate(np.where(course.exact, np.arange(len(course)), 0))
    for at in sorted({*found.trains, *found.delays}):
        begin, end = int(exact[at]), int(exact[loss])
        acked = float(course.una[end] - course.una[begin]) / course.mss_bytes
        taken = float(gain[begin] - gain[end]) / max(acked, 1.0)
        if acked >= _APART_PACKETS and taken >= _KNEE_SHARE:
            return at, True
        certain = trips.at == SENDER or (at in found.trains and not trips.near_varies)
        grew_on = acked >= _GREW_ON_PACKETS and taken < _GREW_ON
        passed_over += grew_on and at in found.trains
        if (certain and grew_on) or passed_over >= _PASSED_OVER:
            return None, True
        told &= acked >= _APART_PACKETS and taken < _GREW_ON
    return None, told
