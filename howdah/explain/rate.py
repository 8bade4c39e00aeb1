# SPDX-License-Identifier: Apache-2.0
"""The rate of the path, by what was delivered while there was a queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import SenderCourse, in_repair
from howdah.explain.delay import SENDER, Reals, RoundTrips
from howdah.explain.estimate import Estimate, absent
from howdah.explain.seen import Flags, Seen
from howdah.frame import TIME_STAMP_BYTES
from howdah.ingest.source import Integers

# Stretches that are tried in turn: their segments, how many there must be, and which share of them must agree.
_STRETCHES = ((48, 2, 0.25), (16, 3, 0.6))
_BURSTS_PACKETS = (4, 8, 16, 32)  # segments that left together, in the sizes that are tried in turn
_BURSTS = 4  # bursts that it takes; also segments of a size that count
_GREW = 0.5  # share of a burst's time by which its round trip must have grown
_CLOCKS = 20  # steps of the clock that a stretch must last
_BUSY_SHARE, _BUSY_LEAST_NS = 0.03, 500_000  # share of the base round trip, and time, above which a delay is a queue
_NEAR = 0.02  # relative difference up to which stretches agree
_ROUNDS = 4  # round trips of the lower bound, at least
_CALM = 0.7  # share of agreeing stretches below which the delay itself varies
_MANY = 40  # agreeing stretches that suffice, however many disagree
_LEAST_ERROR = 0.005  # least relative error of a rate
_ERROR_OF_ONE = 0.04  # relative error of a single stretch
_FEW = 8  # stretches that it takes to judge variation
_LEAST_SEGMENTS = 200  # segments of the longest stretch, at least
# Segments come evenly if, in windows of at least so many packets, the mode is this close to the rate and this share of
# the windows is that near to it.
_EVEN_PACKETS, _EVEN_MODE, _EVEN_NEAR, _EVEN_SHARE = 4, 0.03, 0.05, 0.1
_AT_ONCE = 0.25  # share of a segment's time: ACKs that come sooner come in a bunch
_MOST_BUNCHED = 0.3  # share of the ACKs that may come in bunches
_BUNCHES = "ACKs come in bunches, whose spacing is not the path's"
_SURE = 0.999  # factor for a bound, because clocks are no better
_FRESH = 0.25  # share of the round trip: older samples do not show the queue
_OF_ONE_SIZE = 1.01  # ratio of bytes per payload byte up to which segments count as of one size
_LEAST_PART = 0.005  # share of all bytes below which segments of a size do not count
_MOST_WANDER = 0.1  # share of a stretch's time by which deliveries may stray


@dataclass(frozen=True)
class SeenRate:
    """``estimate`` is in bits per second of whole Ethernet frames. ``wander_ns`` is how far deliveries strayed from it
    during a queue because the delay varied."""

    estimate: Estimate
    wander_ns: float


def rate_of(seen: Seen, course: SenderCourse, trips: RoundTrips) -> SeenRate:
    """Estimate the path's rate: from what ACKs and SACK report as delivered in stretches with a queue; if the delay
    varies too, from the longest such stretch; without a queue, from the spacing that the path gave to segments that
    left together."""
    frame = frame_share(seen)
    unreported = _unreported(seen, course)
    queue = np.where(unreported, np.nan, _queue_at_acks(course, trips))
    short, reason = _from_short_stretches(course, trips, queue, frame)
    long, wander_ns = _from_longest_stretch(course, trips, queue, frame)
    least = _lower_bound(course, trips, unreported, frame)
    known = [each for each in (short, long) if each is not None]
    if any(each.high is not None and each.high < (least or 0.0) for each in known):
        known, reason = [], "the flow was faster at another time than while its delay was long"
    elif known and not _is_even(known[-1], course, trips, queue, frame):
        known, reason = (
            [],
            "segments did not come evenly while the delay was long: it varies, and there may be no queue",
        )
    busy = np.nan_to_num(queue) > busy_ns(trips)
    if short is not None and short in known and _in_bunches(short, course, frame, busy):
        known = [each for each in known if each is not short]
        short, reason = None, _BUNCHES
    if short is not None and long is not None and known == [short, long] and _are_disjoint(short, long):
        return SeenRate(_widened(long, short), wander_ns)
    if known:
        sure = short is not None and short.within(_NEAR)
        return SeenRate(known[0] if sure else min(known, key=_width), wander_ns)
    if not seen.has_stamps and trips.at != SENDER:
        reason = "away from the sender, segments without time stamps do not tell whether there was a queue"
    spaced, used = _from_bursts(course, trips, queue, frame)
    if spaced is not None and _in_bunches(spaced, course, frame, used):
        spaced, reason = None, _BUNCHES
    if spaced is not None and (spaced.high or 0.0) < (least or 0.0):
        spaced, reason = None, "segments that left together came no faster than the flow was at another time"
    return SeenRate(spaced or absent(reason, least), wander_ns)


def _in_bunches(found: Estimate, course: SenderCourse, frame: float, used: Flags) -> bool:
    """Whether most ACKs that a rate is based on arrive closer together than the path can deliver one segment: an
    interface or a link gathers them, and their spacing is not the path's."""
    assert found.value is not None
    gaps = np.diff(course.time_ns)[(np.diff(course.una_after) > 0) & used[1:]]
    return (
        bool(gaps.size)
        and float((gaps < _AT_ONCE * course.mss_bytes * frame * 8e9 / found.value).mean()) > _MOST_BUNCHED
    )


def _is_even(found: Estimate, course: SenderCourse, trips: RoundTrips, queue: Reals, frame: float) -> bool:
    """Whether a few segments at a time also come at the rate, or ACKs or clock are too coarse to tell. After a queue
    they do. A window that is limited by a varying delay comes in bursts, which have the rate only on average."""
    assert found.value is not None
    segment_ns = course.mss_bytes * frame * 8e9 / found.value
    steps = np.diff(course.una_after, prepend=course.una[:1])
    per_ack = float(steps[steps > 0].mean()) / course.mss_bytes if (steps > 0).any() else 1.0
    packets = max(_EVEN_PACKETS, round(2 * per_ack), round(_CLOCKS * trips.clock_ns / segment_ns))
    if packets > _STRETCHES[0][0] / 2:
        return True
    busy = (queue > busy_ns(trips)) & (course.flight >= 2 * packets * course.mss_bytes)
    got, took = _stretches(course, busy, packets, frame)
    if took.size < _FEW:
        return False
    rates = got / took / found.value
    return bool(abs(_mode(rates) - 1) <= _EVEN_MODE and (np.abs(rates - 1) <= _EVEN_NEAR).mean() >= _EVEN_SHARE)


def _are_disjoint(one: Estimate, other: Estimate) -> bool:
    return (one.high or 0.0) < (other.low or 0.0) or (other.high or 0.0) < (one.low or 0.0)


def _widened(long: Estimate, short: Estimate) -> Estimate:
    """The long estimate with an interval that holds both, for estimates that a varying delay sets apart: it affects the
    mean of a long time least."""
    low, high = min(long.low or 0.0, short.low or 0.0), max(long.high or 0.0, short.high or 0.0)
    return Estimate(long.value, low, high, long.how)


def _width(found: Estimate) -> float:
    return (found.high or 0.0) - (found.low or 0.0)


def _from_short_stretches(
    course: SenderCourse, trips: RoundTrips, queue: Reals, frame: float
) -> tuple[Estimate | None, str]:
    """The rate from stretches that agree, or why there is no rate."""
    reason = "there was no queue for long enough: the path may be faster than the flow ever was"
    for packets, least, agree in _STRETCHES:
        got, took = _stretches(course, queue > busy_ns(trips), packets, frame)
        if took.size < least or float(np.median(took)) < _CLOCKS * trips.clock_ns:
            continue
        rates = got / took
        near = np.abs(rates / _mode(rates) - 1) <= _NEAR
        if near.sum() < least or (near.mean() < agree and near.sum() < _MANY):
            reason = "what was delivered while there was a queue varies: no rate is usual"
            continue
        spread = float(np.subtract(*np.percentile(rates, [75, 25])))
        others = spread / 2 if near.mean() < _CALM else 0.0
        got, took = got[near], took[near]
        value = float(got.sum() / took.sum())
        low, high = np.percentile(got / took, [10, 90])
        clock = 2 * trips.clock_ns / float(took.mean()) * value
        error = (float(high - low) + clock) / np.sqrt(got.size) + others
        error = max(error, max(_LEAST_ERROR, _ERROR_OF_ONE / np.sqrt(got.size)) * value)
        how = f"what was delivered in {got.size} stretches of {packets} segments with a queue all the time"
        return Estimate(value, value - error, value + error, how), ""
    return None, reason


def _stretches(course: SenderCourse, busy: Flags, packets: int, frame: float) -> tuple[Reals, Integers]:
    """The bits (times 1e9) and ns of stretches of this many segments that do not overlap, each with a queue
    throughout."""
    calm = np.concatenate([[0], np.cumsum(~busy)])
    until = np.searchsorted(course.delivered, course.delivered + packets * course.mss_bytes)
    rows = np.flatnonzero(until < len(course))
    chosen = _not_overlapping(rows[calm[until[rows] + 1] - calm[rows] == 0], until)
    took = course.time_ns[until[chosen]] - course.time_ns[chosen]
    got = (course.delivered[until[chosen]] - course.delivered[chosen]) * frame * 8e9
    return got[took > 0].astype(np.float64), took[took > 0].astype(np.int64)


def _from_longest_stretch(
    course: SenderCourse, trips: RoundTrips, queue: Reals, frame: float
) -> tuple[Estimate | None, float]:
    """The rate from the longest time with a queue that exceeds the variation of the delay; and how far deliveries
    strayed from that rate, in ns."""
    got, took = _stretches(course, queue > busy_ns(trips), _STRETCHES[0][0], frame)
    if took.size < _FEW:
        return None, 0.0
    wander = float(np.subtract(*np.percentile(took - got * took.sum() / got.sum(), [95, 5])))
    busy = queue > busy_ns(trips) + wander
    edges = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]])))
    if not edges.size:
        return None, wander
    begins, ends = edges[::2], edges[1::2] - 1
    longest = int(np.argmax(course.time_ns[ends] - course.time_ns[begins]))
    rows = slice(int(begins[longest]), int(ends[longest]) + 1)
    time, bits = course.time_ns[rows], course.delivered[rows] * frame * 8e9
    lasted = int(time[-1] - time[0])
    if lasted < _CLOCKS * trips.clock_ns or bits[-1] - bits[0] < _LEAST_SEGMENTS * course.mss_bytes * frame * 8e9:
        return None, wander
    value = float((bits[-1] - bits[0]) / lasted)
    strayed = (time - time[0]) - (bits - bits[0]) / value
    wander = max(wander, float(np.subtract(*np.percentile(strayed, [97.5, 2.5]))))
    share = (wander + 2 * trips.clock_ns) / lasted
    if share > _MOST_WANDER:
        return None, wander
    error = max(share, _LEAST_ERROR) * value
    how = f"what was delivered in {lasted / 1e9:.2g} s with a queue all the time, while the delay varied"
    return Estimate(value, value - error, value + error, how), wander


def _from_bursts(course: SenderCourse, trips: RoundTrips, queue: Reals, frame: float) -> tuple[Estimate | None, Flags]:
    """The rate from the spacing that the path gave to segments that left closer together, and the ACKs used: the round
    trip grew by most of the time that the segments took. Start with few segments, so that the first window is enough,
    and take more where stamps are coarse."""
    for packets in _BURSTS_PACKETS:
        until = np.searchsorted(course.delivered, course.delivered + packets * course.mss_bytes)
        rows = np.flatnonzero(until < len(course))
        took = course.time_ns[until[rows]] - course.time_ns[rows]
        grew = queue[until[rows]] - queue[rows] - trips.up_doubt_ns
        good = (took > max(_CLOCKS * trips.clock_ns, 1)) & (grew >= _GREW * took)
        rows, took = rows[good], took[good]
        got = (course.delivered[until[rows]] - course.delivered[rows]) * frame * 8e9
        if rows.size < _BURSTS:
            continue
        rates = got / took
        near = np.abs(rates / _mode(rates) - 1) <= _NEAR
        starts = np.unique(np.searchsorted(course.rounds, rows[near], side="right"))
        if near.mean() < 0.5 or near.sum() < _BURSTS or starts.size < 2:
            continue
        value = float(got[near].sum() / took[near].sum())
        how = f"the spacing of ACKs of segments that left together, in {starts.size} round trips"
        used = np.zeros(len(course) + 1, np.int64)
        np.add.at(used, rows[near] + 1, 1)
        np.add.at(used, until[rows[near]] + 1, -1)
        return Estimate(value, 0.98 * value, 1.02 * value, how), np.cumsum(used)[:-1] > 0
    return None, np.zeros(len(course), bool)


def _lower_bound(course: SenderCourse, trips: RoundTrips, unreported: Flags, frame: float) -> float | None:
    """The most that was delivered in four round trips or more: the path is at least as fast. ACKs may be closer
    together by as much as round trips differ. No such time begins where deliveries are not reported."""
    starts = course.rounds
    if not trips.rtt_ns.size:
        return None
    differ = int(np.ptp(trips.rtt_ns)) + trips.clock_ns
    found, rounds = 0.0, _ROUNDS
    while rounds < starts.size:
        took = course.time_ns[starts[rounds:]] - course.time_ns[starts[:-rounds]] + differ
        got = course.delivered[starts[rounds:]] - course.delivered[starts[:-rounds]]
        rates = np.where(unreported[starts[:-rounds]], 0, got / np.maximum(took, 1))
        found = max(found, float(rates.max() * frame * 8e9))
        rounds *= 2
    return _SURE * found or None


def _unreported(seen: Seen, course: SenderCourse) -> Flags:
    """Whether it is unknown what was delivered at each ACK: in repairs, if the capture has no SACK blocks."""
    if seen.connection.sack.size:
        return np.zeros(len(course), bool)
    return in_repair(course) | seen.acks.repeats


def _queue_at_acks(course: SenderCourse, trips: RoundTrips) -> Reals:
    """The queue in ns at each ACK, by the last sample; NaN before the first one and where it is too old, as in a long
    repair."""
    found = np.full(len(course), np.nan)
    if not trips.ack.size:
        return found
    found[trips.ack] = trips.queue_ns
    latest = np.maximum.accumulate(np.where(np.isnan(found), -1, np.arange(found.size)))
    age_ns = course.time_ns - course.time_ns[np.maximum(latest, 0)]
    known = (latest >= 0) & (age_ns <= np.maximum(_FRESH * trips.rtt_ns.min(), _CLOCKS * trips.clock_ns))
    return np.where(known, found[np.maximum(latest, 0)], np.nan)


def _mode(values: Reals) -> float:
    """The half-sample mode (Robertson and Cryer, 1974)."""
    kept = np.sort(values)
    while kept.size > 3:
        half = (kept.size + 1) // 2
        widths = kept[half - 1 :] - kept[: kept.size - half + 1]
        first = int(np.argmin(widths))
        if widths[first] == 0:
            return float(kept[first])
        kept = kept[first : first + half]
    return float(np.median(kept))


def _not_overlapping(rows: Integers, until: Integers) -> Integers:
    """Choose rows in order so that the windows from each ``row`` to ``until[row]`` do not overlap."""
    found, end = [], -1
    for row, stop in zip(rows.tolist(), until[rows].tolist(), strict=True):
        if row >= end:
            found.append(row)
            end = stop
    return np.array(found, np.int64)


def busy_ns(trips: RoundTrips) -> float:
    """The shortest delay in ns beyond the base that counts as a queue."""
    base = trips.base_ns.value
    if base is None:
        base = float(trips.rtt_ns.min()) if trips.rtt_ns.size else 0.0
    return max(_BUSY_SHARE * base, _BUSY_LEAST_NS, 2 * trips.clock_ns + 1.5 * trips.up_doubt_ns)


def with_other_frame_sizes(found: Estimate, seen: Seen) -> Estimate:
    """Widen the interval of a rate if many segments are smaller or larger than usual, because headers are then another
    share of their frames."""
    said = [each.mss_bytes for each in seen.connection.options.values() if each is not None and each.mss_bytes]
    full = max(seen.mss_bytes, min(said, default=0) - TIME_STAMP_BYTES * seen.has_stamps)
    sizes, counts = np.unique(np.minimum(seen.sent.end - seen.sent.begin, full), return_counts=True)
    many = sizes[(counts >= _BURSTS) & (sizes * counts >= _LEAST_PART * (sizes * counts).sum())]
    if not many.size or found.value is None:
        return found
    extra, frame = float(np.median(seen.sent.extra_bytes)), frame_share(seen)
    least, most = (1 + extra / float(size) for size in (many.max(), many.min()))
    if most <= _OF_ONE_SIZE * least:
        return found
    low, high = (found.low or 0.0) * least / frame, (found.high or 0.0) * most / frame
    return Estimate(found.value, low, high, f"{found.how}; segments differ in size")


def frame_share(seen: Seen) -> float:
    """Bytes of frames per byte of payload."""
    extra = float(np.median(seen.sent.extra_bytes))
    return (seen.mss_bytes + extra) / seen.mss_bytes
