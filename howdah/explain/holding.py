# SPDX-License-Identifier: Apache-2.0
"""What held a flow back, in shares of its time, as a capture shows it.

The kinds and their order are those of howdah/measure/held.py, as far as packets show them: the congestion window and
the send buffer are invisible from outside. That module reads the kernel's state; this one infers it from the flight,
and time that fits no kind is ``unknown``.
"""

from __future__ import annotations

import numpy as np

from howdah.explain.course import SenderCourse, in_repair
from howdah.explain.delay import RoundTrips
from howdah.explain.pacing import in_last_flight, written_in_pieces
from howdah.explain.path import SeenPath
from howdah.explain.rate import busy_ns
from howdah.explain.sacked import HALF
from howdah.explain.seen import Flags, Seen
from howdah.explain.startup import StartUp
from howdah.held import HeldBy
from howdah.measure.held import FULL_SHARE, Holding
from howdah.measure.interval import GROWS

_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_SECOND_NS = 1e9
_HANDSHAKE_WINDOW = 65535  # bytes; the window of a SYN is not scaled
_KINDS = tuple(HeldBy)


def holding_of(seen: Seen, course: SenderCourse, trips: RoundTrips, start: StartUp, path: SeenPath) -> Holding | None:
    """Return the shares of the time from the first to the last ACK; None with too few ACKs."""
    if len(course) < 3 or trips.base_ns.value is None or not course.of_sender:
        return None
    took = np.diff(course.time_ns)
    code = _codes(course, trips, start, path, in_last_flight(seen, course, trips) | written_in_pieces(seen, course))[1:]
    beyond = (course.window_bytes << seen.excess_scale)[1:] >= HALF  # no application stalled: it may be the window
    code = np.where(beyond & (code == _KINDS.index(HeldBy.APPLICATION)), _KINDS.index(HeldBy.UNKNOWN), code)
    seconds = {
        kind: float(took[code == number].sum()) / _SECOND_NS
        for number, kind in enumerate(_KINDS)
        if (code == number).any()
    }
    span = float(took.sum()) / _SECOND_NS
    if span <= 0:
        return None
    limited = np.isin(
        code, [_KINDS.index(kind) for kind in (HeldBy.RECEIVE_BUFFER, HeldBy.AUTOTUNING, HeldBy.HANDSHAKE_WINDOW)]
    )
    window = int(course.window_bytes[1:][limited].max()) if limited.any() else None
    return Holding(seconds, span, window)


def _codes(course: SenderCourse, trips: RoundTrips, start: StartUp, path: SeenPath, waits: Flags) -> np.ndarray:
    base = int(trips.base_ns.value or 0)
    count = len(course)
    mss = course.mss_bytes
    flight, window = course.flight, course.window_bytes
    lasts = np.diff(course.time_ns, prepend=course.time_ns[:1])
    known_window = window >= 0
    full = known_window & (window - flight < 2 * mss)
    repaired = in_repair(course)
    before_again = np.isin(np.arange(count) - 1, np.maximum(course.again, 0))
    timeouts = (lasts >= base + _LEAST_TIMEOUT_NS) & (course.una < course.nxt) & before_again
    ended = course.nxt >= int(course.nxt[-1])
    idle = (flight < mss) & ~(known_window & (window < mss))
    at_rate = _at_rate(course, trips, path)
    growing = np.arange(count) <= (start.end if start.end is not None else count)
    largest = np.maximum.accumulate(window)
    grows = known_window & (window.max() > GROWS * largest)
    handshake = known_window & (window <= _HANDSHAKE_WINDOW) & (np.arange(count) <= 1)
    most = np.maximum.accumulate(flight)
    cut = ~growing & (flight < most - 2 * mss) & ~ended
    paced = np.full(count, start.paced)
    cases: list[tuple[Flags, HeldBy]] = [
        (idle & ~ended, HeldBy.APPLICATION),
        (timeouts, HeldBy.TIMEOUT),
        (full & handshake, HeldBy.HANDSHAKE_WINDOW),
        (full & grows, HeldBy.AUTOTUNING),
        (full, HeldBy.RECEIVE_BUFFER),
        (at_rate, HeldBy.BANDWIDTH),
        (_maybe_at_rate(course, trips, path) & ~growing & ~ended, HeldBy.UNKNOWN),
        (repaired, HeldBy.RECOVERY),
        ((_lacks_data(course) | waits) & ~ended, HeldBy.APPLICATION),
        (growing & ~ended, HeldBy.CONGESTION_WINDOW),
        (paced & ~ended, HeldBy.PACING),
        (cut, HeldBy.WINDOW_CUT),
        (~ended, HeldBy.CONGESTION_WINDOW),
    ]
    code = np.select([where for where, _ in cases], [_KINDS.index(kind) for _, kind in cases], -1)
    # What held back the flight before the last one holds back the last one, too.
    known = np.maximum.accumulate(np.where(code >= 0, np.arange(count), -1))
    return np.where(known >= 0, code[np.maximum(known, 0)], _KINDS.index(HeldBy.CONGESTION_WINDOW))


def _at_rate(course: SenderCourse, trips: RoundTrips, path: SeenPath) -> Flags:
    """Whether the last round trip delivered 90 % of the path's rate, at each ACK."""
    if path.rate.value is None:
        return np.zeros(len(course), bool)
    window = np.maximum(_smoothed(course, trips), 1)
    before = np.searchsorted(course.time_ns, course.time_ns - window, side="right") - 1
    got = course.delivered - np.where(before >= 0, course.delivered[np.maximum(before, 0)], 0)
    whole = path.rate.value * window / 8e9 * path.payload_share
    return np.asarray(got >= FULL_SHARE * whole)


def _maybe_at_rate(course: SenderCourse, trips: RoundTrips, path: SeenPath) -> Flags:
    """Whether there was a queue at each ACK while the path's rate is not known, so that the flow may have reached
    it."""
    if path.rate.value is not None or not trips.ack.size:
        return np.zeros(len(course), bool)
    queue = np.interp(course.time_ns, course.time_ns[trips.ack], trips.queue_ns)
    return np.asarray(queue > busy_ns(trips))


def _smoothed(course: SenderCourse, trips: RoundTrips) -> np.ndarray:
    found = (
        np.interp(course.time_ns, course.time_ns[trips.ack], trips.rtt_ns) if trips.ack.size else np.zeros(len(course))
    )
    return np.maximum(found, trips.base_ns.value or 0.0).astype(np.int64)


def _lacks_data(course: SenderCourse) -> Flags:
    """Whether much less is in flight than shortly before without a loss, because the application had no data."""
    flight = course.flight.astype(np.float64)
    step = 64
    recent = np.array([flight[max(at - step, 0) : at + 1].max() for at in range(0, flight.size, step)] or [0.0])
    recent = np.repeat(recent, step)[: flight.size]
    return np.asarray((flight < 0.25 * recent) & (np.diff(course.nxt, append=course.nxt[-1:]) == 0))
