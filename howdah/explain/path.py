# SPDX-License-Identifier: Apache-2.0
"""The path by what a capture shows of it: its rate, its buffer where that was filled, the sender's interface, and what
lost packets: a queue that was full, a policer, or neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from howdah.explain.bucket import Bucket, Departures, no_bucket, policer_of, policer_words, shallow_queue
from howdah.explain.course import SenderCourse
from howdah.explain.delay import RECEIVER, SENDER, Reals, RoundTrips, upstream
from howdah.explain.estimate import Estimate, absent
from howdah.explain.rate import SeenRate, frame_share, of_frames, rate_of
from howdah.explain.repairs import thrown_away
from howdah.explain.seen import AGAIN, NEW, Seen
from howdah.ingest.source import Integers
from howdah.number import counted

LossBy = Literal["queue", "policer", "random"]
QUEUE: Final = "queue"
POLICER: Final = "policer"
RANDOM: Final = "random"
_GROWS, _MOST_PER_ACK = 1.3, 3.0
_EMPTY, _FEW_ROUNDS, _STEADY = 0.5, 3, 0.02  # of the BDP; rounds; of the base round trip
_FLAT_SHARE, _FLAT_LEAST_NS = 0.08, 2_000_000  # of the base: what a loss at flat delay has at most
_FEW_LOSSES, _SLOW = 3, 0.75  # the latter of the most that a round trip delivered
_ALIKE = 0.7  # of the losses
_SAME_LEVEL = 0.15  # losses of one queue come at one level
_FAR_BELOW, _FAR_SHARE, _AT_IT = 0.3, 0.25, 0.9  # of the fullest queue; of the losses; of the fullest queue
_POLICED_SHARE = 0.02  # of what was sent while a policer dropped
_FRAME_BYTES = 1514
_FILLED, _SPARE_FRAMES, _ROOM_FRAMES = 0.85, 3, 4  # of what the path holds with such a queue
_SPACED = 4  # so many gaps must be like the gap behind them
_MANY_LOSSES, _EMPTIED = 20, 0.3  # few may be the ends of bursts; of the fullest queue
_STILL = 0.5  # of a queue's delay, without an ACK
_SAME_RATE = 1.3  # of the path: an interface that seems slower than that may be the path's own spacing


@dataclass(frozen=True)
class SeenPath:
    """``rate``, ``sender_interface`` in bits a second with all headers of an Ethernet frame; ``buffer`` in bytes.

    ``delay_variation_ns`` is how much longer the delay became without a queue. ``losses`` counts segments that were
    lost; ``loss_by`` is what dropped them: queue, policer, random, None where nothing tells, and ``loss_words`` why.
    ``payload_share`` is that of data in a full frame. ``policer`` is the bucket of one where it shows.
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
    frame = frame_share(seen)
    found = rate_of(seen, course, trips)
    rate = of_frames(found.estimate, seen)
    thrown = thrown_away(seen)
    lost = max(seen.sent_again - seen.spurious - thrown.segments, 0)
    sent = max(int(((seen.sent.end - seen.sent.begin) / course.mss_bytes).sum()), 1)
    levels, left = _levels(course, trips)
    per_ack = _per_ack(course)
    by, words = _dropper(
        levels, trips, lost / sent, course, 3 * seen.mss_bytes * frame * 8e9 / rate.value if rate.value else 2e6
    )
    if trips.at != SENDER and not seen.has_stamps:
        by, words = None, "away from the sender, segments without time stamps do not tell the delay before the losses"
    if by == QUEUE:
        by, words = _doubted(by, words, levels, left, trips, rate, seen, course)
    if by == QUEUE and _emptied(seen, course, trips):
        by, words = None, "the queue emptied while packets were lost: none that was full dropped them all"
    if by is not None and 0 < lost < _FEW_LOSSES:
        by, words = None, f"{words}; {counted(lost, 'packet')} may be chance's"
    policer = None
    passed = Departures.of(seen) if lost and seen.narrowed_bytes is None else None
    if seen.narrowed_bytes is not None:
        by, words = None, f"from then on segments hold {seen.narrowed_bytes} bytes: the path took no larger ones"
    if passed is not None and rate.value is not None:
        policer = policer_of(passed, rate.value)
    if by == QUEUE and passed is not None and rate.value and trips.at == SENDER and seen.connection.sack.size:
        in_rows = _in_rows(passed, seen.mss_bytes * frame * 8e9 / rate.value)
        by, words = (None, "packets were lost in rows, while the link let others out of its queue") if in_rows else (
            by, words)  # fmt: skip
    if policer is not None:
        by, words = POLICER, policer_words(policer)
    elif (
        by is None
        and passed is not None
        and lost >= _FEW_LOSSES
        and trips.at == SENDER
        and _at_any_level(levels, trips)
        and (
            no_bucket(passed)
            and not shallow_queue(passed, rate.value)  # behind the loss nobody knows when packets came
        )
    ):
        by, words = RANDOM, "packets were lost at any delay and any rate: no queue and no bucket of tokens fits"
    refused = int((seen.sent.kind == AGAIN).sum()) - seen.spurious - thrown.segments
    if trips.at == RECEIVER and lost and refused > lost / 2:
        by, policer = None, None
        words = (
            f"{counted(refused, 'segment')} had passed the tap: what dropped them is behind it, as a receiver's host"
        )
    if thrown.words:
        words = f"{thrown.words}; {words}" if lost else thrown.words
    by = by if lost else None
    return SeenPath(
        rate,
        _buffer(levels, trips, found, by, per_ack, _held_bytes(course, trips, rate, frame)),
        _interface(seen, trips, frame, rate),
        _variation(course, trips, rate, frame, per_ack),
        lost,
        by,
        words if lost or thrown.words else "",
        1 / frame,
        policer,
    )


def _variation(course: SenderCourse, trips: RoundTrips, rate: Estimate, frame: float, per_ack: float) -> Estimate:
    """How far the first segments of the first rounds, which cannot make a queue, are above the base: the delay itself
    varies."""
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


def _levels(course: SenderCourse, trips: RoundTrips) -> tuple[Reals, Integers]:
    """The queue, in ns, just before what was lost: that of segments right in front of it. And the ACKs behind which
    what was lost left."""
    if not course.again.size or not trips.ack.size:
        return np.zeros(0), np.zeros(0, np.int64)
    begins = np.unique(course.again_begin)
    before = np.searchsorted(course.una_after[trips.ack], begins, side="right") - 1
    near = course.una_after[trips.ack[np.maximum(before, 0)]]
    # Else the queue at that time is not known.
    good = (before >= 0) & (begins - near <= 3 * course.mss_bytes)
    left = np.minimum(np.searchsorted(course.nxt, begins[good]), len(course) - 1)
    return trips.queue_ns[before[good]].astype(np.float64), left


def _doubted(
    by: LossBy | None, words: str, levels: Reals, left: Integers, trips: RoundTrips, rate: Estimate, seen: Seen,
    course: SenderCourse,
) -> tuple[LossBy | None, str]:  # fmt: skip
    """A delay like a full queue's is none where less was in flight than it holds: the way became longer, or something
    stood still. Nor do the last packets of a transfer tell, behind which nothing arrived."""
    base = trips.base_ns.value
    if rate.value is not None and base is not None:
        frame = frame_share(seen)
        before = np.searchsorted(course.time_ns, course.time_ns[left] - base, side="right") - 1
        underway = (course.delivered[left] - course.delivered[np.maximum(before, 0)]) * frame
        holds = rate.value * levels / 8e9 + np.minimum(underway, rate.value * base / 8e9)
        flight = course.flight[left] * frame + _SPARE_FRAMES * _FRAME_BYTES
        if float((flight < _FILLED * holds).mean()) > 0.5:
            return None, "less was in flight than a queue as long as the delay before the losses holds"
    first = max(int(course.again.min()), 0)
    acks = seen.acks
    told = acks.repeats[: first + 1].any() or (acks.sack_top[: first + 1] > acks.una[: first + 1]).any()
    if not told and int(course.again_begin.max()) < int(course.nxt[first]):
        return None, "what was lost left last, and nothing behind it arrived"
    return by, words


def _in_rows(passed: Departures, segment_ns: float) -> bool:
    """Whether most losses came one behind the other while the link sent several packets: a full queue had room then."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], passed.lost.astype(np.int64), [0]])))
    begins, ends = edges[::2], edges[1::2] - 1
    long = passed.near_ns[ends] - passed.near_ns[begins] > _ROOM_FRAMES * segment_ns
    return bool(begins.size) and int((ends - begins + 1)[long].sum()) > passed.lost.sum() / 2


def _emptied(seen: Seen, course: SenderCourse, trips: RoundTrips) -> bool:
    """Whether segments that arrived right behind what was lost met a queue that was far from full, as behind a policer:
    a full one stays full while it drops. The first ACK that reports such a segment by SACK tells its delay."""
    if not seen.connection.sack.size or not trips.rtt_ns.size:
        return False
    reported = np.maximum.accumulate(np.maximum(seen.acks.sack_top, seen.acks.una))
    told = np.searchsorted(reported, np.unique(course.again_begin), side="right")
    told = told[told < len(course)]
    if told.size < _MANY_LOSSES:
        return False
    segment = np.minimum(np.searchsorted(seen.sent.top, reported[told]), seen.sent.top.size - 1)
    took = course.time_ns[told] - seen.sent.time_ns[segment]
    took += upstream(seen, segment, trips.at, trips.clock_ns)[0] + (trips.near_ns or 0) - trips.rtt_ns.min()
    return float(np.percentile(took, 25)) < _EMPTIED * float(trips.queue_ns.max())


def _per_ack(course: SenderCourse) -> float:
    """Segments for an ACK that acknowledges something."""
    steps = np.diff(course.una_after, prepend=course.una[:1])
    steps = steps[steps > 0]
    return float(steps.mean()) / course.mss_bytes if steps.size else 0.0


def _dropper(
    levels: Reals, trips: RoundTrips, share: float, course: SenderCourse, path_ns: float
) -> tuple[LossBy | None, str]:
    """What lost packets, by the queue in front of the losses. A queue drops when it is full, so at one level, and most
    of the time it holds less. A policer drops what is above its rate, and nothing below. Neither depends on chance."""
    if not levels.size:
        return None, "the delay just before the losses was not seen"
    base = trips.base_ns.value or float(trips.rtt_ns.min())
    doubt = 2 * trips.clock_ns + 2 * trips.up_doubt_ns
    if doubt > base / 2:
        return None, "the clock of the capture is too coarse to tell the delay before the losses"
    flat = max(_FLAT_SHARE * base, _FLAT_LEAST_NS, doubt)
    most = float(np.percentile(trips.queue_ns, 99.5))
    at_top = float((levels >= (1 - 2 * _SAME_LEVEL) * most).mean())
    level = float(np.median(levels))
    shallow = (
        levels.size >= _FEW_LOSSES and float(np.median(trips.queue_ns)) < 0.5 * most and most > max(path_ns, doubt)
    )
    if at_top > 0.6 and (most > flat or shallow):
        return QUEUE, f"packets were lost while the queue held {level / 1e6:.1f} ms, as much as it ever did"
    if most > flat and at_top >= 0.2 and level <= flat:
        return None, "some packets were lost at a full queue, others without any"
    if float((levels <= flat).mean()) < 0.5:
        alike = float((np.abs(levels - level) <= 2 * _SAME_LEVEL * level).mean())
        if levels.size < _FEW_LOSSES or level < 0.5 * most or alike < _ALIKE:
            return None, f"packets were lost at queues of {levels.min() / 1e6:.1f} to {levels.max() / 1e6:.1f} ms"
        return QUEUE, f"packets were lost while the queue held {level / 1e6:.1f} ms"
    return _at_flat_delay(course, int(base), share)


def _at_any_level(levels: Reals, trips: RoundTrips) -> bool:
    """Whether a part of the losses came far below the fullest queue, and at most one at it: the first loss by chance
    ends growth, so that nothing is longer than the queue before it."""
    if levels.size < _FEW_LOSSES or 2 * trips.clock_ns + 2 * trips.up_doubt_ns > float(trips.rtt_ns.min()) / 2:
        return False
    most = max(float(levels.max()), float(np.percentile(trips.queue_ns, 99.9)))
    return float((levels < _FAR_BELOW * most).mean()) >= _FAR_SHARE and int((levels >= _AT_IT * most).sum()) <= 1


def _at_flat_delay(course: SenderCourse, base_ns: int, share: float) -> tuple[LossBy | None, str]:
    """A policer, or chance: whether losses come only where the flow is at its fastest."""
    at = np.unique(np.maximum(course.again, 0))
    apart = at[np.concatenate([[True], np.diff(course.time_ns[at]) > base_ns])]
    before = np.searchsorted(course.time_ns, course.time_ns[apart] - base_ns, side="right") - 1
    rates = course.delivered[apart] - course.delivered[np.maximum(before, 0)]
    every = np.searchsorted(course.time_ns, course.time_ns - base_ns, side="right") - 1
    most = float(np.percentile(course.delivered - course.delivered[np.maximum(every, 0)], 95))
    slow = float((rates < _SLOW * most).mean())
    if apart.size < _FEW_LOSSES:
        return None, "packets were lost at flat delay, too few to tell a policer from chance"
    if slow > 1 / 3 and share <= 2 * _POLICED_SHARE:
        return RANDOM, "packets were lost one by one, at any rate, without a queue in front of them"
    if slow < 0.1 and share > _POLICED_SHARE:
        return (
            POLICER,
            f"{100 * share:.2g} % of the segments were lost at flat delay, and only where the flow was fastest",
        )
    return None, "packets were lost at flat delay; whether a policer took them does not show"


def _held_bytes(course: SenderCourse, trips: RoundTrips, rate: Estimate, frame: float) -> float:
    """The most that the queue may have held: what was delivered while a segment was on its way, beyond the BDP, and no
    more than its delay lets through. Behind a link, or a receiver, that stood still a delay tells nothing."""
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


def _buffer(
    levels: Reals, trips: RoundTrips, found: SeenRate, by: str | None, per_ack: float, most_bytes: float
) -> Estimate:
    """``most_bytes``: the queue held no more of this flow."""
    rate = found.estimate
    most = float(trips.queue_ns.max()) if trips.queue_ns.size else 0.0
    if rate.value is None:
        return absent("the rate of the path is not known")
    # A varying delay is taken for a queue, by as much as deliveries wandered.
    unsure_ns = 2 * trips.clock_ns + trips.up_doubt_ns
    if by != QUEUE:
        seen_ns = max(most - unsure_ns - found.wander_ns, 0.0)
        least = max(min(seen_ns * (rate.low or 0.0) / 8e9, most_bytes) - 2 * _FRAME_BYTES, 0.0)
        reason = "nothing was lost to a full queue" + (": the buffer is at least what was in it" if least else "")
        return absent(reason, least or None)
    # Losses come in rows; each row begins with the queue full. The fullest that a sample saw is the best one.
    top = float(np.percentile(levels[levels >= (1 - 2 * _SAME_LEVEL) * levels.max()], 50))
    top = max(top, float(np.percentile(trips.queue_ns, 99.9)))
    varied_ns = min(found.wander_ns, top) / 2
    top -= varied_ns
    held = top * rate.value / 8e9
    doubt = (unsure_ns + varied_ns) * rate.value / 8e9 + 2 * _FRAME_BYTES + 0.02 * held
    low = held - doubt
    value = held + _FRAME_BYTES / 2  # what was dropped did not fit: there is room for less than a frame
    # Higher where an ACK tells of many segments, the last of which saw it. Open, if the queue was never empty, and
    # where chance may have taken the few packets that were lost.
    sure = trips.base_ns.low is not None and levels.size >= _FEW_LOSSES
    high = held + _FRAME_BYTES + doubt + max(per_ack - 2, 0) * _FRAME_BYTES if sure else None
    return Estimate(value, max(low, 0.0), high, f"the rate, times the queue of {top / 1e6:.1f} ms when it dropped")


def _interface(seen: Seen, trips: RoundTrips, frame: float, rate: Estimate) -> Estimate:
    """How closely full segments follow one another where they leave."""
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
