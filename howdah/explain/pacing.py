# SPDX-License-Identifier: Apache-2.0
"""What releases segments other than ACKs: pacing, and an application that writes piece by piece. Also where a sender
like BBR drains the queue of its start-up, and where the application ran out of data.

An application ran out of data where everything sent was acknowledged and the next data left later. A congestion window
releases data when ACKs arrive, however its growth ended.
"""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, RoundTrips, stamp_hz
from howdah.explain.seen import NEW, Flags, Seen

_OPENING, _PACED_SAMPLE = 10, 300  # segments that are looked at, from the end of the first window, which leaves at once
_PACED_SHARE = 0.04  # share of segments without an ACK from which on a sender paces; one that ACKs clock has none
_PACED_TICKS = 2  # steps of the stamps by which such a segment must be later
_MOST_BURST = 100  # segments that one ACK may release
# A drain begins at this share of the largest flight; over that part of it, less than this share of delivery is sent.
_DRAINED, _DRAIN_PART, _DRAIN_RATE = 0.5, 0.15, 0.42


def is_paced(seen: Seen, trips: RoundTrips) -> bool:
    """Whether new segments leave without an ACK: by the sender's own stamps, later than the first segment that echoes
    the same ACK; without stamps, and only at the sender, by the time since the last ACK."""
    sent = seen.sent
    fresh = np.flatnonzero(sent.kind == NEW)[_OPENING:_PACED_SAMPLE]
    if fresh.size < _OPENING:
        return False
    if seen.has_stamps:
        _, first, group = np.unique(sent.echo, return_index=True, return_inverse=True)
        waited = sent.stamp[fresh] - sent.stamp[first[group.reshape(-1)[fresh]]]
        hz = stamp_hz(seen)
        return hz is not None and float((waited >= max(_PACED_TICKS, 0.002 * hz)).mean()) >= _PACED_SHARE
    if trips.at != SENDER:
        return False
    last = np.searchsorted(seen.acks.place, sent.place[fresh]) - 1
    late = sent.time_ns[fresh] - seen.acks.time_ns[np.maximum(last, 0)]
    quick = float(np.percentile(np.diff(sent.time_ns), 5))
    return float((late > max(_MOST_BURST * quick, 1_000_000)).mean()) >= 0.3


def drain_begin(course: SenderCourse) -> int | None:
    """The ACK at which a sender like BBR begins to send much less than is delivered, with more in flight than later;
    None without one. In a recovery a sender sends as much as is delivered."""
    flight = course.flight
    part = int(_DRAIN_PART * flight.max())
    begin = int(np.argmax(flight >= _DRAINED * flight.max()))
    until = np.searchsorted(course.delivered, course.delivered + part)
    rows = np.arange(begin, len(course))
    rows = rows[until[rows] < len(course)]
    sent = course.sent[until[rows]] - course.sent[rows]
    got = np.maximum(course.delivered[until[rows]] - course.delivered[rows], 1)
    slow = rows[sent < _DRAIN_RATE * got]
    return int(slow[0]) if slow.size else None


def stays_empty(course: SenderCourse, trips: RoundTrips, at: int) -> bool:
    """Whether the queue of the start-up was gone soon after and stayed so, as after BBR's drain."""
    queue, when = trips.queue_ns, course.time_ns[trips.ack]
    if not queue.size:
        return False
    after = queue[when > course.time_ns[at] + 2 * int(queue.max() + (trips.base_ns.value or 0))]
    return bool(after.size) and float(np.median(after)) < 0.4 * float(queue.max())


def rate_stood(course: SenderCourse, at: int) -> bool:
    """Whether the last round before the exit delivered less than 1.25 times the one before; three such rounds end BBR's
    start-up."""
    number = course.round_of(at)
    if number < 3:
        return False
    starts = course.rounds[number - 3 : number + 1]
    got = np.diff(course.delivered[starts]) / np.maximum(np.diff(course.time_ns[starts]), 1)
    return bool(got[-1] < 1.25 * got[-2])


_WAITED = 0.25  # share of the base round trip by which the next data must be late
_SHORT = 0.9  # share of a full segment: longer ones are short for a few bytes of options only
_LEAST_MSS_BYTES = 536  # least MSS of a path: if all segments are smaller, the application writes them so
_ROUNDS_APART = 2  # rounds between two short segments of one sequence of pieces


def waits_for_data(seen: Seen, course: SenderCourse, trips: RoundTrips) -> Flags:
    """Whether each ACK acknowledged the last byte sent, and the next data left noticeably later."""
    near = 0 if trips.at == SENDER else trips.near_ns or 0
    following = np.searchsorted(seen.sent.top, course.una_after, side="right")
    left = seen.sent.time_ns[np.minimum(following, seen.sent.time_ns.size - 1)]
    waited = left - near - course.time_ns > _WAITED * (trips.base_ns.value or 0)
    empty = course.nxt - course.una_after < course.mss_bytes
    return np.asarray(empty & waited & (following < seen.sent.time_ns.size))


def ran_out_of_data(seen: Seen, course: SenderCourse, trips: RoundTrips, at: int) -> bool:
    """Whether the sender waits for data when everything sent by an ACK is acknowledged, without a retransmission until
    then."""
    row = int(np.searchsorted(course.una_after, course.nxt[at]))
    again = course.again[course.again >= at]
    if row >= len(course) or (again.size and int(again.min()) <= row):
        return False
    return bool(waits_for_data(seen, course, trips)[row])


def in_last_flight(seen: Seen, course: SenderCourse, trips: RoundTrips) -> Flags:
    """Whether each ACK is among those of a last flight before the sender waited for data."""
    ends = waits_for_data(seen, course, trips)
    last = np.unique(course.nxt[ends])
    return np.isin(course.nxt, last)


def written_in_pieces(seen: Seen, course: SenderCourse) -> Flags:
    """Whether the application writes piece by piece around each ACK: a new segment leaves that is not full because no
    more data wait. Full segments that leave steadily may be paced or written in that rhythm."""
    sent, found = seen.sent, np.zeros(len(course), bool)
    if seen.narrowed_bytes is not None or not course.of_sender:
        return found
    rest = (sent.end - sent.begin) % course.mss_bytes
    short = (rest > 0) & (rest < _SHORT * course.mss_bytes) if course.mss_bytes >= _LEAST_MSS_BYTES else rest >= 0
    ends = sent.top[short & (sent.kind == NEW) & (sent.top < sent.top[-1])]
    at = np.searchsorted(course.nxt, ends)
    rounds = np.unique(np.searchsorted(course.rounds, at[at < len(course)], side="right") - 1)
    # A single short segment may be the end of a message: only those that follow one another are pieces.
    apart = np.flatnonzero(np.diff(rounds) <= _ROUNDS_APART + 1)
    for first, last in zip(rounds[apart].tolist(), rounds[apart + 1].tolist(), strict=True):
        stop = int(course.rounds[last + 1]) if last + 1 < course.rounds.size else len(course)
        found[course.rounds[max(first, 0)] : stop] = True
    return found
