# SPDX-License-Identifier: Apache-2.0
"""When and with which window a flow leaves slow start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.event import THRESHOLD_REACHED, SlowStartEvent
from howdah.measure.trace import FlowTrace
from howdah.record.event import CONGESTION


@dataclass(frozen=True)
class Exit:
    """``record`` is the first record that shows the exit; the ACK that caused it is the record before.

    ``time_ns`` is that ACK's arrival. ``cwnd_packets`` is the window at the exit, before anything is taken from it: of
    ``record``, the state after the ACK, or, when the ACK (or a timer) cut the window, of the record before.
    ``from_initial_ssthresh``: the window reached a threshold that the connection began with; ``from_own_threshold``:
    one that was set on the way.
    """

    record: int
    time_ns: int
    cwnd_packets: int
    ssthresh_packets: int
    reduced: bool
    from_initial_ssthresh: bool
    from_own_threshold: bool = False


def find_exit(trace: FlowTrace) -> Exit | None:
    """The ACK after which the flow is no longer in slow start (cwnd < ssthresh), as the per-ACK trace shows it.

    tcp_probe shows ``tcp_current_ssthresh()`` = max(ssthresh, 3/4 cwnd): infinite stays infinite, and cwnd reaches it
    exactly when it reaches the real one. A threshold that is set above the window (an estimate) is no exit until the
    window reaches it; one that is raised again before the window or the threshold falls (Adaptive Start) takes the
    exit back, so that the last raise that the window reached is the end. BBR
    grows by rules of its own: the first finite ssthresh is its entry into Drain (``bbr_check_drain``).
    None when the flow never left slow start, or there are no records.
    """
    bbr = is_bbr(trace)
    record = _bbr_exit(trace) if bbr else _last_exit(trace)
    if record is None:
        return None
    before = max(record - 1, 0)
    reduced = _is_cut(trace, record)
    # A threshold that was there before, and that this ACK did not lower to the window.
    reached = not bbr and not reduced and bool(np.isfinite(trace.ssthresh[before]))
    reached = reached and bool(trace.ssthresh[record] >= trace.ssthresh[before])
    initial = bool((trace.ssthresh[: before + 1] == trace.ssthresh[0]).all())
    return Exit(
        record=record,
        time_ns=int(trace.time_ns[before]),
        cwnd_packets=int(trace.cwnd[before] if reduced and not bbr else trace.cwnd[record]),
        ssthresh_packets=int(trace.ssthresh[record]),
        reduced=reduced,
        from_initial_ssthresh=reached and initial,
        from_own_threshold=reached and not initial,
    )


def is_bbr(trace: FlowTrace) -> bool:
    """Whether the flow's algorithm is some version of BBR."""
    return trace.flow.kernel_algorithm.startswith("bbr")


def _is_cut(trace: FlowTrace, record: int) -> bool:
    """Reno and CUBIC cut ssthresh below the window on a loss; HyStart sets it to the window."""
    return record > 0 and bool(trace.ssthresh[record] < min(trace.cwnd[record - 1], trace.ssthresh[record - 1]))


def _bbr_exit(trace: FlowTrace) -> int | None:
    finite = np.flatnonzero(np.isfinite(trace.ssthresh))
    return int(finite[0]) if finite.size else None


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
