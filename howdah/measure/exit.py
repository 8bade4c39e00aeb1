# SPDX-License-Identifier: Apache-2.0
"""When and with which window a flow leaves slow start, when it decided so, and how far the algorithm then reduced it.

For most algorithms the decision is the exit. One that drains its excess data (SEARCH 4) decides first and leaves slow
start when the drain is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from howdah.measure.control import gains_of, is_bbr
from howdah.measure.event import THRESHOLD_REACHED, SlowStartEvent
from howdah.measure.limit import APPLICATION, limit_of
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.record.schema import CONGESTION


@dataclass(frozen=True)
class Exit:
    """``record`` is the first record that shows the exit; the ACK that caused it is the record before.

    ``time_ns`` is that ACK's arrival. ``cwnd_packets`` is the window at the exit, before any reduction: that of
    ``record``, the state after the ACK, or, if the ACK (or a timer) cut the window, that of the record before.
    ``from_initial_ssthresh``: the window reached a threshold that the connection began with; ``from_own_threshold``:
    one that was set later. ``fell``: the window fell while the threshold stayed infinite, as when BBR enters ProbeRTT;
    ``ssthresh_packets`` is then 0. ``paced``: it ended a start-up like BBR's.
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
    """Return the exit by the per-ACK trace: the ACK after which the flow is no longer in slow start (cwnd < ssthresh).

    tcp_probe shows ``tcp_current_ssthresh()`` = max(ssthresh, 3/4 cwnd): infinite stays infinite, and cwnd reaches it
    exactly when it reaches the real one. A threshold that is set above the window (an estimate) is not an exit until
    the window reaches it. One that is raised again before the window or the threshold falls (Adaptive Start) revokes
    the exit; the exit is then the last raise that the window reached. Controls like BBR follow other rules: see
    :func:`_bbr_exit`, for which ``info`` has the sender's readings. None if the trace shows no exit, or without
    records.
    """
    bbr = is_bbr(trace, info)
    record = _bbr_exit(trace, info) if bbr else _last_exit(trace)
    if record is None:
        return None
    before = max(record - 1, 0)
    is_finite = bool(np.isfinite(trace.ssthresh[record]))
    fell = not is_finite and bool(trace.cwnd[record] < trace.cwnd[before])
    reduced = _is_cut(trace, record)
    # The window reached a threshold that existed before, and that this ACK did not lower to the window.
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
    """Whether the threshold fell below the window, as Reno and CUBIC do on a loss; HyStart sets it to the window."""
    return record > 0 and bool(trace.ssthresh[record] < min(trace.cwnd[record - 1], trace.ssthresh[record - 1]))


def _bbr_exit(trace: FlowTrace, info: Samples | None) -> int | None:
    """Return the record that shows the end of a start-up like BBR's: its pacing gain falls, and never rises to it
    again.

    Two readings of the gain enclose it. Between them, a change of ssthresh from infinite to finite is the entry into
    Drain (only ``bbr_check_drain`` sets it). Without one, the largest fall of the window is the entry into ProbeRTT,
    after which BBR does not return to a start-up that found the pipe full. Without either, it is the first record after
    the later reading. If the socket does not report its gain, the first finite ssthresh is the entry into Drain, and
    the gain of the rates counts only without one.
    """
    finite = np.isfinite(trace.ssthresh)
    gains = gains_of(info) if info is not None else None
    left = gains.left if gains is not None else None
    if gains is None or left is None or (finite.any() and not gains.told):
        return int(np.flatnonzero(finite)[0]) if finite.any() else None
    after_ns = int(gains.time_ns[left - 1])
    until_ns = int(gains.time_ns[left]) if left < gains.time_ns.size else int(trace.stop_ns)
    begin = int(np.searchsorted(trace.time_ns, after_ns, side="right"))
    # A record shows the state before its ACK: the state at the reading is in the next record.
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
    """Return the record that shows the end of the start-up: a cut, or the last time that cwnd reached ssthresh before
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
    """Return the last of these records that shows a threshold raised to the window, which followed it at once."""
    window, threshold = trace.cwnd[first:end], trace.ssthresh[first:end]
    raised = np.flatnonzero((threshold[1:] > threshold[:-1]) & (threshold[1:] >= window[1:]))
    return first + 1 + int(raised[-1]) if raised.size else first


def exit_of_event(event: SlowStartEvent, trace: FlowTrace) -> Exit:
    """Return the exit that the module itself reported; ``record`` is the first one after it."""
    after = int(np.searchsorted(trace.time_ns, event.time_ns, side="right"))
    return Exit(
        record=max(min(after, len(trace) - 1), 0),
        time_ns=event.time_ns,
        cwnd_packets=event.cwnd_packets,
        ssthresh_packets=event.ssthresh_packets or 0,
        reduced=event.reason in CONGESTION,
        from_initial_ssthresh=event.reason == THRESHOLD_REACHED,
    )


_DRAINED = "drain-end"
_ROLLED_BACK = "roll-back"


@dataclass(frozen=True)
class Decision:
    """``cwnd_packets`` is the window at the decision, ``left_packets`` the window with which the flow left slow start.

    ``drains``: the flow drains its excess data before it leaves slow start; ``event`` is the module's report of that,
    None if only the trace shows the drain.
    """

    time_ns: int
    cwnd_packets: int
    left_packets: int
    drains: bool = False
    event: SlowStartEvent | None = None

    @property
    def rollback_packets(self) -> int:
        """By how much the window was reduced; 0 if it kept growing."""
        return max(self.cwnd_packets - self.left_packets, 0)


def decision_of(
    found: Exit, told: SlowStartEvent | None, trace: FlowTrace, events: list[SlowStartEvent], info: Samples
) -> Decision:
    """Return the decision, by the module's events if it reported this exit (``told``), else by the trace.

    A module reports the beginning of a drain as ``phase`` and its end as ``drain-end``, and a cut at once as
    ``roll-back``. A loss may end a drain earlier: then the drain began at the ``phase`` since which the window has only
    fallen. In the trace of other algorithms, a drain is a window that only falls until an ACK cuts it, with the flow
    still in slow start. TCP also lowers the window of an application that sends too little, which does not count.
    """
    return _told(found, told, trace, events) if told is not None else _traced(found, trace, info)


def _told(found: Exit, told: SlowStartEvent, trace: FlowTrace, events: list[SlowStartEvent]) -> Decision:
    before = [each for each in events if each.time_ns <= told.time_ns]
    phases = [each for each in before if each.event == "phase"]
    drained = [each for each in before if each.event == _DRAINED]
    if drained and phases and phases[-1].time_ns <= drained[-1].time_ns:
        return _drain(phases[-1], drained[-1].cwnd_packets)
    if phases and _only_falls(phases[-1], told, trace):
        return _drain(phases[-1], found.cwnd_packets)
    after = takewhile(lambda each: each.event != "exit", events[events.index(told) + 1 :])
    left = next((each.cwnd_packets for each in after if each.event == _ROLLED_BACK), found.cwnd_packets)
    return Decision(found.time_ns, found.cwnd_packets, left)


def _drain(phase: SlowStartEvent, left_packets: int) -> Decision:
    return Decision(phase.time_ns, phase.cwnd_packets, left_packets, drains=True, event=phase)


def _only_falls(phase: SlowStartEvent, told: SlowStartEvent, trace: FlowTrace) -> bool:
    begin, end = np.searchsorted(trace.time_ns, [phase.time_ns, told.time_ns], side="right").tolist()
    windows = np.concatenate([[phase.cwnd_packets], trace.cwnd[begin:end], [told.cwnd_packets]])
    return end > begin and bool((np.diff(windows) <= 0).all() and windows[-1] < windows[0])


def _traced(found: Exit, trace: FlowTrace, info: Samples) -> Decision:
    before = max(found.record - 1, 0)
    left = int(trace.cwnd[found.record])
    at_once = Decision(found.time_ns, found.cwnd_packets, left)
    if not found.reduced or found.paced:
        return at_once
    grown = np.flatnonzero(trace.cwnd[1 : before + 1] > trace.cwnd[:before])
    begin = int(grown[-1]) + 1 if grown.size else 0
    # The last record with the largest window: the ACK of that record made the first cut.
    peak = begin + int(np.flatnonzero(trace.cwnd[begin : before + 1] == trace.cwnd[begin])[-1])
    time_ns = int(trace.time_ns[peak])
    if trace.cwnd[peak] <= trace.cwnd[before] or limit_of(info, time_ns, found.time_ns) == APPLICATION:
        return at_once
    return Decision(time_ns, int(trace.cwnd[peak]), left, drains=True)
