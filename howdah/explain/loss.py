# SPDX-License-Identifier: Apache-2.0
"""What dropped the packets of a flow, by what a capture shows: a full queue, a policer, or chance.

The rules are in order in ``_RULES``; the first that decides gives the verdict. What the queue before the losses
suggests stands only where none of its ``_DOUBTS`` applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from howdah.explain.bucket import Bucket, Departures, no_bucket_fits, policer_of, policer_words, shallow_queue
from howdah.explain.course import SenderCourse
from howdah.explain.delay import RECEIVER, SENDER, Reals, RoundTrips, delay_before_tap
from howdah.explain.estimate import Estimate
from howdah.explain.rate import frame_share
from howdah.explain.repairs import discarded_by_receiver
from howdah.explain.seen import AGAIN, Seen
from howdah.ingest.source import Integers
from howdah.number import counted

LossBy = Literal["queue", "policer", "random"]
QUEUE: Final = "queue"
POLICER: Final = "policer"
RANDOM: Final = "random"
SAME_LEVEL = 0.15  # relative spread, to either side, of the queue before the losses of one full queue
FEW_LOSSES = 3  # fewer losses than this may be chance
FRAME_BYTES = 1514  # a full Ethernet frame
_ALIKE = 0.7  # least share of the losses within that spread, for one full queue
_FLAT_SHARE, _FLAT_LEAST_NS = 0.08, 2_000_000  # flat delay: at most this share of the base round trip, or this time
_SLOW = 0.75  # share of the most that a round trip delivered, below which the flow was slow
_FAR_BELOW, _AT_IT = 0.3, 0.9  # shares of the fullest queue: below the first far from it, from the other on at it
_FAR_SHARE = 0.25  # least share of the losses that is far below the fullest queue, for chance
_POLICED_SHARE = 0.02  # share of the segments that a policer drops at least
_FILLED = 0.85  # share of what path and queue hold that must have been in flight, for a full queue
_SPARE_FRAMES = 3  # frames by which the flight may be misjudged
_ROOM_FRAMES = 4  # frames that the link sends while a row of losses lasts, if the queue has room again
_MANY_LOSSES = 20  # fewer losses may be the ends of bursts
_EMPTIED = 0.3  # share of the fullest queue, below which it had emptied


@dataclass(frozen=True)
class SeenLosses:
    """``count``: segments that were lost. ``by``: what dropped them, None if unknown; ``words``: why. ``policer``: its
    bucket, if known. ``levels_ns``: the queue just before each loss for which a sample shows it.
    """

    count: int
    by: LossBy | None
    words: str
    policer: Bucket | None
    levels_ns: Reals


@dataclass(frozen=True)
class _Verdict:
    by: LossBy | None
    words: str
    policer: Bucket | None = None


@dataclass(frozen=True)
class _LossEvidence:
    """What the rules look at.

    ``frame`` is bytes of frames per byte of payload. ``resent_after_tap`` counts lost segments that had passed the tap.
    ``levels`` is the queue in ns just before losses, ``left`` the ACK after which each of these lost segments left.
    """

    seen: Seen
    course: SenderCourse
    trips: RoundTrips
    rate: Estimate
    lost: int
    frame: float
    resent_after_tap: int
    levels: Reals
    left: Integers

    @cached_property
    def departures(self) -> Departures | None:
        """What passed the tap and what was lost, packet by packet; None where that does not show."""
        return Departures.of(self.seen)

    @cached_property
    def supposed(self) -> _Verdict:
        return _by_queue_level(self)

    @cached_property
    def doubt(self) -> str:
        """Why the supposed cause does not hold; empty where it does."""
        return next((words for rule in _DOUBTS[self.supposed.by] if (words := rule(self))), "")


def losses_of(seen: Seen, course: SenderCourse, trips: RoundTrips, rate: Estimate) -> SeenLosses:
    """How many segments were lost, and what dropped them. ``rate`` is the path's, in bits a second of whole frames."""
    discarded = discarded_by_receiver(seen)
    resent = int((seen.sent.kind == AGAIN).sum()) - seen.spurious - discarded.segments
    lost = max(seen.sent_again - seen.spurious - discarded.segments, 0)
    levels, left = _queue_before_losses(course, trips)
    evidence = _LossEvidence(seen, course, trips, rate, lost, frame_share(seen), resent, levels, left)
    verdict = next(found for rule in _RULES if (found := rule(evidence)) is not None)
    words = "; ".join(each for each in (discarded.words, verdict.words) if each)
    return SeenLosses(lost, verdict.by, words, verdict.policer, levels)


def _nothing_lost(evidence: _LossEvidence) -> _Verdict | None:
    """Without a loss there is no cause."""
    return None if evidence.lost else _Verdict(None, "")


def _dropped_after_tap(evidence: _LossEvidence) -> _Verdict | None:
    """At the receiver, most lost segments had passed the tap: what dropped them is beyond it, and does not show."""
    resent = evidence.resent_after_tap
    if evidence.trips.at != RECEIVER or resent <= evidence.lost / 2:
        return None
    return _Verdict(
        None, f"{counted(resent, 'segment')} had passed the tap: what dropped them is behind it, as a receiver's host"
    )


def _segments_became_smaller(evidence: _LossEvidence) -> _Verdict | None:
    """Segments are smaller from the first retransmission on: the path dropped the larger ones for their size."""
    narrowed = evidence.seen.narrowed_bytes
    if narrowed is None:
        return None
    return _Verdict(None, f"from then on segments hold {narrowed} bytes: the path took no larger ones")


def _bucket_was_empty(evidence: _LossEvidence) -> _Verdict | None:
    """A bucket of tokens explains which packets were dropped and which passed: a policer."""
    passed, rate = evidence.departures, evidence.rate.value
    bucket = policer_of(passed, rate) if passed is not None and rate is not None else None
    return None if bucket is None else _Verdict(POLICER, policer_words(bucket), bucket)


def _as_supposed(evidence: _LossEvidence) -> _Verdict | None:
    """The queue before the losses suggests a cause, and nothing contradicts it: that cause."""
    supposed = evidence.supposed
    return supposed if supposed.by is not None and not evidence.doubt else None


def _at_any_level(evidence: _LossEvidence) -> _Verdict | None:
    """A part of the losses came far below the fullest queue, and no queue and no bucket explains them: chance.

    At most one loss came at the fullest queue: the first loss by chance ends growth, so no later queue is longer than
    the one before it. Only at the sender, because beyond the loss the times of the packets are not known.
    """
    trips, levels, passed = evidence.trips, evidence.levels, evidence.departures
    if passed is None or evidence.lost < FEW_LOSSES or trips.at != SENDER or levels.size < FEW_LOSSES:
        return None
    if 2 * trips.clock_ns + 2 * trips.up_doubt_ns > float(trips.rtt_ns.min()) / 2:
        return None
    most = max(float(levels.max()), float(np.percentile(trips.queue_ns, 99.9)))
    if float((levels < _FAR_BELOW * most).mean()) < _FAR_SHARE or int((levels >= _AT_IT * most).sum()) > 1:
        return None
    if not no_bucket_fits(passed) or shallow_queue(passed, evidence.rate.value):
        return None
    return _Verdict(RANDOM, "packets were lost at any delay and any rate: no queue and no bucket of tokens fits")


def _undecided(evidence: _LossEvidence) -> _Verdict | None:
    """Nothing tells: why the supposed cause does not hold, or why none was supposed."""
    return _Verdict(None, evidence.doubt or evidence.supposed.words)


# The first rule that gives a verdict decides.
_RULES: tuple[Callable[[_LossEvidence], _Verdict | None], ...] = (
    _nothing_lost,
    _dropped_after_tap,
    _segments_became_smaller,
    _bucket_was_empty,
    _as_supposed,
    _at_any_level,
    _undecided,
)


def _queue_before_losses(course: SenderCourse, trips: RoundTrips) -> tuple[Reals, Integers]:
    """The queue in ns met by the segments right before each lost one, and the ACK after which the lost one left.

    Losses without a sample close before them are left out.
    """
    if not course.again.size or not trips.ack.size:
        return np.zeros(0), np.zeros(0, np.int64)
    begins = np.unique(course.again_begin)
    before = np.searchsorted(course.una_after[trips.ack], begins, side="right") - 1
    near = course.una_after[trips.ack[np.maximum(before, 0)]]
    good = (before >= 0) & (begins - near <= 3 * course.mss_bytes)
    left = np.minimum(np.searchsorted(course.nxt, begins[good]), len(course) - 1)
    return trips.queue_ns[before[good]].astype(np.float64), left


def _by_queue_level(evidence: _LossEvidence) -> _Verdict:
    """Suppose a cause by the queue before the losses.

    A queue drops when it is full: at one level, its largest, and most of the time it holds less. At flat delay a
    policer drops what exceeds its rate, and nothing else; chance depends on neither.
    """
    levels, trips = evidence.levels, evidence.trips
    if not levels.size:
        return _Verdict(None, "the delay just before the losses was not seen")
    base = trips.base_ns.value or float(trips.rtt_ns.min())
    unsure_ns = 2 * trips.clock_ns + 2 * trips.up_doubt_ns
    if unsure_ns > base / 2:
        return _Verdict(None, "the clock of the capture is too coarse to tell the delay before the losses")
    flat = max(_FLAT_SHARE * base, _FLAT_LEAST_NS, unsure_ns)
    fullest = float(np.percentile(trips.queue_ns, 99.5))
    level = float(np.median(levels))
    at_fullest = float((levels >= (1 - 2 * SAME_LEVEL) * fullest).mean())
    if at_fullest > 0.6 and (fullest > flat or _is_shallow_queue(evidence, fullest, unsure_ns)):
        return _Verdict(QUEUE, f"packets were lost while the queue held {level / 1e6:.1f} ms, as much as it ever did")
    if fullest > flat and at_fullest >= 0.2 and level <= flat:
        return _Verdict(None, "some packets were lost at a full queue, others without any")
    if float((levels <= flat).mean()) >= 0.5:
        return _at_flat_delay(evidence, int(base))
    alike = float((np.abs(levels - level) <= 2 * SAME_LEVEL * level).mean())
    if levels.size < FEW_LOSSES or level < 0.5 * fullest or alike < _ALIKE:
        least, most = levels.min() / 1e6, levels.max() / 1e6
        return _Verdict(None, f"packets were lost at queues of {least:.1f} to {most:.1f} ms")
    return _Verdict(QUEUE, f"packets were lost while the queue held {level / 1e6:.1f} ms")


def _is_shallow_queue(evidence: _LossEvidence, fullest: float, unsure_ns: float) -> bool:
    """Whether a queue of few packets, hardly longer than flat delay, fills now and then: three frames at least."""
    rate = evidence.rate.value
    frames_ns = 3 * evidence.seen.mss_bytes * evidence.frame * 8e9 / rate if rate else 2e6
    often_empty = float(np.median(evidence.trips.queue_ns)) < 0.5 * fullest
    return evidence.levels.size >= FEW_LOSSES and often_empty and fullest > max(frames_ns, unsure_ns)


def _at_flat_delay(evidence: _LossEvidence, base_ns: int) -> _Verdict:
    """Suppose a policer where losses come only while the flow is at its fastest, and chance where they come at any
    rate; the share of the segments that were lost must fit."""
    course, sent = evidence.course, evidence.seen.sent
    share = evidence.lost / max(int(((sent.end - sent.begin) / course.mss_bytes).sum()), 1)
    at = np.unique(np.maximum(course.again, 0))
    apart = at[np.concatenate([[True], np.diff(course.time_ns[at]) > base_ns])]
    before = np.searchsorted(course.time_ns, course.time_ns[apart] - base_ns, side="right") - 1
    rates = course.delivered[apart] - course.delivered[np.maximum(before, 0)]
    every = np.searchsorted(course.time_ns, course.time_ns - base_ns, side="right") - 1
    most = float(np.percentile(course.delivered - course.delivered[np.maximum(every, 0)], 95))
    slow = float((rates < _SLOW * most).mean())
    if apart.size < FEW_LOSSES:
        return _Verdict(None, "packets were lost at flat delay, too few to tell a policer from chance")
    if slow > 1 / 3 and share <= 2 * _POLICED_SHARE:
        return _Verdict(RANDOM, "packets were lost one by one, at any rate, without a queue in front of them")
    if slow < 0.1 and share > _POLICED_SHARE:
        lost = f"{100 * share:.2g} % of the segments"
        return _Verdict(POLICER, f"{lost} were lost at flat delay, and only where the flow was fastest")
    return _Verdict(None, "packets were lost at flat delay; whether a policer took them does not show")


def _without_stamps(evidence: _LossEvidence) -> str:
    """Away from the sender, only time stamps tell how long a segment took to the tap."""
    if evidence.trips.at == SENDER or evidence.seen.has_stamps:
        return ""
    return "away from the sender, segments without time stamps do not tell the delay before the losses"


def _too_little_in_flight(evidence: _LossEvidence) -> str:
    """Less was in flight than a queue of that delay holds: the path became longer, or something stood still."""
    base, rate, course, left = evidence.trips.base_ns.value, evidence.rate.value, evidence.course, evidence.left
    if rate is None or base is None:
        return ""
    before = np.searchsorted(course.time_ns, course.time_ns[left] - base, side="right") - 1
    underway = (course.delivered[left] - course.delivered[np.maximum(before, 0)]) * evidence.frame
    holds = rate * evidence.levels / 8e9 + np.minimum(underway, rate * base / 8e9)
    flight = course.flight[left] * evidence.frame + _SPARE_FRAMES * FRAME_BYTES
    if float((flight < _FILLED * holds).mean()) <= 0.5:
        return ""
    return "less was in flight than a queue as long as the delay before the losses holds"


def _lost_last(evidence: _LossEvidence) -> str:
    """No segment that left after the lost ones arrived, so nothing tells how long the queue was."""
    course, acks = evidence.course, evidence.seen.acks
    first = max(int(course.again.min()), 0)
    reported = acks.repeats[: first + 1].any() or (acks.sack_top[: first + 1] > acks.una[: first + 1]).any()
    if reported or int(course.again_begin.max()) >= int(course.nxt[first]):
        return ""
    return "what was lost left last, and nothing behind it arrived"


def _queue_emptied(evidence: _LossEvidence) -> str:
    """Segments that arrived right after lost ones met a queue far from full, as after a policer: a full queue stays
    full while it drops. The first ACK that reports such a segment by SACK tells its delay."""
    seen, course, trips = evidence.seen, evidence.course, evidence.trips
    if not seen.connection.sack.size or not trips.rtt_ns.size:
        return ""
    reported = np.maximum.accumulate(np.maximum(seen.acks.sack_top, seen.acks.una))
    reporting = np.searchsorted(reported, np.unique(course.again_begin), side="right")
    reporting = reporting[reporting < len(course)]
    if reporting.size < _MANY_LOSSES:
        return ""
    segment = np.minimum(np.searchsorted(seen.sent.top, reported[reporting]), seen.sent.top.size - 1)
    took = course.time_ns[reporting] - seen.sent.time_ns[segment]
    took += delay_before_tap(seen, segment, trips.at, trips.clock_ns)[0] + (trips.near_ns or 0) - trips.rtt_ns.min()
    if float(np.percentile(took, 25)) >= _EMPTIED * float(trips.queue_ns.max()):
        return ""
    return "the queue emptied while packets were lost: none that was full dropped them all"


def _too_few_losses(evidence: _LossEvidence) -> str:
    """One or two losses may be chance, whatever the queue was."""
    if evidence.lost >= FEW_LOSSES:
        return ""
    return f"{evidence.supposed.words}; {counted(evidence.lost, 'packet')} may be chance's"


def _lost_in_rows(evidence: _LossEvidence) -> str:
    """Most losses came in rows that lasted while the link sent several packets: a full queue had room by then."""
    passed, rate, seen = evidence.departures, evidence.rate.value, evidence.seen
    if passed is None or not rate or evidence.trips.at != SENDER or not seen.connection.sack.size:
        return ""
    segment_ns = seen.mss_bytes * evidence.frame * 8e9 / rate
    edges = np.flatnonzero(np.diff(np.concatenate([[0], passed.lost.astype(np.int64), [0]])))
    begins, ends = edges[::2], edges[1::2] - 1
    long = passed.near_ns[ends] - passed.near_ns[begins] > _ROOM_FRAMES * segment_ns
    if not begins.size or int((ends - begins + 1)[long].sum()) <= passed.lost.sum() / 2:
        return ""
    return "packets were lost in rows, while the link let others out of its queue"


# For each supposed cause, what speaks against it; the first doubt that applies counts.
_DOUBTS: dict[LossBy | None, tuple[Callable[[_LossEvidence], str], ...]] = {
    QUEUE: (_without_stamps, _too_little_in_flight, _lost_last, _queue_emptied, _too_few_losses, _lost_in_rows),
    POLICER: (_without_stamps, _too_few_losses),
    RANDOM: (_without_stamps, _too_few_losses),
    None: (_without_stamps,),
}
