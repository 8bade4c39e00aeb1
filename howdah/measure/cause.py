# SPDX-License-Identifier: Apache-2.0
"""The cause of an exit from slow start that no module reported: one word, from the evidence of the tables alone."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.measure.control import LOST, MARKED, RATE, VEGAS, name_of, rate_stopped, startup_end
from howdah.measure.cut import CWR, Cut, cut_at
from howdah.measure.exit import Exit
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW, SEND_BUFFER, limit_before
from howdah.measure.sampled import Counters, Samples
from howdah.measure.trace import FlowTrace

ACK_TRAIN = "ack-train"
DELAY = "delay"
LOSS = "loss"
RTO = "rto"
CONGESTION_SIGNAL = "congestion-signal"
OWN_CUT = "own-cut"
QUEUE_ESTIMATE = "queue-estimate"
BBR_DRAIN = "bbr-drain"
PROBE_RTT = "probe-rtt"
INITIAL_SSTHRESH = "initial-ssthresh"
OWN_THRESHOLD = "own-threshold"
UNKNOWN = "unknown"
CAUSES = (
    ACK_TRAIN,
    DELAY,
    LOSS,
    RTO,
    CONGESTION_SIGNAL,
    OWN_CUT,
    QUEUE_ESTIMATE,
    BBR_DRAIN,
    PROBE_RTT,
    INITIAL_SSTHRESH,
    OWN_THRESHOLD,
    RECEIVE_WINDOW,
    SEND_BUFFER,
    APPLICATION,
    UNKNOWN,
)

_TRAIN = "TcpExtTCPHystartTrain"
_DELAY = "TcpExtTCPHystartDelay"


@dataclass(frozen=True)
class Detection:
    """HyStart's MIB counters of the sender's host around the exit."""

    train: int
    delay: int
    train_cwnd_packets: int
    delay_cwnd_packets: int

    @property
    def alone(self) -> bool:
        return self.train + self.delay == 1

    @property
    def cwnd_packets(self) -> int | None:
        """The window that HyStart recorded (TCPHystartTrainCwnd, DelayCwnd), if there was exactly one detection."""
        return self.train_cwnd_packets + self.delay_cwnd_packets if self.alone else None


def detection(counters: Counters, host: str, time_ns: int, until_ns: int) -> Detection:
    """Return HyStart's counters between the readings that enclose the exit. They belong to a host, not to a flow."""

    def growth(name: str) -> int:
        return counters.growth(host, name, time_ns, until_ns)

    return Detection(
        growth(f"{_TRAIN}Detect"), growth(f"{_DELAY}Detect"), growth(f"{_TRAIN}Cwnd"), growth(f"{_DELAY}Cwnd")
    )


def exit_cause(trace: FlowTrace, found: Exit, detected: Detection, counters: Counters, info: Samples) -> str:
    """Return one of :data:`CAUSES`; ``unknown`` rather than a guess.

    - The window reached a threshold: ``initial-ssthresh`` if the connection began with it (``congestion-signal`` if TCP
      had reduced its window before: the sender's own queue dropped some of its first packets), else ``own-threshold``.
    - The start-up was one like BBR's: see :mod:`howdah.measure.control`; ``probe-rtt`` if it ended in ProbeRTT and the
      delivery rate does not explain that.
    - The window was cut: see :class:`howdah.measure.cut.Cut`; ``own-cut`` is the algorithm's, ``queue-estimate``
      that of Vegas or of what the profile calls like it.
    - The threshold was set to the window: ``ack-train`` or ``delay``, by HyStart's own counters.
    - Otherwise, what held the flow back in the three round trips before.
    """
    if found.from_initial_ssthresh:
        return CONGESTION_SIGNAL if _signalled(info, found.time_ns) else INITIAL_SSTHRESH
    if found.from_own_threshold:
        return OWN_THRESHOLD
    if found.paced:
        return _of_bbr(trace, found, counters, info)
    if found.reduced:
        return _of_cut(trace, cut_at(trace, found.record, counters, info))
    return _by_hystart(found, detected) or limit_before(trace, info, found.time_ns) or UNKNOWN


def _signalled(info: Samples, until_ns: int) -> bool:
    """Whether a reading up to then saw TCP reduce its window without a loss."""
    return info.has("ca_state") and bool((info["ca_state"][info.time_ns <= until_ns] == CWR).any())


def _of_cut(trace: FlowTrace, cut: Cut) -> str:
    if cut.is_timeout:
        return RTO
    if cut.is_loss:
        return LOSS
    if cut.is_signal:
        return CONGESTION_SIGNAL
    if not cut.is_own:
        return UNKNOWN
    # tcp_vegas_cong_avoid() cuts the window itself when it estimates more than gamma queued packets.
    return QUEUE_ESTIMATE if name_of(trace.flow) == VEGAS else OWN_CUT


def _of_bbr(trace: FlowTrace, found: Exit, counters: Counters, info: Samples) -> str:
    limit = limit_before(trace, info, found.time_ns)
    if limit is not None:
        return limit
    if found.fell:
        return BBR_DRAIN if rate_stopped(trace, found.time_ns, info) else PROBE_RTT
    reasons = {RATE: BBR_DRAIN, LOST: LOSS, MARKED: CONGESTION_SIGNAL}
    return reasons.get(startup_end(trace, found.time_ns, counters, info) or "", UNKNOWN)


def _by_hystart(found: Exit, detected: Detection) -> str | None:
    """Return HyStart's detector, None if the host's counters do not show it. A single detection is this flow's if its
    window fits. Of several, only the sum of the windows is known; they count if all are of one kind."""
    near = range(found.ssthresh_packets, found.cwnd_packets + 1)
    if detected.train == 1 and detected.train_cwnd_packets in near:
        return ACK_TRAIN
    if detected.delay == 1 and detected.delay_cwnd_packets in near:
        return DELAY
    if detected.train > 1 and not detected.delay:
        return ACK_TRAIN
    return DELAY if detected.delay > 1 and not detected.train else None
