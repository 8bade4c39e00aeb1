# SPDX-License-Identifier: Apache-2.0
"""When and with which window a flow leaves slow start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.control import gains_of, is_bbr
from howdah.measure.event import THRESHOLD_REACHED, SlowStartEvent
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.record.event import CONGESTION


@dataclass(frozen=True)
class Exit:
    """``record`` is the first record that shows the exit; the ACK that caused it is the record before.

    ``time_ns`` is that ACK's arrival. ``cwnd_packets`` is the window at the exit, before anything is taken from it: of
    ``record``, the state after the ACK, or, when the ACK (or a timer) cut the window, of the record before.
    ``from_initial_ssthresh``: the window reached a threshold that the connection began with; ``from_own_threshold``:
    one that was set on the way. ``fell``: the window fell and the threshold stayed infinite, as where BBR enters
    ProbeRTT; ``ssthresh_packets`` is then 0. ``paced``: it ended a start-up like BBR's.
    """

    record: int
    time_ns: int
    cwnd_packets: int
    ssthresh_packets: int
    reduced: bool
    from_initial_ssthresh: bool
    from_own_threshold: bool = False
    fell: bool = False
    paced: bool = False


def find_exit(trace: FlowTrace, info: Samples | None = None) -> Exit | None:
    """The ACK after which the flow is no longer in slow start (cwnd < ssthresh), as the per-ACK trace shows it.

    tcp_probe shows ``tcp_current_ssthresh()`` = max(ssthresh, 3/4 cwnd): infinite stays infinite, and cwnd reaches it
    exactly when it reaches the real one. A threshold that is set above the window (an estimate) is not an exit until
    the window reaches it; one that is raised again before the window or the threshold falls (Adaptive Start) takes the
    exit back, so that the last raise that the window reached is the end. A control like BBR's grows by rules of its
    own: see :func:`_bbr_exit`; ``info`` has the readings of its sender. None when the trace shows no exit, or there are
    no records.
    """
    bbr = is_bbr(trace, info)
    record = _bbr_exit(trace, info) if bbr else _last_exit(trace)
    if record is None:
        return None
    before = max(record - 1, 0)
    is_finite = bool(np.isfinite(trace.ssthresh[record]))
    fell = not is_finite and bool(trace.cwnd[record] < trace.cwnd[before])
    reduced = _is_cut(trace, record)
    # A threshold that was there before, and that this ACK did not lower to the window.
    reached = not bbr and not reduced and bool(np.isfinite(trace.ssthresh[before]))
    reached = reached and bool(trace.ssthresh[record] >= trace.ssthresh[before])
    initial = bool((trace.ssthresh[: before + 1] == trace.ssthresh[0]).all())
    return Exit(
        record=record,
        time_ns=int(trace.time_ns[before]),
        cwnd_packets=int(trace.cwnd[before] if fell or (reduced and not bbr) else trace.cwnd[record]),
        ssthresh_packets=int(trace.ssthresh[record]) if is_finite else 0,
        reduced=reduced,
        from_initial_ssthresh=reached and initial,
        from_own_threshold=reached and not initial,
        fell=fell,
        paced=bbr,
    )


def _is_cut(trace: FlowTrace, record: int) -> bool:
    """Reno and CUBIC cut ssthresh below the window on a loss; HyStart sets it to the window."""
    return record > 0 and bool(trace.ssthresh[record] < min(trace.cwnd[record - 1], trace.ssthresh[record - 1]))


def _bbr_exit(trace: FlowTrace, info: Samples | None) -> int | None:
    """The record that shows the end of a start-up like BBR's: its pacing gain falls, and never rises to it again.

    The readings of the gain enclose it. Between them, an edge of ssthresh from infinite to finite is the entry into
    Drain (``bbr_check_drain`` sets it there alone); without one the largest fall of the window is the entry into
    ProbeRTT, from which BBR does not go back to a start-up that found the pipe full; without either it is the first
    record after the later reading. Where the socket does not tell its gain, the first finite ssthresh is the entry into
    Drain, and only without one the gain is that of the rates.
    """
    finite = np.isfinite(trace.ssthresh)
    gains = gains_of(info) if info is not None else None
    left = gains.left if gains is not None else None
    if gains is None or left is None or (finite.any() and not gains.told):
        return int(np.flatnonzero(finite)[0]) if finite.any() else None
    after_ns = int(gains.time_ns[left - 1])
    until_ns = int(gains.time_ns[left]) if left < gains.time_ns.size else int(trace.stop_ns)
    begin = int(np.searchsorted(trace.time_ns, after_ns, side="right"))
    # A record shows the state before its ACK: what the reading saw is in the next one.
    end = min(int(np.searchsorted(trace.time_ns, until_ns, side="right")) + 1, len(trace))
    before = np.concatenate([[False], finite[:-1]])
    entered = np.flatnonzero((finite & ~before)[begin:end])
    if entered.size:
        return begin + int(entered[0])
    if left >= gains.time_ns.size or begin >= end:
        return None
    falls = np.diff(trace.cwnd[max(begin - 1, 0) : end])
    if falls.size and falls.min() < 0:
        return max(begin - 1, 0) + int(np.argmin(falls)) + 1
    return end - 1


def _last_exit(trace: FlowTrace) -> int | None:
    """The record that shows the end of the start-up: a cut, or the last time that cwnd came to reach ssthresh before
    the window or the threshold fell."""
    if not len(trace):
        return None
    slow_start = trace.cwnd < trace.ssthresh
    before = np.concatenate([[True], slow_start[:-1]])
    cut = np.concatenate([[False], trace.ssthresh[1:] < np.minimum(trace.cwnd[:-1], trace.ssthresh[:-1])])
    leaves = np.flatnonzero(before & (cut | ~slow_start))
    if not leaves.size:
        return None
    first = int(leaves[0])
    if cut[first]:
        return first
    lower_window = trace.cwnd[first + 1 :] < trace.cwnd[first:-1]
    lower_threshold = trace.ssthresh[first + 1 :] < trace.ssthresh[first:-1]
    falls = np.flatnonzero(lower_window | lower_threshold)
    end = first + 1 + int(falls[0]) if falls.size else len(trace)
    if slow_start[end - 1]:  # the threshold was raised again, and the window is still below it
        later = leaves[leaves >= end]
        return int(later[0]) if later.size else None
    return int(max(leaves[leaves < end][-1], _last_raise(trace, first, end)))


def _last_raise(trace: FlowTrace, first: int, end: int) -> int:
    """The last of these records that shows a threshold raised to the window: the window followed it at once."""
    window, threshold = trace.cwnd[first:end], trace.ssthresh[first:end]
    raised = np.flatnonzero((threshold[1:] > threshold[:-1]) & (threshold[1:] >= window[1:]))
    return first + 1 + int(raised[-1]) if raised.size else first


def exit_of_event(event: SlowStartEvent, trace: FlowTrace) -> Exit:
    """The exit that the module itself reported; ``record`` is the first one after it."""
    after = int(np.searchsorted(trace.time_ns, event.time_ns, side="right"))
    return Exit(
        record=max(min(after, len(trace) - 1), 0),
        time_ns=event.time_ns,
        cwnd_packets=event.cwnd_packets,
        ssthresh_packets=event.ssthresh_packets or 0,
        reduced=event.reason in CONGESTION,
        from_initial_ssthresh=event.reason == THRESHOLD_REACHED,
    )
