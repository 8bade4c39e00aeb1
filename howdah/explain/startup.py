# SPDX-License-Identifier: Apache-2.0
"""How a flow grew, where its start-up ended, and why, from what was in flight at each ACK.

In slow start each acknowledged byte releases two, so D = flight - acknowledged stays constant; after the exit D falls
by what is acknowledged. The exit is the last ACK at which D has not fallen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, Reals, RoundTrips
from howdah.explain.growth import FEW_ACKS, first_repair, last_growth, left_before
from howdah.explain.hystart import Detections, detections
from howdah.explain.pacing import drain_begin, is_paced, ran_out_of_data, rate_stood, stays_empty, written_in_pieces
from howdah.explain.repairs import RENO, repairs_of
from howdah.explain.seen import AGAIN, FILLS, Seen
from howdah.ingest.capture import CWR, ECE
from howdah.measure.cause import ACK_TRAIN, BBR_DRAIN, CONGESTION_SIGNAL, DELAY, LOSS, RTO, UNKNOWN
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW

_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_NEAR_ROUNDS = 0.3  # share of a round trip within which a detector and the exit are one event
_BOTH = 0.03  # share of a round trip: of two detectors that speak closer together, either may have ended growth
_FINE_NS = 1_000_000  # coarsest clock for HyStart's detectors: half of the gap that it allows in a train of ACKs
_DUPLICATES = 3  # duplicate ACKs before a fast retransmit
_TOGETHER_NS = 500_000  # ACKs closer together arrive as one
_MOSTLY = 0.5  # share of the ACKs that is most of them
BEYOND = "it stopped, perhaps for a window of more than TCP has"
NO_DATA = "the application had nothing to send before it left"
ENDED = "the transfer ended first"
GROWING = "it was still growing when the capture ended"


@dataclass(frozen=True)
class Round:
    """One round trip: ``sent_bytes`` during it, ``flight_bytes`` at its start, and ``time_ns`` on the clock of the
    capture."""

    time_ns: int
    flight_bytes: int
    sent_bytes: int


@dataclass(frozen=True)
class StartUp:
    """``at`` is the ACK of the exit (its place in the course), None if the flow did not leave; ``why_not`` says why.

    ``cause`` is one of howdah.measure.cause.CAUSES, ``evidence`` what it is based on, in words; ``sure`` means that
    nothing else explains the exit. ``growth`` is the usual ratio of two rounds. ``end`` is the ACK at which growth
    ended, with or without an exit, and ``limit`` what ended it without one.
    """

    rounds: list[Round]
    growth: float | None
    initial_window_packets: int | None
    at: int | None
    round: int | None
    cause: str | None
    sure: bool
    evidence: str
    why_not: str
    limit: str | None
    end: int | None
    paced: bool
    hystart: Detections | None


@dataclass(frozen=True)
class SeenCause:
    """Why a flow left: one of howdah.measure.cause.CAUSES; ``sure`` if nothing else explains it; the evidence in
    words."""

    name: str
    sure: bool
    evidence: str


@dataclass(frozen=True)
class _GrowthEvidence:
    """What the rules look at.

    ``gain`` is D in packets at each ACK. ``first_repair`` is the ACK at which the first repair left that was not
    undone, ``end`` the last ACK of growth. ``mark`` is the first ACK that reports a mark of ECN, None unless the sender
    reports that it reduced its window.
    """

    seen: Seen
    course: SenderCourse
    trips: RoundTrips
    rounds: list[Round]
    growth: float | None
    initial_window: int | None
    paced: bool
    gain: Reals
    first_repair: int | None
    end: int | None
    mark: int | None

    @property
    def known_end(self) -> int:
        """The last ACK of growth; only for the rules after ``_did_not_stop``."""
        assert self.end is not None
        return self.end

    def limit_at(self, at: int | None) -> str | None:
        return _limit(self.seen, self.course, self.trips, at)

    def left(self, at: int, cause: SeenCause, end: int, found: Detections | None) -> StartUp:
        return StartUp(
            self.rounds, self.growth, self.initial_window, at, self.course.round_of(at), cause.name, cause.sure,
            cause.evidence, "", None, end, self.paced, found,
        )  # fmt: skip

    def stayed(self, why: str, limit: str | None = None, end: int | None = None) -> StartUp:
        return StartUp(
            self.rounds, self.growth, self.initial_window, None, None, None, False, "", why, limit, end, self.paced,
            None,
        )  # fmt: skip


def start_up(seen: Seen, course: SenderCourse, trips: RoundTrips) -> StartUp:
    """How a flow grew, where its start-up ended and why, by the first rule of ``_RULES`` that applies."""
    rounds = _rounds(course)
    # An application that writes piece by piece looks like a sender that paces.
    paced = is_paced(seen, trips) and float(written_in_pieces(seen, course).mean()) < _MOSTLY
    gain = (course.flight - (course.una - course.una[0])) / course.mss_bytes
    again = first_repair(seen, course, gain)
    evidence = _GrowthEvidence(
        seen, course, trips, rounds, _growth(rounds), _initial_window(seen, course), paced, gain, again,
        last_growth(gain, course, again), _first_mark(seen),
    )  # fmt: skip
    return next(found for rule in _RULES if (found := rule(evidence)) is not None)


def _sender_not_known(evidence: _GrowthEvidence) -> StartUp | None:
    """Away from the sender, without time stamps, nothing tells what it had sent: no answer."""
    if evidence.course.of_sender:
        return None
    why = "away from the sender, segments without time stamps do not tell what it had sent"
    return StartUp([], None, None, None, None, None, False, "", why, None, None, False, None)


def _began_before_capture(evidence: _GrowthEvidence) -> StartUp | None:
    """The capture has no handshake, so the start-up may be over: no answer."""
    if evidence.seen.opener is not None:
        return None
    return replace(evidence.stayed("the capture begins after the connection did"), growth=None)


def _drained_its_queue(evidence: _GrowthEvidence) -> StartUp | None:
    """The sender paces, then sends much less than is delivered, and the queue stays empty: it left like BBR."""
    course = evidence.course
    at = drain_begin(course) if evidence.paced else None
    if at is None or not stays_empty(course, evidence.trips, at):
        return None
    words = "paced; what was in flight fell from its largest without a timeout"
    return evidence.left(at, SeenCause(BBR_DRAIN, rate_stood(course, at), words), at, None)


def _paced_without_loss(evidence: _GrowthEvidence) -> StartUp | None:
    """The sender paces, drained nothing and sent nothing again: it did not leave."""
    if not evidence.paced or evidence.first_repair is not None:
        return None
    limit = evidence.limit_at(evidence.end)
    return evidence.stayed("it paces, and what was in flight did not fall", limit, evidence.end)


def _grew_until_repair(evidence: _GrowthEvidence) -> StartUp | None:
    """Growth lasted until the first repair: the loss ended it, or a detector of HyStart just before the loss showed."""
    at, end, course, trips = evidence.first_repair, evidence.end, evidence.course, evidence.trips
    if at is None or (end is not None and at > end):
        return None
    found = detections(course, trips, at)
    mark = evidence.mark if evidence.mark is not None and evidence.mark <= at else None
    before, all_silent = left_before(evidence.gain, course, found, at, trips)
    if before is not None and evidence.limit_at(before) is None:
        return evidence.left(before, _detector(course, trips, found, before, mark, evidence.paced), before, found)
    return evidence.left(at, _cause_at_repair(evidence, at, mark, all_silent), at, found)


def _cause_at_repair(evidence: _GrowthEvidence, at: int, mark: int | None, all_silent: bool) -> SeenCause:
    """A loss or timeout, unless something else ended growth at the same time. ``all_silent``: no detector spoke so
    shortly before that its effect cannot show yet."""
    if evidence.seen.narrowed_bytes is not None or mark is not None:
        what = "the segments became smaller" if mark is None else "a mark of ECN came"
        return SeenCause(UNKNOWN, False, f"{what} where the first one was sent again")
    words = f"the first retransmission, with {_flight_words(evidence.course, at)} in flight"
    if all_silent:
        return SeenCause(_loss_or_timeout(evidence, at), True, words)
    if repairs_of(evidence.course, evidence.trips).reduces_like == RENO:
        return SeenCause(_loss_or_timeout(evidence, at), True, f"{words}, of a sender like reno")
    return SeenCause(UNKNOWN, False, "a detector of HyStart speaks just before the first retransmission")


def _did_not_stop(evidence: _GrowthEvidence) -> StartUp | None:
    """Growth did not end: the transfer or the capture did."""
    if evidence.end is not None:
        return None
    if _all_sent(evidence.seen, evidence.course, len(evidence.course) - 1):
        return evidence.stayed(ENDED, APPLICATION)
    return evidence.stayed(GROWING)


def _lost_while_limited(evidence: _GrowthEvidence) -> StartUp | None:
    """The receive window or the application stopped growth, and within a round trip something was sent again: it left
    by that loss, unless something else may have ended growth behind the limit."""
    end, at, course, trips = evidence.known_end, evidence.first_repair, evidence.course, evidence.trips
    limit = evidence.limit_at(end)
    if limit is None or at is None or not _within_a_round(course, trips, end, at):
        return None
    held = "the receive window" if limit == RECEIVE_WINDOW else "the application"
    found = detections(course, trips, at)
    if found.trains or found.delays or evidence.mark is not None or evidence.seen.narrowed_bytes is not None:
        words = f"it left while {held} held it back, by a detector of HyStart or the loss behind it"
        return evidence.left(at, SeenCause(UNKNOWN, False, words), end, found)
    words = f"the first retransmission, with {_flight_words(evidence.course, at)} in flight, while {held} held it back"
    return evidence.left(at, SeenCause(_loss_or_timeout(evidence, at), True, words), end, found)


def _stopped_by_limit(evidence: _GrowthEvidence) -> StartUp | None:
    """The receive window or the application stopped growth: no exit shows."""
    end = evidence.known_end
    limit = evidence.limit_at(end)
    if limit is None:
        return None
    if limit != APPLICATION:
        return evidence.stayed("the receive window held it back before it left", limit, end)
    if _all_sent(evidence.seen, evidence.course, end):
        return evidence.stayed(ENDED, limit, end)
    beyond = evidence.seen.excess_scale > 0
    return evidence.stayed(BEYOND if beyond else NO_DATA, None if beyond else limit, end)


def _stopped_by_sender(evidence: _GrowthEvidence) -> StartUp | None:
    """Growth ended without a loss or a limit: a detector of HyStart or a mark of ECN ended it, or nothing tells."""
    end, course, trips = evidence.known_end, evidence.course, evidence.trips
    found = detections(course, trips, _same_event_until(course, trips, end))
    cause = _detector(course, trips, found, end, evidence.mark, evidence.paced)
    if trips.at != SENDER and cause.sure and _silence_follows(course, trips, end):
        words = "growth ended before a timeout; what was lost in front of the tap may have ended it"
        cause = SeenCause(UNKNOWN, False, words)
    if cause.name == UNKNOWN and trips.clock_ns > (trips.base_ns.value or 0) / 4:
        return evidence.stayed("the clock of the capture is too coarse to tell where growth ended", None, end)
    if cause.name == UNKNOWN and course.window_bytes[end] < 0:
        why = "growth ended where a receive window, which the capture does not tell, may have held it back"
        return evidence.stayed(why, None, end)
    return evidence.left(end, cause, end, found)


# The first rule that gives a start-up decides.
_RULES: tuple[Callable[[_GrowthEvidence], StartUp | None], ...] = (
    _sender_not_known,
    _began_before_capture,
    _drained_its_queue,
    _paced_without_loss,
    _grew_until_repair,
    _did_not_stop,
    _lost_while_limited,
    _stopped_by_limit,
    _stopped_by_sender,
)


def _silence_follows(course: SenderCourse, trips: RoundTrips, at: int) -> bool:
    until = int(np.searchsorted(course.una_after, course.nxt[at])) + FEW_ACKS
    return int(np.diff(course.time_ns[at : until + 1]).max(initial=0)) >= (trips.base_ns.value or 0) + _LEAST_TIMEOUT_NS


def _within_a_round(course: SenderCourse, trips: RoundTrips, first: int, last: int) -> bool:
    round_ns = (trips.base_ns.value or 0) + (int(trips.queue_ns.max()) if trips.queue_ns.size else 0)
    return int(course.time_ns[last] - course.time_ns[first]) <= round_ns


def _same_event_until(course: SenderCourse, trips: RoundTrips, at: int) -> int:
    """The last ACK close enough to ``at`` to belong to the same event; at least a few ACKs, because they may be far
    apart."""
    until = int(course.time_ns[at]) + int(_NEAR_ROUNDS * (trips.base_ns.value or 0))
    last = int(np.searchsorted(course.time_ns, until, side="right")) - 1
    return min(max(last, at + FEW_ACKS), len(course) - 1)


def _flight_words(course: SenderCourse, at: int) -> str:
    return f"{round(course.flight[at] / course.mss_bytes)} packets"


def _rounds(course: SenderCourse) -> list[Round]:
    starts = course.rounds
    stops = np.concatenate([starts[1:], [len(course) - 1]])
    return [
        Round(int(course.time_ns[a]), int(course.flight[a]), int(course.nxt[b] - course.nxt[a]))
        for a, b in zip(starts.tolist(), stops.tolist(), strict=True)
    ]


def _growth(rounds: list[Round]) -> float | None:
    flights = [each.flight_bytes for each in rounds[:8] if each.flight_bytes > 0]
    ratios = [after / before for before, after in pairwise(flights)]
    rising = [ratio for ratio in ratios if ratio > 1.2]
    return float(np.median(rising)) if rising else None


def _initial_window(seen: Seen, course: SenderCourse) -> int | None:
    """Full segments that left before the first ACK of data; None if the application had no more to send."""
    if seen.opener is None or not len(course):
        return None
    first = int(np.argmax(course.una_after > course.una[0])) if (course.una_after > course.una[0]).any() else 0
    last = int(np.searchsorted(seen.sent.top, course.nxt[first]))
    last = min(last, seen.sent.top.size - 1)
    short = int(seen.sent.end[last] - seen.sent.begin[last]) % course.mss_bytes
    if short and int(course.nxt[first]) < int(seen.sent.top[-1]):
        return None  # the application had no more data yet, as in a TLS handshake
    return max(round(float(course.nxt[first] - course.una[0]) / course.mss_bytes), 1)


def _loss_or_timeout(evidence: _GrowthEvidence, at: int) -> str:
    """``rto`` if the first repair follows a silence without three duplicates, else ``loss``."""
    seen, course, trips = evidence.seen, evidence.course, evidence.trips
    repeats = seen.acks.repeats[max(at - 200, 0) : at + 1]
    sacked = bool((seen.acks.sack_top[max(at - 5, 0) : at + 1] > seen.acks.una[max(at - 5, 0) : at + 1]).any())
    again = seen.sent.time_ns[np.isin(seen.sent.kind, (AGAIN, FILLS))]
    silence = int(again[0]) - int(course.time_ns[at]) if again.size else 0
    far = (trips.base_ns.value or 0) if trips.at != SENDER else 0
    if silence - far >= _LEAST_TIMEOUT_NS and repeats[-_DUPLICATES:].sum() < _DUPLICATES and not sacked:
        return RTO
    return LOSS


def _all_sent(seen: Seen, course: SenderCourse, at: int) -> bool:
    """Whether nothing new left after an ACK, and the sender closed or everything was acknowledged."""
    last = int(seen.sent.top[-1])
    return int(course.nxt[at]) >= last - course.mss_bytes and (seen.closed or int(course.una_after[-1]) >= last)


def _limit(seen: Seen, course: SenderCourse, trips: RoundTrips, at: int | None) -> str | None:
    """What stopped growth at an ACK other than the sender itself: the receive window or the application; None if
    neither."""
    if at is None:
        return None
    near = slice(at, min(at + max(20, (len(course) - at) // 20), len(course)))
    windows = course.window_bytes[near]
    if windows.size and windows.min() >= 0:
        room = windows - course.flight[near]
        if float(np.median(room)) < 2 * course.mss_bytes or float((room < 3 * course.mss_bytes).mean()) > 0.5:
            return RECEIVE_WINDOW
    if ran_out_of_data(seen, course, trips, at) or float(written_in_pieces(seen, course)[near].mean()) > _MOSTLY:
        return APPLICATION
    # What ACKs that arrive together release shows at the next ones.
    later = at + 1 + np.flatnonzero(course.exact[at + 1 :])
    apart = later[course.time_ns[later] > course.time_ns[at] + _TOGETHER_NS]
    if not apart.size or _all_sent(seen, course, max(int(later[:3][-1]), int(apart[0]))):
        return APPLICATION
    return None


def _first_mark(seen: Seen) -> int | None:
    flags = seen.connection.column("flags")
    if not (flags[seen.sent.place] & CWR).any():
        return None
    marks = np.flatnonzero(flags[seen.acks.place] & ECE)
    return int(marks[0]) if marks.size else None


def _detector(
    course: SenderCourse, trips: RoundTrips, found: Detections, end: int, mark: int | None, paced: bool
) -> SeenCause:
    """The detector of HyStart, or the mark of ECN, that coincides with the end of growth."""
    base = trips.base_ns.value or 0
    doubt = max(_NEAR_ROUNDS * base, 2 * trips.clock_ns)
    marks = [] if mark is None else [mark]
    spoke = [
        (0 if abs(at - end) <= FEW_ACKS else abs(int(course.time_ns[at]) - int(course.time_ns[end])), cause, at)
        for cause, places in ((ACK_TRAIN, found.trains), (DELAY, found.delays), (CONGESTION_SIGNAL, marks))
        for at in places
    ]
    near = sorted(each for each in spoke if each[0] <= doubt)
    if trips.clock_ns > _FINE_NS:
        words = "growth ended without a loss; the clock of the capture is too coarse for HyStart's detectors"
        return SeenCause(UNKNOWN, False, words)
    if not near:
        return SeenCause(
            UNKNOWN, False, "growth ended without a loss, a full window, or what HyStart's detectors look for"
        )
    if near[0][1] != near[-1][1] and near[-1][0] - near[0][0] < _BOTH * base:
        both = "a mark of ECN and a detector" if mark is not None else "both detectors"
        return SeenCause(UNKNOWN, False, f"{both} of HyStart speak at the same time")
    _far, cause, at = near[0]
    if paced and cause != CONGESTION_SIGNAL:
        return SeenCause(
            UNKNOWN, False, "it paces: a detector of HyStart, or a model of the path as BBR's, ended growth"
        )
    if cause == CONGESTION_SIGNAL:
        return SeenCause(cause, True, "the receiver reports a mark of ECN, and the sender reduced its window")
    if cause == ACK_TRAIN:
        length, need = (each / 1e6 for each in found.trains[at])
        words = f"a train of ACKs of {length:.1f} ms, longer than {need:.1f} ms"
    else:
        rise, need = (each / 1e6 for each in found.delays[at])
        words = f"the least round trip of a round rose by {rise:.1f} ms ({need:.1f} ms are enough)"
    return SeenCause(cause, True, words)
