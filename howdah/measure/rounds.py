# SPDX-License-Identifier: Apache-2.0
"""Rounds, recovery episodes and raw round-trip times of a flow, from sequence numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.measure.trace import FlowTrace, Integers

_DUPLICATES = 3  # TCP_FASTRETRANS_THRESH
_DELAYED_ACK_NS = 20_000_000  # half of TCP_DELACK_MIN: the timer counts jiffies


def rounds(trace: FlowTrace) -> Integers:
    """Indices of the records that begin a round, the first being 0; shape (rounds,).

    A round ends when everything that was sent when it began is acknowledged: ``snd_una`` has reached the ``snd_nxt``
    noted at its first record (the marker of RFC 9406's windowEnd and of ``hystart_update``).
    """
    starts = [0] if len(trace) else []
    while starts:
        following = int(np.searchsorted(trace.snd_una, trace.snd_nxt[starts[-1]], side="left"))
        if following >= len(trace) or following <= starts[-1]:
            break
        starts.append(following)
    return np.array(starts, dtype=np.int64)


@dataclass(frozen=True)
class Episode:
    """A stretch of records in which ACKs stopped moving ``snd_una`` forward; ``end`` is the first record after it."""

    begin: int
    end: int


def episodes(trace: FlowTrace) -> list[Episode]:
    """Loss (or reordering) episodes: from the third ACK in a row that acknowledges nothing new while data is
    outstanding, to the ACK of all that had been sent by then (the recovery point of RFC 6582).
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
    """How far the time at which a byte left may be off before its RTT is not used: 1 % of the path's RTT, or four times
    the usual spacing of ACKs where that is more.
    """
    spacing = float(np.median(np.diff(trace.time_ns))) if len(trace) > 1 else 0.0
    return int(max(0.01 * trace.flow.rtt_us * 1000, 4 * spacing))


def raw_rtt(trace: FlowTrace) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Round-trip time in ns of the newest byte each ACK acknowledges, and whether the value can be trusted; shape (n,).

    A byte left when ``snd_nxt`` first passed it: after the last record that does not count it and before the next one.
    The earlier of the two is taken, which is exact for a sender clocked by its ACKs and never too small for a paced one
    (tcp_probe itself carries only the smoothed RTT). Without trust are

    - ACKs that acknowledge nothing new, and the last record, of which nobody knows what it acknowledged; - bytes
    whose time of leaving is in doubt by more than :func:`send_time_doubt_ns` (the last of a flight, probes sent by
      a timer, the first flight of a user-space sender);
    - ACKs inside a recovery: the byte may have been sent twice (Karn's rule);
    - an ACK of one segment long after the one before: it may have waited for the receiver's delayed-ACK timer.
    """
    count = len(trace)
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    target = trace.una_after
    newest = np.maximum.accumulate(trace.snd_nxt)
    before = np.searchsorted(newest, target, side="left") - 1
    # The kernel's source fills the first window the moment it may; a connection can be opened long before that.
    immediate = trace.flow.traffic == "kernel" and trace.connected_ns is not None
    first = max(trace.connected_ns or 0, trace.start_ns) if immediate else trace.time_ns[0]
    sent = np.where(before >= 0, trace.time_ns[np.maximum(before, 0)], first)
    doubt = trace.time_ns[np.minimum(before + 1, count - 1)] - sent
    doubt[before < 0] = 0
    advance = target - trace.snd_una
    good = (advance > 0) & (doubt <= send_time_doubt_ns(trace))
    if not immediate:
        good &= before >= 0
    waited = np.diff(trace.time_ns, prepend=trace.time_ns[0])
    good &= ~((advance <= trace.mss_bytes) & (waited >= _DELAYED_ACK_NS))
    for episode in episodes(trace):
        # The first of the duplicates came two records before the third.
        good[max(episode.begin - 2, 0) : episode.end] = False
    good[-1] = False
    return trace.time_ns - sent, good
