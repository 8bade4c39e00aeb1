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

# Constants of tcp_cubic.c: hystart_low_window, hystart_ack_delta_us, HYSTART_MIN_SAMPLES, HYSTART_DELAY_MIN and _MAX.
_LOW_WINDOW_PACKETS = 16
_ACK_DELTA_NS = 2_000_000
_MIN_SAMPLES = 8
_LEAST_DELAY_NS, _MOST_DELAY_NS = 4_000_000, 16_000_000
_MOST_ACK_DELAY_NS, _GSO_BYTES = 1_000_000, 4 * 65536  # bounds in hystart_ack_delay()
_MOST_ACKS = 400_000  # ACKs that are looked at
_NO_SAMPLE_NS = 1 << 62  # larger than any round trip


@dataclass(frozen=True)
class Detections:
    """The ACKs (places in the course) at which a detector speaks, the first of each round, in order.

    Each has what the detector looked at there and what that must exceed, in ns: how long the train of ACKs was; how far
    the least round trip of the round was above the base.
    """

    trains: dict[int, tuple[float, float]]
    delays: dict[int, tuple[float, float]]


@dataclass
class _HyStartRound:
    """A round, as hystart_reset() begins it: ``end`` is the number whose ACK ends it, ``last_ns`` the last ACK of the
    train."""

    end: float
    start_ns: int
    last_ns: int
    least_ns: int = _NO_SAMPLE_NS
    samples: int = 0
    train_found: bool = False
    delay_found: bool = False


def detections(course: SenderCourse, trips: RoundTrips, until: int) -> Detections:
    """What the detectors find up to the ACK ``until``."""
    samples, answers = _samples(course, trips)
    # ACKs with the same stamp let go in turn what the next stamp shows.
    sent = np.where(course.exact, course.nxt, np.interp(course.una, course.una[course.exact], course.nxt[course.exact]))
    nxt, flights = sent.tolist(), (sent - course.una).tolist()
    times, una = course.time_ns.tolist(), course.una_after.tolist()
    low = _LOW_WINDOW_PACKETS * course.mss_bytes
    least = int(trips.base_ns.value or 0) or _NO_SAMPLE_NS
    turn = _HyStartRound(int(course.nxt[0]), times[0], times[0])
    found = Detections({}, {})
    for at in range(min(until + 1, _MOST_ACKS, len(course))):
        sample = samples[at]
        if not answers[at]:
            continue
        if sample > 0:
            least = min(least, sample)
        if flights[at] < low:
            continue
        now = times[at]
        if una[at] > turn.end:
            turn = _HyStartRound(nxt[at], now, now)
        if now - turn.last_ns <= _ACK_DELTA_NS:
            turn.last_ns = now
            train = now - turn.start_ns
            need = (least + min(_MOST_ACK_DELAY_NS, _GSO_BYTES * least / (2 * flights[at]))) / 2
            if not turn.train_found and train > need:
                found.trains[at] = train, need
                turn.train_found = True
        if sample <= 0:
            continue
        turn.least_ns = min(turn.least_ns, sample)
        if turn.samples < _MIN_SAMPLES:
            turn.samples += 1
            continue
        rise, need = turn.least_ns - least, min(max(least / 8, _LEAST_DELAY_NS), _MOST_DELAY_NS)
        if not turn.delay_found and rise > need - trips.up_doubt_ns:
            found.delays[at] = rise, need
            turn.delay_found = True
    return found


def _samples(course: SenderCourse, trips: RoundTrips) -> tuple[list[int], list[bool]]:
    """The round trip in ns that each ACK gives, -1 without one; and whether it acknowledges or reports anything.

    A duplicate that reports more by SACK has a sample, too: the queue is as full as it was at the ACK before.
    """
    rtt = np.full(len(course), -1, np.int64)
    rtt[trips.ack] = trips.rtt_ns
    last_sample = np.maximum.accumulate(np.where(rtt > 0, np.arange(rtt.size), 0))
    reports = np.diff(course.delivered, prepend=course.delivered[:1]) > 0
    advances = course.una_after > course.una
    rtt = np.where(~advances & reports, rtt[last_sample], rtt)
    return rtt.tolist(), (advances | reports).tolist()
