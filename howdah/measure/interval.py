# SPDX-License-Identifier: Apache-2.0
"""The life of a flow in intervals between its ACKs: the limit that the sender met in each of them.

A receive window was full because of a buffer at its maximum, a late tuning, or the window of the handshake.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.held import RECEIVE_WINDOW, HeldBy
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.rounds import episodes
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers, Reals
from howdah.plan.plan import Flow

Flags = npt.NDArray[np.bool_]

# tcp_tso_should_defer() waits for room of a third of the window, but at most of one full TSO packet.
_DEFERRED_PART, _DEFERRED_BYTES = 3, 65536


@dataclass(frozen=True)
class Intervals:
    """Intervals between ACKs, shape (intervals,); ``before`` are values at their beginning, all others at their end.

    ``repairs``: losses are repaired. ``arrived`` are packets of the flight that have left the path, by a recovery's
    SACKs and losses, minus retransmissions.
    """

    begin: Integers
    time: Integers
    nxt: Integers
    una: Integers
    nxt_before: Integers
    cwnd: Integers
    snd_wnd: Integers | None
    window_ns: Integers
    repairs: Flags
    arrived: Reals
    mss_bytes: int

    @property
    def flight(self) -> Integers:
        return self.nxt - self.una

    @property
    def room_packets(self) -> Reals:
        return np.asarray(self.cwnd - self.flight / self.mss_bytes + self.arrived)


def span_ns(trace: FlowTrace) -> tuple[int, int]:
    """Return the time from when the flow could send to its last acknowledged byte, or to its end if some are not."""
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    size = trace.flow.size_bytes
    if size is None or not len(trace):
        closed = trace.flow.program is not None and len(trace) and trace.snd_nxt[-1] <= trace.una_after[-1]
        return begin, max(begin, min(trace.stop_ns, int(trace.time_ns[-1])) if closed else trace.stop_ns)
    done = int(np.searchsorted(trace.una_after, size))
    if done < len(trace):
        return begin, max(begin, int(trace.time_ns[done]))
    # No record shows what the last ACK acknowledged.
    seen = int(trace.time_ns[-1]) if trace.snd_nxt[-1] >= size else begin
    return begin, max(begin, trace.stop_ns, seen)


def is_finite(flow: Flow) -> bool:
    """Whether its traffic is a transfer, or answers, of known size: the last flight of each naturally leaves room."""
    return flow.size_bytes is not None or flow.http is not None or flow.exchange is not None


def intervals_of(trace: FlowTrace, info: Samples) -> Intervals | None:
    """Return the intervals of :func:`span_ns`, up to its last ACK; None without an ACK in it."""
    begin, end = span_ns(trace)
    first, last = (int(np.searchsorted(trace.time_ns, edge, side="right")) for edge in (begin, end))
    if last <= first:
        return None
    inside = slice(first, last)
    time, nxt = trace.time_ns[inside], trace.snd_nxt[inside]
    sent = int(trace.snd_nxt[first - 1]) if first else 0
    repairs = _repairs(trace)[inside]
    return Intervals(
        begin=np.concatenate([[begin], time[:-1]]),
        time=time,
        nxt=nxt,
        una=trace.snd_una[inside],
        nxt_before=np.concatenate([[sent], nxt[:-1]]),
        cwnd=trace.cwnd[inside],
        snd_wnd=trace.snd_wnd[inside] if trace.snd_wnd.size else None,
        window_ns=trace.window_ns[inside],
        repairs=repairs,
        arrived=_arrived(info, time, repairs),
        mss_bytes=trace.mss_bytes,
    )


def _repairs(trace: FlowTrace) -> Flags:
    found = np.zeros(len(trace), dtype=bool)
    for episode in episodes(trace):
        found[episode.begin : episode.end + 1] = True
    return found


def _arrived(info: Samples, time_ns: Integers, repairs: Flags) -> Reals:
    """Return the packets that left the path, by the nearest reading of tcp_info, while losses are repaired."""
    if not repairs.any() or not all(info.has(f"{name}_packets") for name in ("sacked", "lost", "retrans")):
        return np.zeros(time_ns.size)
    packets = info["sacked_packets"] + info["lost_packets"] - info["retrans_packets"]
    return np.where(repairs, packets[nearest(info.time_ns, time_ns)], 0).astype(np.float64)


def has_unsent(trace: FlowTrace, info: Samples, each: Intervals) -> Flags:
    """Whether data waited to be sent at the end of each interval: for a flow of known size its remaining data, else by
    the nearest reading of tcp_info; without one, always."""
    size, exchange = trace.flow.size_bytes, trace.flow.exchange
    if exchange is not None and size == exchange.requests * exchange.object_bytes:
        return np.asarray(each.nxt % exchange.object_bytes != 0)
    if size is not None and trace.flow.http is None:
        return np.asarray(each.nxt < size)
    if not info.has("notsent_bytes") or not info.has("state"):
        return np.ones(each.time.size, dtype=bool)
    alive = info["state"] == TCP_ESTABLISHED
    if not alive.any():
        return np.ones(each.time.size, dtype=bool)
    return np.asarray(info["notsent_bytes"][alive][nearest(info.time_ns[alive], each.time)] > 0)


def nearest(readings: Integers, time_ns: Integers) -> Integers:
    """Return the index of the reading that is nearest to each time."""
    after = np.minimum(np.searchsorted(readings, time_ns), readings.size - 1)
    before = np.maximum(after - 1, 0)
    return np.where(time_ns - readings[before] < readings[after] - time_ns, before, after)


def window_full(each: Intervals, unsent: Flags) -> Flags:
    """Whether the congestion window has no room for a segment; or little room, and data wait (TSO gathers them)."""
    room = each.room_packets
    little = np.minimum(each.cwnd / _DEFERRED_PART, _DEFERRED_BYTES / each.mss_bytes)
    return np.asarray((room < 1) | (unsent & (room <= little)))


def receive_full(each: Intervals, unsent: Flags) -> Flags | None:
    """Whether the receive window is full and the congestion window is not smaller; None if no window is known."""
    if each.snd_wnd is None:
        return None
    room = each.una + each.snd_wnd - each.nxt
    little = np.minimum(each.snd_wnd / _DEFERRED_PART, _DEFERRED_BYTES)
    full = (room < each.mss_bytes) | (unsent & (room <= little))
    return np.asarray(full & (each.room_packets * each.mss_bytes > np.maximum(room, 0) + each.mss_bytes))


GROWS = 1.1  # least factor by which a window grows
PLATEAU_RTTS = 4  # a window that limits the sender for so long without growth is the largest of its buffer
_UNSCALED_BYTES = 65535  # largest window without a window scale


def receive_kinds(trace: FlowTrace, info: Samples) -> dict[HeldBy, float]:
    """Return the seconds in which the receive window was full and the congestion window was not, by kind."""
    each = intervals_of(trace, info)
    full = None if each is None else receive_full(each, has_unsent(trace, info, each))
    if each is None or full is None or not full.any():
        return {}
    lasts = each.time - each.begin
    flags = receive_flags(each, full)
    return {kind: float(lasts[flag].sum()) / SECOND_NS for kind, flag in flags.items() if flag.any()}


def receive_flags(each: Intervals, full: Flags) -> dict[HeldBy, Flags]:
    """Return which of the intervals with a full receive window are of each kind, shape (intervals,).

    ``HANDSHAKE_WINDOW``: before the first data is acknowledged, with a window that fills the 16 bits of a SYN's.
    ``AUTOTUNING``: the largest window so far grew by a tenth or more later, or held the sender back for less than four
    round trips in which data were acknowledged. ``RECEIVE_BUFFER``: all else; also a window that is smaller than before
    and never becomes larger, because its buffer is occupied.
    """
    if each.snd_wnd is None or not full.any():
        return dict.fromkeys(RECEIVE_WINDOW, np.zeros(each.time.size, dtype=bool))
    largest = np.maximum.accumulate(each.snd_wnd)
    grows = largest[-1] > GROWS * largest
    top = full & ~grows
    advances = np.diff(each.una, append=each.una[-1:]) > 0
    rtts = ((each.time - each.begin) / each.window_ns)[top & advances].sum()
    late = grows | ((each.snd_wnd * GROWS > largest) & (rtts < PLATEAU_RTTS))
    handshake = (each.una <= 0) & (each.snd_wnd <= _UNSCALED_BYTES) & (each.snd_wnd * GROWS > _UNSCALED_BYTES)
    return {
        HeldBy.HANDSHAKE_WINDOW: full & handshake,
        HeldBy.AUTOTUNING: full & late & ~handshake,
        HeldBy.RECEIVE_BUFFER: full & ~late & ~handshake,
    }
