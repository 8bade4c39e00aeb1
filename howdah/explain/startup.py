# SPDX-License-Identifier: Apache-2.0
"""How a flow grew, where its start-up ended, and why, from what it had in flight at each ACK.

In slow start each byte that is acknowledged lets two go, so that D = flight - acknowledged stays where it began; behind
the exit D falls by what is acknowledged. The exit is the last ACK at which D is where it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import SENDER, Reals, RoundTrips
from howdah.explain.hystart import Detections, detections
from howdah.explain.pacing import drain_begin, fed, is_paced, ran_dry, rate_stood, stays_empty
from howdah.explain.repairs import RENO, repairs_of
from howdah.explain.seen import AGAIN, FILLS, Seen
from howdah.ingest.capture import CWR, ECE
from howdah.ingest.source import Integers
from howdah.measure.cause import ACK_TRAIN, BBR_DRAIN, CONGESTION_SIGNAL, DELAY, LOSS, RTO, UNKNOWN
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW

_LEAST_FALL_PACKETS, _FALL = 6, 0.35  # the latter of what is in flight
_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_NEAR_ROUNDS = 0.3  # within so much of a round trip, a detector and the exit are one event
_BOTH = 0.03  # of a round trip: closer together, nobody knows which of two detectors it was
_FINE_NS = 1_000_000  # half of what HyStart lets pass between two ACKs of a train
_DUPLICATES = 3
_KNEE_PACKETS, _KNEE_SHARE, _GREW_ON = 12, 0.6, 0.25
_TOGETHER_NS = 500_000
_FEW_PACKETS, _FEW_ACKS = 8, 4
_TOLD_PACKETS, _GREW_ON_PACKETS = 6, 24  # acknowledged between two events that are told apart; since one without effect
_MOSTLY, _UNDONE = 0.5, 0.15  # the latter of what was in flight
_PASSED_OVER = 2  # trains of ACKs, each in another round: no delay that varies feigns them all
BEYOND = "it stopped, perhaps for a window of more than TCP has"
NO_DATA = "the application had nothing to send before it left"
ENDED = "the transfer ended first"
GROWING = "it was still growing when the capture ended"


@dataclass(frozen=True)
class Round:
    """``sent_bytes`` in one round trip, ``flight_bytes`` when it began, ``time_ns`` on the clock of the capture."""

    time_ns: int
    flight_bytes: int
    sent_bytes: int


@dataclass(frozen=True)
class StartUp:
    """``at`` is the ACK of the exit (its place in the course), None where the flow did not leave; ``why_not`` says why.

    ``cause`` is one of howdah.measure.cause.CAUSES; ``evidence`` says in words what it rests on; ``sure`` is whether
    nothing else explains it. ``growth`` is the usual ratio of two rounds. ``end`` is the ACK where growth ended, exit
    or not; ``limit`` what ended it without an exit.
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


def start_up(seen: Seen, course: SenderCourse, trips: RoundTrips) -> StartUp:
    mss = course.mss_bytes
    rounds = _rounds(course)
    in_pieces = fed(seen, course)
    paced = is_paced(seen, trips) and float(in_pieces.mean()) < _MOSTLY
    initial = _initial_window(seen, course)
    if not course.of_sender:
        return _without(
            [], None, False, "away from the sender, segments without time stamps do not tell what it had sent"
        )
    if seen.opener is None:
        return _without(rounds, initial, paced, "the capture begins after the connection did")
    gain = (course.flight - (course.una - course.una[0])) / mss
    first_again = _first_again(seen, course, gain)
    end = _last_growth(gain, course, first_again)
    grown = _growth(rounds)
    if paced:
        drained = drain_begin(course)
        if drained is not None and stays_empty(course, trips, drained):
            evidence = "paced; what was in flight fell from its largest without a timeout"
            return StartUp(rounds, grown, initial, drained, course.round_of(drained), BBR_DRAIN,
                           rate_stood(course, drained), evidence, "", None, drained, paced, None)  # fmt: skip
        if first_again is None:
            limit = _limit(seen, course, trips, end)
            return _without(rounds, initial, paced, "it paces, and what was in flight did not fall", limit, end, grown)
    by_loss = first_again is not None and (end is None or first_again <= end)
    mark = _first_mark(seen)
    if by_loss:
        assert first_again is not None
        at = first_again
        found = detections(course, trips, at, paced=False)
        mark = mark if mark is not None and mark <= at else None
        before, told = _left_before(gain, course, found, at, trips)
        if before is not None and _limit(seen, course, trips, before) is None:
            cause, sure, evidence = _detector(course, trips, found, before, mark, paced)
            at = before
        elif seen.narrowed_bytes is not None or mark is not None:
            cause, sure = UNKNOWN, False
            what = "the segments became smaller" if mark is None else "a mark of ECN came"
            evidence = f"{what} where the first one was sent again"
        elif told:
            cause, sure = _loss_or_timeout(seen, course, at, trips), True
            evidence = f"the first retransmission, with {gain_words(course, at)} in flight"
        elif repairs_of(course, trips).reduces_like == RENO:
            cause, sure = _loss_or_timeout(seen, course, at, trips), True
            evidence = f"the first retransmission, with {gain_words(course, at)} in flight, of a sender like reno"
        else:
            cause, sure = UNKNOWN, False
            evidence = "a detector of HyStart speaks just before the first retransmission"
        return StartUp(
            rounds, grown, initial, at, course.round_of(at), cause, sure, evidence, "", None, at, paced, found
        )
    if end is None:
        why = ENDED if _all_sent(seen, course, len(course) - 1) else GROWING
        return _without(rounds, initial, paced, why, APPLICATION if why == ENDED else None, None, grown)
    limit = _limit(seen, course, trips, end)
    found = detections(course, trips, _soon(course, trips, end), paced=False)
    if limit is not None and first_again is not None and _within_a_round(course, trips, end, first_again):
        at, held = first_again, "the receive window" if limit == RECEIVE_WINDOW else "the application"
        found = detections(course, trips, at, paced=False)
        if found.trains or found.delays or mark is not None or seen.narrowed_bytes is not None:
            cause, sure = UNKNOWN, False
            evidence = f"it left while {held} held it back, by a detector of HyStart or the loss behind it"
        else:
            cause, sure = _loss_or_timeout(seen, course, at, trips), True
            evidence = f"the first retransmission, with {gain_words(course, at)} in flight, while {held} held it back"
        return StartUp(
            rounds, grown, initial, at, course.round_of(at), cause, sure, evidence, "", None, end, paced, found
        )
    if limit is not None:
        why = "the receive window held it back before it left"
        if limit == APPLICATION:
            why = ENDED if _all_sent(seen, course, end) else NO_DATA
            if seen.excess_scale and why == NO_DATA:
                why, limit = BEYOND, None
        return _without(rounds, initial, paced, why, limit, end, grown)
    cause, sure, evidence = _detector(course, trips, found, end, mark, paced)
    if trips.at != SENDER and sure and _silence_follows(course, trips, end):
        cause, sure = UNKNOWN, False
        evidence = "growth ended before a timeout; what was lost in front of the tap may have ended it"
    if cause == UNKNOWN and trips.clock_ns > (trips.base_ns.value or 0) / 4:
        why = "the clock of the capture is too coarse to tell where growth ended"
        return _without(rounds, initial, paced, why, None, end, grown)
    if cause == UNKNOWN and course.window_bytes[end] < 0:
        why = "growth ended where a receive window, which the capture does not tell, may have held it back"
        return _without(rounds, initial, paced, why, None, end, grown)
    return StartUp(
        rounds, grown, initial, end, course.round_of(end), cause, sure, evidence, "", None, end, paced, found
    )


def _first_again(seen: Seen, course: SenderCourse, gain: Reals) -> int | None:
    """The first repair that was not undone: a sender that learns that the first copy had arrived may go on as if
    nothing had been (RFC 3522, RFC 5682)."""
    again = np.flatnonzero(np.isin(seen.sent.kind, (AGAIN, FILLS)))
    needed = ~np.isin(again, seen.needless)
    at = np.maximum(course.again, 0)
    places: list[int] = np.unique(at).tolist()
    for place in places:
        if needed[at == place].any():
            return place
        later = gain[int(np.searchsorted(course.una, course.nxt[place])) :]
        if later.size < _FEW_ACKS or float(later.max()) < float(gain[place]) - _undone(course, place):
            return place
    return None


def _undone(course: SenderCourse, at: int) -> float:
    """By how many packets D may be less behind a repair that was undone: half of what reduces a window."""
    return _FEW_PACKETS + _TOLD_PACKETS + _UNDONE * float(course.flight[at]) / course.mss_bytes


def _silence_follows(course: SenderCourse, trips: RoundTrips, at: int) -> bool:
    """Whether a timeout comes behind what was in flight at an ACK."""
    until = int(np.searchsorted(course.una_after, course.nxt[at])) + _FEW_ACKS
    return int(np.diff(course.time_ns[at : until + 1]).max(initial=0)) >= (trips.base_ns.value or 0) + _LEAST_TIMEOUT_NS


def _left_before(
    gain: Reals, course: SenderCourse, found: Detections, loss: int, trips: RoundTrips
) -> tuple[int | None, bool]:
    """Where a detector ended growth just before a loss was seen: what was acknowledged since took most of itself from
    D. And whether all detectors that spoke had time to tell: a sender without them grows on, and one that grew on for
    long has none."""
    told, passed_over = True, 0
    exact = np.maximum.accumulate(np.where(course.exact, np.arange(len(course)), 0))
    for at in sorted({*found.trains, *found.delays}):
        begin, end = int(exact[at]), int(exact[loss])
        acked = float(course.una[end] - course.una[begin]) / course.mss_bytes
        taken = float(gain[begin] - gain[end]) / max(acked, 1.0)
        if acked >= _TOLD_PACKETS and taken >= _KNEE_SHARE:
            return at, True
        certain = trips.at == SENDER or (at in found.trains and not trips.near_varies)
        grew_on = acked >= _GREW_ON_PACKETS and taken < _GREW_ON
        passed_over += grew_on and at in found.trains
        if (certain and grew_on) or passed_over >= _PASSED_OVER:
            return None, True
        told &= acked >= _TOLD_PACKETS and taken < _GREW_ON
    return None, told


def _within_a_round(course: SenderCourse, trips: RoundTrips, first: int, last: int) -> bool:
    round_ns = (trips.base_ns.value or 0) + (int(trips.queue_ns.max()) if trips.queue_ns.size else 0)
    return int(course.time_ns[last] - course.time_ns[first]) <= round_ns


def _soon(course: SenderCourse, trips: RoundTrips, at: int) -> int:
    """The last ACK that is one event with another: few ACKs may be far apart."""
    until = int(course.time_ns[at]) + int(_NEAR_ROUNDS * (trips.base_ns.value or 0))
    last = int(np.searchsorted(course.time_ns, until, side="right")) - 1
    return min(max(last, at + _FEW_ACKS), len(course) - 1)


def gain_words(course: SenderCourse, at: int) -> str:
    return f"{round(course.flight[at] / course.mss_bytes)} packets"


def _without(
    rounds: list[Round],
    initial: int | None,
    paced: bool,
    why: str,
    limit: str | None = None,
    end: int | None = None,
    growth: float | None = None,
) -> StartUp:
    return StartUp(rounds, growth, initial, None, None, None, False, "", why, limit, end, paced, None)


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
    """Full segments that left before the first ACK of data; None where their end is the application's."""
    if seen.opener is None or not len(course):
        return None
    first = int(np.argmax(course.una_after > course.una[0])) if (course.una_after > course.una[0]).any() else 0
    last = int(np.searchsorted(seen.sent.top, course.nxt[first]))
    last = min(last, seen.sent.top.size - 1)
    short = int(seen.sent.end[last] - seen.sent.begin[last]) % course.mss_bytes
    if short and int(course.nxt[first]) < int(seen.sent.top[-1]):
        return None  # the application had no more yet, as in a handshake of TLS
    return max(round(float(course.nxt[first] - course.una[0]) / course.mss_bytes), 1)


def _last_growth(gain: Reals, course: SenderCourse, first_again: int | None) -> int | None:
    """The last ACK at which D is where it was; None where it never falls for good before anything is sent again.

    D has fallen for good where what is acknowledged without growth is a third of what is in flight. The other case: a D
    below what the size of the ACKs explains when the first segment is sent again.
    """
    flight = course.flight / course.mss_bytes
    steps = np.diff(course.una, prepend=course.una[:1]) / course.mss_bytes
    step = float(np.percentile(steps, 90)) if steps.size else 1.0
    rows = np.flatnonzero(course.exact)
    if first_again is not None:
        rows = rows[rows <= first_again]
    if not rows.size:
        return first_again
    # Many ACKs at once are answered when all are read: what D comes back to it has not lost.
    gain = gain.copy()
    gain[rows] = np.maximum.accumulate(gain[rows][::-1])[::-1]
    most = np.maximum.accumulate(gain[rows])
    slack = np.maximum(3.0, step)
    below = most - gain[rows]
    fallen = rows[below > np.maximum(slack + _LEAST_FALL_PACKETS, _FALL * flight[rows])]
    until = int(fallen[0]) if fallen.size else None
    if first_again is not None and (until is None or first_again < until):
        if below[-1] <= slack + _FEW_PACKETS:
            return first_again
        until = first_again
    if until is None:
        return None
    return _knee(rows[rows <= until], gain, course, step)


def _knee(rows: Integers, gain: Reals, course: SenderCourse, step: float) -> int | None:
    """Where D, which falls towards the last of these ACKs, began to: before that, what was acknowledged in the last
    packets took less than most of itself from D. A step of D alone is a pause."""
    una = course.una[rows] / course.mss_bytes
    back = np.searchsorted(una, una - max(_KNEE_PACKETS, 3 * step))
    falls = (gain[rows[back]] - gain[rows]) >= _KNEE_SHARE * np.maximum(una - una[back], 1e-9)
    flat = np.flatnonzero(~falls)
    if not flat.size:
        return int(rows[0])
    first, last = int(back[flat[-1]]), int(flat[-1])
    window = gain[rows[first : last + 1]]
    return int(rows[first + int(np.flatnonzero(window >= window.max() - 0.5)[-1])])


def _loss_or_timeout(seen: Seen, course: SenderCourse, at: int, trips: RoundTrips) -> str:
    """A timeout follows a silence, and no three duplicates."""
    repeats = seen.acks.repeats[max(at - 200, 0) : at + 1]
    sacked = bool((seen.acks.sack_top[max(at - 5, 0) : at + 1] > seen.acks.una[max(at - 5, 0) : at + 1]).any())
    again = seen.sent.time_ns[np.isin(seen.sent.kind, (1, 3))]
    silence = int(again[0]) - int(course.time_ns[at]) if again.size else 0
    far = (trips.base_ns.value or 0) if trips.at != SENDER else 0
    if silence - far >= _LEAST_TIMEOUT_NS and repeats[-_DUPLICATES:].sum() < _DUPLICATES and not sacked:
        return RTO
    return LOSS


def _all_sent(seen: Seen, course: SenderCourse, at: int) -> bool:
    """Whether nothing new left behind an ACK, and the sender said that this is the end, or all was acknowledged."""
    last = int(seen.sent.top[-1])
    return int(course.nxt[at]) >= last - course.mss_bytes and (seen.closed or int(course.una_after[-1]) >= last)


def _limit(seen: Seen, course: SenderCourse, trips: RoundTrips, at: int | None) -> str | None:
    """What stopped growth at an ACK without the sender's own doing."""
    if at is None:
        return None
    near = slice(at, min(at + max(20, (len(course) - at) // 20), len(course)))
    windows = course.window_bytes[near]
    if windows.size and windows.min() >= 0:
        room = windows - course.flight[near]
        if float(np.median(room)) < 2 * course.mss_bytes or float((room < 3 * course.mss_bytes).mean()) > 0.5:
            return RECEIVE_WINDOW
    if ran_dry(seen, course, trips, at) or float(fed(seen, course)[near].mean()) > _MOSTLY:
        return APPLICATION
    # What ACKs that come together let go shows at the next ones.
    later = at + 1 + np.flatnonzero(course.exact[at + 1 :])
    apart = later[course.time_ns[later] > course.time_ns[at] + _TOGETHER_NS]
    if not apart.size or _all_sent(seen, course, max(int(later[:3][-1]), int(apart[0]))):
        return APPLICATION
    return None


def _first_mark(seen: Seen) -> int | None:
    """The first ACK that reports a mark of ECN, where the sender says that it reduced its window."""
    flags = seen.connection.column("flags")
    if not (flags[seen.sent.place] & CWR).any():
        return None
    marks = np.flatnonzero(flags[seen.acks.place] & ECE)
    return int(marks[0]) if marks.size else None


def _detector(
    course: SenderCourse, trips: RoundTrips, found: Detections, end: int, mark: int | None, paced: bool
) -> tuple[str, bool, str]:
    """Which detector of HyStart speaks at the exit, or whether a mark of ECN comes there."""
    base = trips.base_ns.value or 0
    doubt = max(_NEAR_ROUNDS * base, 2 * trips.clock_ns)
    marks = [] if mark is None else [mark]
    spoke = [
        (0 if abs(at - end) <= _FEW_ACKS else abs(int(course.time_ns[at]) - int(course.time_ns[end])), cause, at)
        for cause, places in ((ACK_TRAIN, found.trains), (DELAY, found.delays), (CONGESTION_SIGNAL, marks))
        for at in places
    ]
    near = sorted(each for each in spoke if each[0] <= doubt)
    if trips.clock_ns > _FINE_NS:
        return (
            UNKNOWN,
            False,
            "growth ended without a loss; the clock of the capture is too coarse for HyStart's detectors",
        )
    if not near:
        return UNKNOWN, False, "growth ended without a loss, a full window, or what HyStart's detectors look for"
    if near[0][1] != near[-1][1] and near[-1][0] - near[0][0] < _BOTH * base:
        both = "a mark of ECN and a detector" if mark is not None else "both detectors"
        return UNKNOWN, False, f"{both} of HyStart speak at the same time"
    _far, cause, at = near[0]
    if paced and cause != CONGESTION_SIGNAL:
        return UNKNOWN, False, "it paces: a detector of HyStart, or a model of the path as BBR's, ended growth"
    if cause == CONGESTION_SIGNAL:
        return cause, True, "the receiver reports a mark of ECN, and the sender reduced its window"
    if cause == ACK_TRAIN:
        length, need = (each / 1e6 for each in found.trains[at])
        words = f"a train of ACKs of {length:.1f} ms, longer than {need:.1f} ms"
    else:
        rise, need = (each / 1e6 for each in found.delays[at])
        words = f"the least round trip of a round rose by {rise:.1f} ms ({need:.1f} ms are enough)"
    return cause, True, words
