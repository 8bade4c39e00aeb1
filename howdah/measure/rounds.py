# SPDX-License-Identifier: Apache-2.0
"""Rounds, recovery episodes and raw round-trip times of a flow, from sequence numbers alone; and reductions of the
window: restarts after an idle time, and cuts after the exit from slow start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace, Integers

_DUPLICATES = 3  # TCP_FASTRETRANS_THRESH
_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_DELAYED_ACK_NS = 20_000_000  # half of TCP_DELACK_MIN: the timer counts jiffies


def rounds(trace: FlowTrace) -> Integers:
    """Return the indices of the records that begin a round, the first being 0; shape (rounds,).

    A round ends when everything that was sent when it began is acknowledged: ``snd_una`` has reached the ``snd_nxt`` of
    its first record (like windowEnd of RFC 9406 and the marker of ``hystart_update``).
    """
    return round_starts(trace.snd_una, trace.snd_nxt)


def round_starts(snd_una: Integers, snd_nxt: Integers) -> Integers:
    """Return the same from the states before each ACK, from any source; both of shape (n,)."""
    starts = [0] if snd_una.size else []
    while starts:
        following = int(np.searchsorted(snd_una, snd_nxt[starts[-1]], side="left"))
        if following >= snd_una.size or following <= starts[-1]:
            break
        starts.append(following)
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True)
class Episode:
    """A stretch of records in which ACKs did not advance ``snd_una``; ``end`` is the first record after it."""

    begin: int
    end: int


def episodes(trace: FlowTrace) -> list[Episode]:
    """Return the loss (or reordering) episodes: from the third consecutive ACK that acknowledges nothing new while data
    is outstanding, to the ACK of all that had been sent by then (the recovery point of RFC 6582).
    """
    if len(trace) < _DUPLICATES + 1:
        return []
    still = (np.diff(trace.snd_una) == 0) & (trace.snd_nxt[:-1] > trace.snd_una[:-1])
    thirds = np.flatnonzero(still[2:] & still[1:-1] & still[:-2]) + 2
    found: list[Episode] = []
    position = 0
    while True:
        which = int(np.searchsorted(thirds, position, side="left"))
        if which >= thirds.size:
            return found
        begin = int(thirds[which])
        end = int(np.searchsorted(trace.snd_una, trace.snd_nxt[begin], side="left"))
        end = max(end, begin + 1)
        found.append(Episode(begin, min(end, len(trace))))
        if end >= len(trace):
            return found
        position = end


def send_time_doubt_ns(trace: FlowTrace) -> int:
    """Return the largest uncertainty of a byte's send time at which its RTT is used: 1 % of the path's RTT, or four
    times the usual spacing of ACKs if that is more.
    """
    spacing = float(np.median(np.diff(trace.time_ns))) if len(trace) > 1 else 0.0
    return int(max(0.01 * trace.flow.rtt_us * 1000, 4 * spacing))


def raw_rtt(trace: FlowTrace) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the round-trip time in ns of the newest byte each ACK acknowledges, and whether it is reliable; shape
    (n,).

    A byte left when ``snd_nxt`` first passed it: after the last record that does not count it and before the next one.
    The earlier of the two is taken, which is exact for a sender clocked by its ACKs and never too small for a paced one
    (tcp_probe itself has only the smoothed RTT). Not reliable are

    - ACKs that acknowledge nothing new, and the last record, whose effect is unknown;
    - bytes whose send time is uncertain by more than :func:`send_time_doubt_ns` (the last of a flight, probes sent by a
      timer, the first flight of a user-space sender);
    - ACKs in a recovery: the byte may have been sent twice (Karn's rule, :func:`sent_once` has the rest of it);
    - an ACK of one segment long after the one before: it may have waited for the receiver's delayed-ACK timer.
    """
    count = len(trace)
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    sent, before = _send_times(trace)
    doubt = trace.time_ns[np.minimum(before + 1, count - 1)] - sent
    doubt[before < 0] = 0
    advance = trace.una_after - trace.snd_una
    good = (advance > 0) & (doubt <= send_time_doubt_ns(trace))
    if not _immediate(trace):
        good &= before >= 0
    waited = np.diff(trace.time_ns, prepend=trace.time_ns[0])
    good &= ~((advance <= trace.mss_bytes) & (waited >= _DELAYED_ACK_NS))
    for episode in episodes(trace):
        # The first duplicate is two records before the third.
        good[max(episode.begin - 2, 0) : episode.end] = False
    good[-1] = False
    return trace.time_ns - sent, good


def sent_once(trace: FlowTrace, resent: Samples) -> npt.NDArray[np.bool_]:
    """Whether the RTT of each ACK in :func:`raw_rtt` is that of a byte that left once and waited for no other; (n,).

    An ambiguous value is too long, never too short, as it counts from the byte's first transmission. ``resent`` are the
    sender's readings with ``total_retrans_packets``. If the counter stood still while the byte was outstanding, it left
    once. If it grew, or was not read, the byte may have been retransmitted, or waited for one that was, if

    - it left in a recovery: data sent before a recovery's end may have been repaired in it;
    - or an ACK acknowledged nothing new while it was outstanding, which indicates a gap;
    - or nothing new was acknowledged while it was outstanding for as long as a retransmission timer takes: two smoothed
      RTTs, or one and 200 ms (TCP_RTO_MIN).
    """
    count = len(trace)
    if count == 0:
        return np.zeros(0, dtype=bool)
    sent, before = _send_times(trace)
    doubtful = np.zeros(count, dtype=bool)
    for episode in episodes(trace):
        doubtful |= (before >= episode.begin - 2) & (before < episode.end)
    advances = trace.una_after > trace.snd_una
    repeats = ~advances & (trace.snd_nxt > trace.snd_una)
    last = np.maximum.accumulate(np.where(advances, np.arange(count), -1))
    progress = trace.time_ns[np.maximum(np.concatenate([[-1], last[:-1]]), 0)]
    patience = trace.window_ns + np.minimum(trace.window_ns, _LEAST_TIMEOUT_NS)
    stalled = advances & (trace.time_ns - progress >= patience)
    for sign in (repeats, stalled):
        until = np.cumsum(sign)
        # Count such records from the one that released the byte to the one that acknowledges it.
        doubtful |= until > np.where(before > 0, until[np.maximum(before - 1, 0)], 0)
    return ~(doubtful & _grew(resent, sent, trace.time_ns))


def _grew(resent: Samples, begin_ns: Integers, end_ns: Integers) -> npt.NDArray[np.bool_]:
    """Whether anything was retransmitted between the readings that enclose each interval; True without readings."""
    if not resent.has("total_retrans_packets"):
        return np.ones(begin_ns.size, dtype=bool)
    total = resent["total_retrans_packets"]
    first = np.searchsorted(resent.time_ns, begin_ns, side="right") - 1
    last = np.searchsorted(resent.time_ns, end_ns, side="left")
    known = last < len(resent)
    grew: npt.NDArray[np.bool_] = total[np.minimum(last, len(resent) - 1)] > np.where(first >= 0, total[first], 0)
    return grew | ~known


def _immediate(trace: FlowTrace) -> bool:
    """Whether the first window leaves as soon as possible, as from the kernel's source once it is connected."""
    return trace.flow.traffic == "kernel" and trace.connected_ns is not None


def _send_times(trace: FlowTrace) -> tuple[Integers, Integers]:
    """Return, for each ACK, the earliest send time of its newest byte and the record that released it (-1: none)."""
    newest = np.maximum.accumulate(trace.snd_nxt)
    before = np.searchsorted(newest, trace.una_after, side="left") - 1
    first = max(trace.connected_ns or 0, trace.start_ns) if _immediate(trace) else trace.time_ns[0]
    return np.where(before >= 0, trace.time_ns[np.maximum(before, 0)], first), before


@dataclass(frozen=True)
class Restart:
    """The window before and after a restart."""

    before_packets: int
    after_packets: int


def fell_idle(cwnd: Integers, una: Integers, nxt: Integers) -> npt.NDArray[np.bool_]:
    """Return at which records the window is smaller than before while nothing was outstanding; shape (records,).

    ``tcp_cwnd_restart()`` lowers it when the sender resumes after a timeout's length without sending. No other part of
    TCP does: losses and marks need outstanding data.
    """
    fell = np.zeros(cwnd.size, dtype=bool)
    fell[1:] = (cwnd[1:] < cwnd[:-1]) & (una[1:] >= nxt[:-1])
    return fell


def restarts_of(trace: FlowTrace) -> list[Restart]:
    """Return all restarts, in order."""
    at = np.flatnonzero(fell_idle(trace.cwnd, trace.snd_una, trace.snd_nxt))
    return [Restart(*pair) for pair in zip(trace.cwnd[at - 1].tolist(), trace.cwnd[at].tolist(), strict=True)]


def window_cuts(trace: FlowTrace, after_ns: int) -> int:
    """Return how often the window fell after an instant, except for restarts; falls within a round trip count once."""
    fell = np.zeros(len(trace), dtype=bool)
    fell[1:] = trace.cwnd[1:] < trace.cwnd[:-1]
    fell &= ~fell_idle(trace.cwnd, trace.snd_una, trace.snd_nxt) & (trace.time_ns > after_ns)
    times = trace.time_ns[fell]
    if not times.size:
        return 0
    return 1 + int((np.diff(times) > trace.window_ns[fell][1:]).sum())
