# SPDX-License-Identifier: Apache-2.0
"""Where HyStart of Linux' cubic would have found the end of slow start, by the ACKs that a capture shows.

It is ``hystart_update()`` of net/ipv4/tcp_cubic.c, fed with the arrival, the round-trip time and the sender's state of
each ACK. It is evidence: a flow that leaves where one of its two detectors speaks, and loses nothing, left by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import Course
from howdah.explain.delay import RoundTrips

_LOW_WINDOW_PACKETS = 16
_ACK_DELTA_NS = 2_000_000
_MIN_SAMPLES = 8
_LEAST_DELAY_NS, _MOST_DELAY_NS = 4_000_000, 16_000_000
_MOST_ACKS = 400_000


@dataclass(frozen=True)
class Detections:
    """The ACK (its place in the course) at which each detector speaks first; None where it does not.

    ``train_ns`` is how long the train of ACKs was and ``train_need_ns`` how long it had to be, at the ACK ``at`` that
    was asked about; ``delay_ns`` and ``delay_need_ns`` likewise: how far the least of a round was above the base.
    """

    train: int | None
    delay: int | None
    train_ns: float | None
    train_need_ns: float | None
    delay_ns: float | None
    delay_need_ns: float | None


def detections(course: Course, trips: RoundTrips, until: int, *, paced: bool) -> Detections:
    """Up to the ACK ``until``, of which the evidence is told."""
    rtt = np.full(len(course), -1, np.int64)
    rtt[trips.ack] = trips.rtt_ns
    times, nxt = course.time_ns.tolist(), course.nxt.tolist()
    before, una = course.una.tolist(), course.una_after.tolist()
    flight, rtts = (course.flight // max(course.mss_bytes, 1)).tolist(), rtt.tolist()
    train = delay = None
    end = int(course.nxt[0]) if len(course) else 0
    start = last = times[0] if times else 0
    current, samples, least = 1 << 62, 0, int(trips.base_ns.value or 0) or 1 << 62
    train_length = delay_rise = 0.0
    for at in range(min(until + 1, _MOST_ACKS, len(course))):
        sample = rtts[at]
        if una[at] <= before[at]:
            continue
        if sample > 0:
            least = min(least, sample)
        if flight[at] < _LOW_WINDOW_PACKETS:
            continue
        now = times[at]
        if una[at] > end:
            start = last = now
            end, current, samples = nxt[at], 1 << 62, 0
        if now - last <= _ACK_DELTA_NS:
            last = now
            train_length = now - start
            if train is None and train_length > (least if paced else least / 2):
                train = at
        if sample <= 0:
            continue
        current = min(current, sample)
        if samples < _MIN_SAMPLES:
            samples += 1
        else:
            delay_rise = current - least
            if delay is None and delay_rise > min(max(least / 8, _LEAST_DELAY_NS), _MOST_DELAY_NS):
                delay = at
    known = least < 1 << 62
    return Detections(
        train,
        delay,
        train_length if known else None,
        (least if paced else least / 2) if known else None,
        delay_rise if known else None,
        min(max(least / 8, _LEAST_DELAY_NS), _MOST_DELAY_NS) if known else None,
    )
