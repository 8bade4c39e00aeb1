# SPDX-License-Identifier: Apache-2.0
"""Where the tap was, and the round trips that it saw.

A tap divides the round trip. The *far* part goes from the tap to the receiver and back, and shows between a segment and
its ACK. The *near* part goes to the sender and back, and shows between an ACK and the first segment that echoes its
time stamp, or in the handshake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from howdah.explain.estimate import Estimate, absent
from howdah.explain.seen import AGAIN, FILLS, NEW, Flags, Seen
from howdah.ingest.source import Integers

Tap = Literal["sender", "middle", "receiver"]
SENDER: Final = "sender"
MIDDLE: Final = "middle"
RECEIVER: Final = "receiver"
_AT_END_SHARE = 0.1  # share of the round trip: a tap nearer to an end is at that end
_COARSE_SHARE = 0.25  # share of the round trip: coarser clocks do not show where the tap was
_SPLIT_SHARE = 0.6  # share of the data's round trip: a shorter handshake was answered by something nearer
_FEW_SAMPLES = 8  # samples that it takes for a least one, or a spread
_TICKS_HZ = np.array([100, 250, 500, 1000, 1_000_000])  # frequencies of TCP stamps in kernels
_TICK_DOUBT = 0.2  # relative error of that frequency: a growing queue stretches the time between stamps
_MANY = 3  # segments per ACK from which on a receiver acknowledges many at once
_LATE = 2.0  # factor to the usual time for as many segments, above which such an ACK waited
_DELAYED_ACK_NS = 20_000_000  # half of TCP_DELACK_MIN, as in howdah/measure/rounds.py

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RoundTrips:
    """Round trips of one flow. ``at`` is where the tap was, None if nothing shows it; ``base_ns`` the data's round trip
    without a queue; ``handshake_ns`` the handshake's; ``near_ns`` and ``far_ns`` the least of each part.

    ``ack`` are the places of the ACKs with a sample, and ``rtt_ns`` their samples: the far part, plus the delay between
    sender and tap beyond its least, known to ``up_doubt_ns``, plus the least near part. ``clock_ns`` is the resolution
    of the stamps. ``is_split``: something nearer than the data's receiver answered the handshake.
    """

    at: Tap | None
    base_ns: Estimate
    handshake_ns: int | None
    near_ns: int | None
    far_ns: int | None
    ack: Integers
    rtt_ns: Integers
    clock_ns: int
    is_split: bool
    up_doubt_ns: int
    near_varies: bool

    @cached_property
    def queue_ns(self) -> Integers:
        return self.rtt_ns - self.rtt_ns.min() if self.rtt_ns.size else self.rtt_ns


def clock_step_ns(time_ns: Integers) -> int:
    """The resolution of a clock: the largest usual unit of which all its stamps are multiples."""
    sample = time_ns[:: max(time_ns.size // 20_000, 1)]
    for unit in (100_000_000, 10_000_000, 4_000_000, 1_000_000, 100_000, 10_000, 1000):
        rest = (sample - sample[0]) % unit
        if sample.size > 2 and not np.minimum(rest, unit - rest).max() > unit // 1000:
            return unit
    return 1


def round_trips(seen: Seen) -> RoundTrips:
    clock = clock_step_ns(seen.connection.column("time_ns"))
    ack, segment, far = _far_samples(seen)
    near_data = _near_samples(seen)
    to_server, to_client = _handshake(seen)
    near_first, far_first = (to_client, to_server) if seen.opener == "sender" else (to_server, to_client)
    handshake = None if to_server is None or to_client is None else to_server + to_client
    far_least = int(far.min()) if far.size else None
    near_least = None if near_data is None else int(near_data.min())
    is_split = False
    if near_least is None:
        near_least = near_first
    if far_least is not None and far_first is not None and handshake and near_least is not None:
        whole = far_least + near_least
        is_split = handshake < _SPLIT_SHARE * whole and whole - handshake > 2 * clock + 1_000_000
    at = _tap_position(near_least, far_least, clock)
    if near_least is None and is_split:
        near_least = None
    base = _base(far, near_least, near_data, handshake, clock, is_split)
    up, doubt = delay_before_tap(seen, segment, at, clock)
    varies = near_data is not None and near_data.size >= _FEW_SAMPLES and at != SENDER
    if varies and near_data is not None and near_least is not None and far_least is not None:
        spread = float(np.percentile(near_data, 75)) - near_least
        varies = spread > max(0.1 * (near_least + far_least), 2_000_000)
    return RoundTrips(
        at, base, handshake, near_least, far_least, ack, far + up + (near_least or 0), clock, is_split, doubt, varies
    )


def _far_samples(seen: Seen) -> tuple[Integers, Integers, Integers]:
    """ACKs with a sample, the segment that each answers, and the time between. Segments sent twice do not count (Karn's
    algorithm), nor ACKs of data that filled a hole."""
    sent, acks = seen.sent, seen.acks
    fresh = np.flatnonzero(sent.kind == NEW)
    fresh = fresh[sent.end[fresh] == sent.top[fresh]]
    before = np.concatenate([[0], acks.una[:-1]])
    advanced = np.flatnonzero(acks.una > before)
    una = acks.una[advanced]
    at = np.searchsorted(sent.end[fresh], una)
    good = at < fresh.size
    advanced, una, at = advanced[good], una[good], at[good]
    segment = fresh[at]
    again = np.sort(sent.begin[(sent.kind == AGAIN) | (sent.kind == FILLS)])
    doubled = np.searchsorted(again, una) > np.searchsorted(again, before[advanced])
    # While a hole was open, what the ACK releases was acknowledged late.
    holes = np.concatenate([[False], acks.sack_top[:-1] > acks.una[:-1]])[advanced]
    advance = una - before[advanced]
    waited = _waited_for_more(np.diff(acks.time_ns, prepend=acks.time_ns[:1])[advanced], advance, seen.mss_bytes)
    # A single segment waits for the next one; if that is lost, the one after it makes the receiver answer.
    usual = float(np.percentile(advance, 90)) if advance.size else 0.0
    waited |= (acks.sack_top[advanced] > una) & (advance < usual) & (usual <= 2 * seen.mss_bytes)
    good = (sent.place[segment] < acks.place[advanced]) & ~doubled & ~holes & ~waited & (sent.begin[segment] < una)
    advanced, segment = advanced[good], segment[good]
    return advanced, segment, acks.time_ns[advanced] - sent.time_ns[segment]


def _waited_for_more(gap_ns: Integers, advance: Integers, mss_bytes: int) -> Flags:
    """Whether each ACK waited for segments that did not arrive: it acknowledges one segment after a long time or, from
    a receiver that acknowledges many at once, fewer than usual and later than that many take."""
    waited = (gap_ns >= _DELAYED_ACK_NS) & (advance <= mss_bytes)
    usual = float(np.percentile(advance, 90)) if advance.size else 0.0
    whole = advance >= usual
    if usual < _MANY * mss_bytes or not whole.any():
        return waited
    each = float(np.median(gap_ns[whole] / advance[whole]))
    return np.asarray(waited | (~whole & (gap_ns > _LATE * each * advance)))


def _near_samples(seen: Seen) -> Integers | None:
    if not seen.has_stamps:
        return None
    stamps, first = np.unique(seen.acks.stamp, return_index=True)
    echoes, echoed = np.unique(seen.sent.echo, return_index=True)
    at = np.searchsorted(stamps, echoes)
    good = at < stamps.size
    at, echoes, echoed = at[good], echoes[good], echoed[good]
    # If the capture begins in mid-stream, an earlier ACK may have carried its first stamp.
    good = (stamps[at] == echoes) & ((at > 0) | (seen.opener is not None))
    took = seen.sent.time_ns[echoed[good]] - seen.acks.time_ns[first[at[good]]]
    took = took[took >= 0]
    return took if took.size >= _FEW_SAMPLES else None


def _handshake(seen: Seen) -> tuple[int | None, int | None]:
    """Times from the tap to the server and back, and to the client and back."""
    opened, answered, ended = seen.syn_ns
    server = answered - opened if opened is not None and answered is not None and answered >= opened else None
    client = ended - answered if ended is not None and answered is not None and ended >= answered else None
    return server, client


def _tap_position(near: int | None, far: int | None, clock: int) -> Tap | None:
    if near is None or far is None or near + far <= 0 or clock > _COARSE_SHARE * (near + far):
        return None
    if near <= max(_AT_END_SHARE * (near + far), clock):
        return SENDER
    return RECEIVER if far <= max(_AT_END_SHARE * (near + far), clock) else MIDDLE


def _base(
    far: Integers, near: int | None, near_data: Integers | None, handshake: int | None, clock: int, is_split: bool
) -> Estimate:
    if not far.size:
        return absent("no ACK answers a segment that was sent once")
    least = int(far.min())
    if near is None:
        reason = "the way between sender and tap is not seen: no handshake, and no time stamps of TCP"
        return absent(reason, low=float(max(least - clock, 0)))
    whole = least + near
    how = "the least time from a segment to its ACK"
    if near_data is not None and near > max(clock, 0.02 * whole):
        how += ", and from an ACK to the segment that echoes it"
    if handshake is not None and not is_split and handshake < whole:
        whole, how = handshake, "the handshake, in which there was no queue"
    low = max(whole - 2 * clock, 0) if clock > 1000 else whole
    # A few samples may all have met a queue.
    high = whole + 2 * clock if clock > 1000 else whole + (0.001 * whole if far.size >= _FEW_SAMPLES else 0.05 * whole)
    least_known = float(min(low, 0.995 * whole)) if handshake is not None else None
    if handshake is None:
        how += "; without the handshake nobody knows whether there was a queue all the time"
    return Estimate(float(whole), least_known, float(max(high, 1.005 * whole)), how)


def delay_before_tap(seen: Seen, segment: Integers, at: str | None, clock: int) -> tuple[Integers, int]:
    """Return how much longer than the least each segment took from the sender to the tap, by the sender's stamps, and
    the uncertainty of that. Zero at the sender, and for segments without stamps."""
    if at == SENDER or not seen.has_stamps or not segment.size:
        return np.zeros(segment.size, np.int64), 0
    hz = stamp_hz(seen)
    if hz is None:
        return np.zeros(segment.size, np.int64), 0
    tick = 1e9 / hz
    late = seen.sent.time_ns - seen.sent.stamp * tick
    late -= late.min()
    return np.rint(late[segment]).astype(np.int64), int(tick) + clock


def stamp_hz(seen: Seen) -> int | None:
    """The frequency of the sender's stamps; None if it fits no clock that kernels use."""
    time, stamp = seen.sent.time_ns, seen.sent.stamp
    took = int(time[-1] - time[0])
    if took < 50_000_000 or stamp[-1] <= stamp[0]:
        return None
    hz = (stamp[-1] - stamp[0]) / (took / 1e9)
    nearest = int(_TICKS_HZ[np.argmin(np.abs(np.log(_TICKS_HZ / hz)))])
    return nearest if abs(hz / nearest - 1) <= _TICK_DOUBT else None
