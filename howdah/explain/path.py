# SPDX-License-Identifier: Apache-2.0
"""The path of a flow, as a capture shows it: its rate, its buffer if that was filled, the sender's interface, and how
much its delay varies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.bucket import Bucket
from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, RoundTrips
from howdah.explain.estimate import Estimate, absent
from howdah.explain.loss import FEW_LOSSES, FRAME_BYTES, QUEUE, SAME_LEVEL, LossBy, SeenLosses, losses_of
from howdah.explain.rate import SeenRate, frame_share, rate_of, with_other_frame_sizes
from howdah.explain.seen import NEW, Seen

_GROWS = 1.3  # factor from one round's flight to the next, above which the flow grows
_MOST_PER_ACK = 3.0  # segments for an ACK, above which the first samples of rounds do not tell the delay
_EMPTY = 0.5  # share of the BDP in flight, below which there is no queue
_FEW_ROUNDS = 3  # fewer samples do not tell how the delay varies
_STEADY = 0.02  # share of the base round trip: a delay that varies by less is steady
_SPACED = 4  # pairs of equal gaps that it takes to tell an interface's spacing
_STILL = 0.5  # share of the queueing delay without an ACK, above which link or receiver stood still
_SAME_RATE = 1.3  # factor to the path's rate: an interface that seems slower may be the path's own spacing


@dataclass(frozen=True)
class SeenPath:
    """``rate`` and ``sender_interface`` are in bits per second of whole Ethernet frames, ``buffer`` in bytes.

    ``delay_variation_ns`` is how much the delay grew without a queue. ``losses`` counts lost segments; ``loss_by`` is
    what dropped them, None if unknown, and ``loss_words`` says why; ``policer`` is its bucket, if known.
    ``payload_share`` is the payload's share of a full frame.
    """

    rate: Estimate
    buffer: Estimate
    sender_interface: Estimate
    delay_variation_ns: Estimate
    losses: int
    loss_by: LossBy | None
    loss_words: str
    payload_share: float
    policer: Bucket | None


def path_of(seen: Seen, course: SenderCourse, trips: RoundTrips) -> SeenPath:
    """The path of a flow, as its capture shows it."""
    frame = frame_share(seen)
    found = rate_of(seen, course, trips)
    rate = with_other_frame_sizes(found.estimate, seen)
    losses = losses_of(seen, course, trips, rate)
    per_ack = _segments_per_ack(course)
    return SeenPath(
        rate,
        _buffer(losses, trips, found, per_ack, _most_queued_bytes(course, trips, rate, frame)),
        _interface(seen, trips, frame, rate),
        _variation(course, trips, rate, frame, per_ack),
        losses.count,
        losses.by,
        losses.words,
        1 / frame,
        losses.policer,
    )


def _variation(course: SenderCourse, trips: RoundTrips, rate: Estimate, frame: float, per_ack: float) -> Estimate:
    """How far the first samples of the first rounds, which cannot make a queue, exceed the base: variation of the delay
    itself."""
    base = trips.base_ns.value
    if base is None or rate.value is None or not trips.ack.size or not course.of_sender:
        return absent("the rate of the path is not known")
    room = _EMPTY * rate.value * base / 8e9 / frame
    first = np.searchsorted(trips.ack, course.rounds)
    flights = course.flight[course.rounds]
    grows = np.concatenate([[True], flights[1:] > _GROWS * flights[:-1]]) & (flights < room)
    rounds = np.arange(int(np.argmin(grows)) if not grows.all() else grows.size)
    if per_ack > _MOST_PER_ACK:
        return absent("the receiver acknowledges many segments at once")
    rounds = rounds[trips.ack[np.minimum(first[rounds], trips.ack.size - 1)] == course.rounds[rounds]]
    excess = trips.rtt_ns[first[rounds]] - base
    if excess.size < _FEW_ROUNDS:
        return absent("too few round trips without a queue")
    most = float(excess.max()) * (excess.size + 1) / excess.size
    doubt = 2 * trips.clock_ns + trips.up_doubt_ns
    if most <= max(_STEADY * base, 2 * doubt):
        return Estimate(
            0.0, 0.0, max(_STEADY * base, 2 * doubt), f"{excess.size} round trips without a queue are alike"
        )
    how = f"the largest of {excess.size} round trips without a queue, above the least"
    return Estimate(most, float(excess.max()) - doubt, 2 * most, how)


def _segments_per_ack(course: SenderCourse) -> float:
    steps = np.diff(course.una_after, prepend=course.una[:1])
    steps = steps[steps > 0]
    return float(steps.mean()) / course.mss_bytes if steps.size else 0.0


def _most_queued_bytes(course: SenderCourse, trips: RoundTrips, rate: Estimate, frame: float) -> float:
    """The most that the queue may have held: what was delivered during a segment's round trip beyond the BDP, and at
    most what its delay lets through. While link or receiver stood still, delays do not count."""
    base = trips.base_ns.value
    if rate.value is None or base is None or not trips.ack.size:
        return float("inf")
    left = np.searchsorted(course.time_ns, course.time_ns[trips.ack] - trips.rtt_ns, side="right") - 1
    got = course.delivered[trips.ack] - np.where(left >= 0, course.delivered[np.maximum(left, 0)], course.una[0])
    held = np.minimum(got * frame - (1 - _STEADY) * rate.value * base / 8e9, trips.queue_ns * rate.value / 8e9)
    begin = np.searchsorted(course.time_ns, course.time_ns[trips.ack] - trips.queue_ns, side="right") - 1
    edges = np.column_stack([np.minimum(np.maximum(begin, 0), trips.ack), trips.ack]).ravel()
    still = np.maximum.reduceat(np.diff(course.time_ns, append=course.time_ns[-1:]), edges)[::2]
    return max(float(held[still <= _STILL * trips.queue_ns].max(initial=0)), 0.0)


def _buffer(losses: SeenLosses, trips: RoundTrips, found: SeenRate, per_ack: float, most_bytes: float) -> Estimate:
    """The buffer in bytes if a full queue dropped packets, else a lower bound. ``most_bytes`` bounds what the queue
    held of this flow."""
    rate = found.estimate
    most = float(trips.queue_ns.max()) if trips.queue_ns.size else 0.0
    if rate.value is None:
        return absent("the rate of the path is not known")
    # A varying delay is taken for a queue, by as much as deliveries wandered.
    unsure_ns = 2 * trips.clock_ns + trips.up_doubt_ns
    if losses.by != QUEUE:
        seen_ns = max(most - unsure_ns - found.wander_ns, 0.0)
        least = max(min(seen_ns * (rate.low or 0.0) / 8e9, most_bytes) - 2 * FRAME_BYTES, 0.0)
        reason = "nothing was lost to a full queue" + (": the buffer is at least what was in it" if least else "")
        return absent(reason, least or None)
    levels = losses.levels_ns
    # Losses come in rows; each row begins with the queue full. The fullest that a sample saw is the best one.
    top = float(np.percentile(levels[levels >= (1 - 2 * SAME_LEVEL) * levels.max()], 50))
    top = max(top, float(np.percentile(trips.queue_ns, 99.9)))
    varied_ns = min(found.wander_ns, top) / 2
    top -= varied_ns
    held = top * rate.value / 8e9
    doubt = (unsure_ns + varied_ns) * rate.value / 8e9 + 2 * FRAME_BYTES + 0.02 * held
    low = held - doubt
    value = held + FRAME_BYTES / 2  # what was dropped did not fit: there is room for less than a frame
    # Higher where an ACK tells of many segments, the last of which saw it. Open, if the queue was never empty, and
    # where chance may have taken the few packets that were lost.
    sure = trips.base_ns.low is not None and levels.size >= FEW_LOSSES
    high = held + FRAME_BYTES + doubt + max(per_ack - 2, 0) * FRAME_BYTES if sure else None
    return Estimate(value, max(low, 0.0), high, f"the rate, times the queue of {top / 1e6:.1f} ms when it dropped")


def _interface(seen: Seen, trips: RoundTrips, frame: float, rate: Estimate) -> Estimate:
    if trips.at != SENDER:
        return absent("the tap was not at the sender: the path has spaced the segments")
    sent = seen.sent
    size = sent.end - sent.begin
    full = (size[1:] == seen.mss_bytes) & (size[:-1] == seen.mss_bytes) & (np.diff(sent.place) <= 3)
    gaps = np.where(full & (sent.kind[1:] == NEW), np.diff(sent.time_ns), 1 << 60)
    if gaps.size < 20:
        return absent("too few full segments leave one behind the other; offloaded ones are seen before the interface")
    alike = (gaps[:-1] > 0) & (np.abs(gaps[1:] / np.maximum(gaps[:-1], 1) - 1) < 0.1) & (gaps[:-1] < 1 << 59)
    trains = np.sort(gaps[:-1][alike])
    if trains.size < _SPACED:
        return absent("segments do not leave evenly spaced")
    quick = float(np.median(trains[: 2 * _SPACED]))
    if quick < 3 * trips.clock_ns:
        return absent("segments leave closer together than the clock of the capture tells")
    value = seen.mss_bytes * frame * 8e9 / quick
    if rate.value is not None and value < _SAME_RATE * rate.value:
        return absent("segments leave no closer together than the path lets them through", value)
    doubt = max(trips.clock_ns / quick, 0.02)
    return Estimate(
        value, value * (1 - doubt), value * (1 + doubt), "the usual spacing of segments that leave together"
    )
