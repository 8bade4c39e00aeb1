# SPDX-License-Identifier: Apache-2.0
"""The state of a sender at the arrival of each ACK, wherever the tap was; and the course of a flow, recorded or run, at
a few times.

A capture at the sender shows the state directly. Elsewhere, data that echo stamps older than an ACK's were sent before
it arrived. Without stamps the delay between sender and tap is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.delay import SENDER, Reals, RoundTrips
from howdah.explain.seen import AGAIN, FILLS, Flags, Seen
from howdah.ingest.source import Integers
from howdah.measure.rounds import raw_rtt, round_starts
from howdah.measure.trace import FlowTrace
from howdah.profile.experiment import RecordedCourseSection


@dataclass(frozen=True)
class SenderCourse:
    """The state before each ACK was processed, as in the table tcp_probe: shape (ACKs,), bytes from the first one of
    data. ``sent`` includes retransmissions. ``again`` has for each retransmission the ACK at which it left (-1: before
    the first), and ``again_begin`` its first byte.

    ``exact``: the state is that before this very ACK; otherwise, of an earlier one with the same stamp. ``of_sender``:
    ``nxt`` and ``sent`` are the sender's; otherwise, of what passed the tap.
    """

    time_ns: Integers
    nxt: Integers
    sent: Integers
    una: Integers
    una_after: Integers
    delivered: Integers
    window_bytes: Integers
    mss_bytes: int
    rounds: Integers
    again: Integers
    again_begin: Integers
    exact: Flags
    of_sender: bool

    @property
    def flight(self) -> Integers:
        return self.nxt - self.una

    def __len__(self) -> int:
        return self.time_ns.size

    def round_of(self, at: int) -> int:
        return int(np.searchsorted(self.rounds, at, side="right")) - 1


def sender_course(seen: Seen, trips: RoundTrips) -> SenderCourse | None:
    """Return the sender's course, None if its state cannot be known: the tap is away from it and the near part of the
    round trip is not known."""
    sent, acks = seen.sent, seen.acks
    if trips.near_ns is None:
        return None
    if trips.at == SENDER or trips.near_ns == 0:
        at = np.searchsorted(sent.place, acks.place)
    elif seen.has_stamps:
        at = np.searchsorted(sent.echo, acks.stamp, side="left")
    else:
        at = np.searchsorted(sent.time_ns, acks.time_ns + trips.near_ns, side="left")
    nxt = np.where(at > 0, sent.top[np.maximum(at - 1, 0)], sent.begin[0])
    total = np.cumsum(sent.end - sent.begin)
    gone = np.where(at > 0, total[np.maximum(at - 1, 0)], 0)
    exact = np.ones(at.size, bool)
    if seen.has_stamps and trips.at != SENDER and trips.near_ns:
        exact = np.diff(acks.stamp, prepend=acks.stamp[:1] - 1) > 0
    first = int(min(sent.begin[0], acks.una[0]))
    una = np.concatenate([[first], acks.una[:-1]])
    nxt = np.maximum(np.maximum.accumulate(nxt), una)
    window = np.concatenate([acks.window_bytes[:1], acks.window_bytes[:-1]])
    again = np.flatnonzero((sent.kind == AGAIN) | (sent.kind == FILLS))
    if trips.at == SENDER or trips.near_ns == 0:
        left = np.searchsorted(acks.place, sent.place[again]) - 1
    elif seen.has_stamps:
        left = np.searchsorted(acks.stamp, sent.echo[again], side="left")
    else:
        left = np.searchsorted(acks.time_ns, sent.time_ns[again] - trips.near_ns, side="right") - 1
    return SenderCourse(
        acks.time_ns,
        nxt,
        gone,
        una,
        acks.una,
        acks.delivered,
        window,
        seen.mss_bytes,
        _rounds(una, nxt),
        np.minimum(left, acks.time_ns.size - 1),
        sent.begin[again],
        exact,
        trips.at == SENDER or trips.near_ns == 0 or seen.has_stamps,
    )


def _rounds(una: Integers, nxt: Integers) -> Integers:
    """The ACKs at which rounds begin. ACKs that arrive while nothing is outstanding, as with a client's requests, begin
    none."""
    busy = np.flatnonzero(nxt > una)
    return np.asarray(busy[round_starts(una[busy], nxt[busy])])


def in_repair(course: SenderCourse) -> Flags:
    """Whether each ACK is in a repair: from a retransmission until everything sent by then is acknowledged."""
    found = np.zeros(len(course), bool)
    end = 0
    for at in np.unique(np.maximum(course.again, 0)).tolist():
        until = int(np.searchsorted(course.una, course.nxt[at]))
        found[max(at, end) : until] = True
        end = max(end, until)
    return found


_POINTS = 160  # times at which a course is kept, at most
_LONGEST_S = 60.0  # part of a flow of which the course is kept
_FEW_SAMPLES = 3  # ACKs, and round trips, that a course needs


@dataclass(frozen=True)
class FlowPoints:
    """A flow at some times, all of shape (n,). ``time_s`` counts from the start of the connection. The state is that of
    the last ACK, and ``rtt_s`` the last sample (before the first sample, that one)."""

    time_s: Reals
    in_flight_packets: Reals
    acknowledged_bytes: Reals
    rtt_s: Reals


def capture_points(seen: Seen, trips: RoundTrips, course: SenderCourse) -> FlowPoints | None:
    """Return the course of a captured flow, None without the handshake or the sender's state."""
    begin = seen.syn_ns[0]
    if begin is None or trips.near_ns is None or not course.of_sender or trips.ack.size < _FEW_SAMPLES:
        return None
    begin -= trips.near_ns  # ACKs arrive at the sender this much later
    times = _times((int(course.time_ns[-1]) - begin) / 1e9)
    flight = course.flight / course.mss_bytes
    acked = course.una_after - course.una[0]
    samples = course.time_ns[trips.ack], trips.rtt_ns
    return _at(times, course.time_ns - begin, flight, acked, (samples[0] - begin, samples[1]))


def run_points(trace: FlowTrace, time_s: Reals) -> FlowPoints | None:
    """Return the course of a run's flow at the given times up to its end, None without ACKs."""
    rtt, good = raw_rtt(trace)
    if len(trace) < _FEW_SAMPLES or good.sum() < _FEW_SAMPLES:
        return None
    since = trace.time_ns - trace.start_ns
    return _at(
        time_s[time_s <= float(since[-1]) / 1e9], since, trace.packets_out, trace.una_after, (since[good], rtt[good])
    )


def section_points(section: RecordedCourseSection) -> FlowPoints:
    return FlowPoints(
        np.array(section.time_ms) / 1e3,
        np.array(section.in_flight_packets),
        np.array(section.acknowledged_kb) * 1e3,
        np.array(section.rtt_ms) / 1e3,
    )


def _times(duration_s: float) -> Reals:
    """Times in whole ms without repetitions, closer together at the start."""
    share = np.arange(1, _POINTS + 1) / _POINTS
    return np.unique(np.rint(min(duration_s, _LONGEST_S) * share**2 * 1000)) / 1000


def _at(
    time_s: Reals,
    since_ns: Integers,
    flight: Reals,
    acked: Integers,
    samples: tuple[Integers, Integers],
) -> FlowPoints:
    last = np.searchsorted(since_ns, time_s * 1e9, side="right") - 1
    at = np.maximum(last, 0)
    sample = np.maximum(np.searchsorted(samples[0], time_s * 1e9, side="right") - 1, 0)
    return FlowPoints(
        time_s, np.where(last >= 0, flight[at], 0.0), np.where(last >= 0, acked[at], 0) * 1.0, samples[1][sample] / 1e9
    )
