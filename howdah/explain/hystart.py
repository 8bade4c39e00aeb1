# SPDX-License-Identifier: Apache-2.0
"""Where HyStart of Linux' cubic would have found the end of slow start, by the ACKs that a capture shows.

It is ``hystart_update()`` of net/ipv4/tcp_cubic.c, fed with the arrival, the round-trip time and the sender's state of
each ACK. It is evidence: a flow that leaves where one of its two detectors speaks, and loses nothing, left by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import RoundTrips

_LOW_WINDOW_PACKETS = 16
_ACK_DELTA_NS = 2_000_000
_MIN_SAMPLES = 8
_LEAST_DELAY_NS, _MOST_DELAY_NS = 4_000_000, 16_000_000
_MOST_ACK_DELAY_NS, _GSO_BYTES = 1_000_000, 4 * 65536  # hystart_ack_delay()
_MOST_ACKS = 400_000


@dataclass(frozen=True)
class Detections:
    """The ACKs (places in the course) at which a detector speaks, the first of each round, in order.

    Each has what the detector looked at there and what that must exceed, in ns: how long the train of ACKs was; how far
    the least round trip of the round was above the base.
    """

    trains: dict[int, tuple[float, float]]
    delays: dict[int, tuple[float, float]]


def detections(course: SenderCourse, trips: RoundTrips, until: int) -> Detections:
    """Up to the ACK ``until``."""
    rtt = np.full(len(course), -1, np.int64)
    rtt[trips.ack] = trips.rtt_ns
    # A duplicate that reports more by SACK has a sample, too: the queue is as full as it was at the ACK before.
    last_sample = np.maximum.accumulate(np.where(rtt > 0, np.arange(rtt.size), 0))
    reports = np.diff(course.delivered, prepend=course.delivered[:1]) > 0
    rtt = np.where((course.una_after <= course.una) & reports, rtt[last_sample], rtt)
    # ACKs with the same stamp let go in turn what the next stamp shows.
    nxt = np.where(course.exact, course.nxt, np.interp(course.una, course.una[course.exact], course.nxt[course.exact]))
    flight = (nxt - course.una).tolist()
    times, nxt, rtts = course.time_ns.tolist(), nxt.tolist(), rtt.tolist()
    una, answers = course.una_after.tolist(), ((course.una_after > course.una) | reports).tolist()
    low = _LOW_WINDOW_PACKETS * course.mss_bytes
    least = int(trips.base_ns.value or 0) or 1 << 62
    end = int(course.nxt[0])
    start = last = times[0]
    current, samples = 1 << 62, 0
    trains: dict[int, tuple[float, float]] = {}
    delays: dict[int, tuple[float, float]] = {}
    spoke = [False, False]
    for at in range(min(until + 1, _MOST_ACKS, len(course))):
        sample = rtts[at]
        if not answers[at]:
            continue
        if sample > 0:
            least = min(least, sample)
        if flight[at] < low:
            continue
        now = times[at]
        if una[at] > end:
            start = last = now
            end, current, samples = nxt[at], 1 << 62, 0
            spoke = [False, False]
        if now - last <= _ACK_DELTA_NS:
            last = now
            train = now - start
            need = (least + min(_MOST_ACK_DELAY_NS, _GSO_BYTES * least / (2 * flight[at]))) / 2
            if not spoke[0] and train > need:
                trains[at] = train, need
                spoke[0] = True
        if sample <= 0:
            continue
        current = min(current, sample)
        rise = min(max(least / 8, _LEAST_DELAY_NS), _MOST_DELAY_NS)
        if samples < _MIN_SAMPLES:
            samples += 1
        else:
            delay = current - least
            if not spoke[1] and delay > rise - trips.up_doubt_ns:
                delays[at] = delay, rise
                spoke[1] = True
    return Detections(trains, delays)
