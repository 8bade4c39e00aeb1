# SPDX-License-Identifier: Apache-2.0
"""The course of a flow at a few times, whoever recorded it: what was in flight, acknowledged, and its round trips.

The times lie closer together at the beginning, where a start-up is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import Reals, RoundTrips
from howdah.explain.seen import Seen
from howdah.ingest.source import Integers
from howdah.measure.rounds import raw_rtt
from howdah.measure.trace import FlowTrace
from howdah.profile.experiment import RecordedCourseSection

_POINTS = 160
_LONGEST_S = 60.0
_FEW_SAMPLES = 3


@dataclass(frozen=True)
class FlowPoints:
    """All of shape (n,); ``time_s`` counts from when the flow began to connect. States are those when the last ACK
    came; ``rtt_s`` is that of the last sample, the first one's before it."""

    time_s: Reals
    in_flight_packets: Reals
    acknowledged_bytes: Reals
    rtt_s: Reals


def of_capture(seen: Seen, trips: RoundTrips, course: SenderCourse) -> FlowPoints | None:
    """None where the handshake is not there, or what the sender had sent is not known."""
    begin = seen.syn_ns[0]
    if begin is None or trips.near_ns is None or not course.of_sender or trips.ack.size < _FEW_SAMPLES:
        return None
    begin -= trips.near_ns  # of the way there and back together: ACKs come that much later to the sender
    times = _times((int(course.time_ns[-1]) - begin) / 1e9)
    flight = course.flight / course.mss_bytes
    acked = course.una_after - course.una[0]
    samples = course.time_ns[trips.ack], trips.rtt_ns
    return _at(times, course.time_ns - begin, flight, acked, (samples[0] - begin, samples[1]))


def of_run(trace: FlowTrace, time_s: Reals) -> FlowPoints | None:
    """The same of a flow of a run, at the given times; those behind its end are left out. None without ACKs."""
    rtt, good = raw_rtt(trace)
    if len(trace) < _FEW_SAMPLES or good.sum() < _FEW_SAMPLES:
        return None
    since = trace.time_ns - trace.start_ns
    return _at(
        time_s[time_s <= float(since[-1]) / 1e9], since, trace.packets_out, trace.una_after, (since[good], rtt[good])
    )


def of_section(section: RecordedCourseSection) -> FlowPoints:
    return FlowPoints(
        np.array(section.time_ms) / 1e3,
        np.array(section.in_flight_packets),
        np.array(section.acknowledged_kb) * 1e3,
        np.array(section.rtt_ms) / 1e3,
    )


def _times(duration_s: float) -> Reals:
    """In whole ms, each once."""
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
