# SPDX-License-Identifier: Apache-2.0
"""Whether a sender paces, and where one like BBR ends its start-up: it drains the queue that it made."""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, RoundTrips, stamp_hz
from howdah.explain.seen import NEW, Seen

_OPENING, _PACED_SAMPLE = 10, 300  # segments: the first window leaves at once, whoever sends
_PACED_SHARE = 0.04  # a sender that ACKs clock has none
_PACED_TICKS = 2
_MOST_BURST = 100  # segments that one ACK lets go
_DRAINED, _DRAIN_PART, _DRAIN_RATE = 0.5, 0.15, 0.42  # of its largest flight, and of what is delivered


def is_paced(seen: Seen, trips: RoundTrips) -> bool:
    """Whether new segments leave though no ACK came: by the sender's own stamps, later than the first one that echoes
    the same ACK. Without stamps, at the sender alone, by the time since the last ACK."""
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
    """Of a sender like BBR: the ACK at which it begins to send much less than is delivered, while more is in flight
    than later. In a recovery it sends what is delivered."""
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
    """Whether the queue that the start-up made was gone soon after, as where a sender like BBR drains it."""
    queue, when = trips.queue_ns, course.time_ns[trips.ack]
    if not queue.size:
        return False
    after = queue[when > course.time_ns[at] + 2 * int(queue.max() + (trips.base_ns.value or 0))]
    return bool(after.size) and float(np.median(after)) < 0.4 * float(queue.max())


def rate_stood(course: SenderCourse, at: int) -> bool:
    """Whether a round before the exit delivered no more than 1.25 times that before: three such rounds end it."""
    number = course.round_of(at)
    if number < 3:
        return False
    starts = course.rounds[number - 3 : number + 1]
    got = np.diff(course.delivered[starts]) / np.maximum(np.diff(course.time_ns[starts]), 1)
    return bool(got[-1] < 1.25 * got[-2])
