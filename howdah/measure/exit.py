# SPDX-License-Identifier: Apache-2.0
"""When and where a flow leaves slow start, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.counters import Counters
from howdah.measure.event import Event
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.tables.event import CONGESTION

ACK_TRAIN = "ack-train"
DELAY = "delay"
LOSS = "loss"
RTO = "rto"
CONGESTION_SIGNAL = "congestion-signal"
QUEUE_ESTIMATE = "queue-estimate"
BBR_DRAIN = "bbr-drain"
INITIAL_SSTHRESH = "initial-ssthresh"
RECEIVE_WINDOW = "receive-window"
APPLICATION = "application"
UNKNOWN = "unknown"

_TRAIN = "TcpExtTCPHystartTrain"
_DELAY = "TcpExtTCPHystartDelay"
_TIMEOUTS = "TcpExtTCPTimeouts"
_RETRANSMITTED = "TcpRetransSegs"

# A flow counts as limited when the kernel says so for more than this share of the time it was busy.
LIMITED_SHARE = 0.1


@dataclass(frozen=True)
class Exit:
    """``record`` is the first record that shows the exit; the ACK that caused it is the record before.

    ``time_ns`` is that ACK's arrival, ``cwnd_packets`` the window the slow start ended with: of ``record``, the state
    after the ACK, or, when the ACK (or a timer) cut the window, of the record before.
    """

    record: int
    time_ns: int
    cwnd_packets: int
    ssthresh_packets: int
    reduced: bool
    from_initial_ssthresh: bool


def find_exit(trace: FlowTrace) -> Exit | None:
    """The ACK after which the flow is no longer in slow start (cwnd < ssthresh), as the per-ACK trace shows it.

    tcp_probe shows ``tcp_current_ssthresh()`` = max(ssthresh, 3/4 cwnd): infinite stays infinite, and cwnd reaches it
    exactly when it reaches the real one. A threshold that is set above the window (an estimate) is no exit until the
    window reaches it; one that is raised again before the window or the threshold falls (Adaptive Start) takes the
    exit back, so that the last raise that the window reached is the end. BBR
    grows by rules of its own: the first finite ssthresh is its entry into Drain (``bbr_check_drain``).
    None when the flow never left slow start, or there are no records.
    """
    bbr = trace.flow.kernel_algorithm.startswith("bbr")
    record = _bbr_exit(trace) if bbr else _last_exit(trace)
    if record is None:
        return None
    before = max(record - 1, 0)
    reduced = _is_cut(trace, record)
    # A threshold that was there before, and that this ACK did not lower to the window.
    initial = not bbr and not reduced and bool(np.isfinite(trace.ssthresh[before]))
    initial = initial and bool(trace.ssthresh[record] >= trace.ssthresh[before])
    return Exit(
        record=record,
        time_ns=int(trace.time_ns[before]),
        cwnd_packets=int(trace.cwnd[before] if reduced and not bbr else trace.cwnd[record]),
        ssthresh_packets=int(trace.ssthresh[record]),
        reduced=reduced,
        from_initial_ssthresh=initial,
    )


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


def exit_of_event(event: Event, trace: FlowTrace) -> Exit:
    """The exit that the module itself reported; ``record`` is the first one after it."""
    after = int(np.searchsorted(trace.time_ns, event.time_ns, side="right"))
    return Exit(
        record=max(min(after, len(trace) - 1), 0),
        time_ns=event.time_ns,
        cwnd_packets=event.cwnd_packets,
        ssthresh_packets=event.ssthresh_packets or 0,
        reduced=event.reason in CONGESTION,
        from_initial_ssthresh=event.reason == INITIAL_SSTHRESH,
    )


@dataclass(frozen=True)
class Detection:
    """What the MIB counters of the sender's host say about HyStart around the exit."""

    train: int
    delay: int
    train_cwnd_packets: int
    delay_cwnd_packets: int

    @property
    def alone(self) -> bool:
        return self.train + self.delay == 1

    @property
    def cwnd_packets(self) -> int | None:
        """The window HyStart noted (TCPHystartTrainCwnd, DelayCwnd), if there was exactly one detection."""
        return self.train_cwnd_packets + self.delay_cwnd_packets if self.alone else None


def detection(counters: Counters, host: str, time_ns: int, until_ns: int) -> Detection:
    """HyStart's counters between the readings that enclose the exit. They belong to a host, not to a flow."""

    def growth(name: str) -> int:
        return counters.growth(host, name, time_ns, until_ns)

    return Detection(
        growth(f"{_TRAIN}Detect"), growth(f"{_DELAY}Detect"), growth(f"{_TRAIN}Cwnd"), growth(f"{_DELAY}Cwnd")
    )


def exit_cause(trace: FlowTrace, found: Exit, detected: Detection, counters: Counters, info: Samples) -> str:
    """One of the constants of this module; ``unknown`` rather than a guess.

    BBR: ``bbr-drain`` (delivery rate stopped growing for three rounds), unless the kernel says the receive window or
    the application held the flow back. A window that was cut: ``rto`` if a retransmission timer fired and the window
    collapsed, ``loss`` if anything was retransmitted, ``queue-estimate`` for in-tree Vegas, else ``congestion-signal``
    (ECN, a drop in the sender's own queue). A threshold set to the window: HyStart's own counters, ``ack-train`` or
    ``delay``.
    """
    if found.from_initial_ssthresh:
        return INITIAL_SSTHRESH
    until = int(trace.time_ns[found.record])
    if trace.flow.kernel_algorithm.startswith("bbr"):
        return limit_of(info, trace.start_ns, until) or BBR_DRAIN
    if found.reduced:
        host = trace.flow.sender
        # tcp_enter_loss leaves one packet, or what SACK says is still in flight.
        collapsed = int(trace.cwnd[found.record]) < found.ssthresh_packets // 2
        if collapsed and counters.growth(host, _TIMEOUTS, found.time_ns, until) > 0:
            return RTO
        after = until + 2 * trace.flow.rtt_us * 1000
        again = info.growth("total_retrans_packets", found.time_ns, after)
        if again is None or again == 0:
            again = counters.growth(host, _RETRANSMITTED, found.time_ns, after)
        if again:
            return LOSS
        # tcp_vegas_cong_avoid() cuts the window itself when it sees more than gamma packets queued.
        return QUEUE_ESTIMATE if trace.flow.kernel_algorithm == "vegas" else CONGESTION_SIGNAL
    if detected.train and not detected.delay:
        return ACK_TRAIN
    if detected.delay and not detected.train:
        return DELAY
    if detected.train or detected.delay:
        # Several flows of one host: the one whose window the counters could be speaking of.
        return _by_window(found, detected)
    return limit_of(info, trace.start_ns, until) or UNKNOWN


def _by_window(found: Exit, detected: Detection) -> str:
    near = range(found.ssthresh_packets, found.cwnd_packets + 1)
    if detected.train == 1 and detected.train_cwnd_packets in near:
        return ACK_TRAIN
    if detected.delay == 1 and detected.delay_cwnd_packets in near:
        return DELAY
    return UNKNOWN


def limit_of(info: Samples, begin_ns: int, end_ns: int) -> str | None:
    """What the kernel says held the flow back for more than a tenth of its busy time: receive window or application.

    From ``tcpi_rwnd_limited`` over ``tcpi_busy_time``, and from the share of readings with
    ``tcpi_delivery_rate_app_limited``.
    """
    inside = (info.time_ns >= begin_ns) & (info.time_ns <= end_ns)
    busy = info.growth("busy_time_us", begin_ns, end_ns)
    window = info.growth("rwnd_limited_us", begin_ns, end_ns)
    if busy and window is not None and window > LIMITED_SHARE * busy:
        return RECEIVE_WINDOW
    if info.has("app_limited") and inside.sum() >= 2 and info["app_limited"][inside].mean() > 0.5:
        return APPLICATION
    return None
