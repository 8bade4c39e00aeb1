# SPDX-License-Identifier: Apache-2.0
"""The kind of a flow's congestion control, from the answers of its socket, its window and its pacing.

Most controls leave slow start by a finite ssthresh. BBR and similar ones pace: in their start-up at a gain over the
delivered rate (BBR.StartupPacingGain: 2.77 to 2.89), which lets it double each round, and afterwards at a gain of 1.25
at most. Some set ssthresh when they leave, some never do. The name does not decide; the socket's answer does (struct
tcp_bbr_info), or a profile's ``like``, or the pacing rate.

The trace shows BBR's entry into Drain; the readings of tcp_info show why it left Startup. All versions leave when the
largest delivery rate has grown by less than a quarter in three rounds. Version 3 also leaves after a round of fast
recovery with losses in at least six places and more than 2 % of what was sent (draft-ietf-ccwg-bbr,
BBRCheckStartupHighLoss), and on ECN marks. Version 1 enters Drain for no other reason than the rate
(``bbr_check_drain``, ``bbr_full_bw_reached``), and its socket shows its version. But a changed copy of version 1
answers alike, so the evidence comes first, and the version decides only if the readings do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.cut import RECOVERY, marks_around
from howdah.measure.limit import ROUNDS, enclosing, rounds_before
from howdah.measure.sampled import Counters, Samples
from howdah.measure.trace import FlowTrace, Integers, Reals
from howdah.plan.plan import Flow

BBR, VEGAS = "bbr", "vegas"  # names of the kernel's own algorithms in a plan
_SOCKET_GAIN = "bbr_pacing_gain_256ths"
_UNIT = 256  # BBR_UNIT
# Gains of a start-up are above this, and those of every later phase below it (BBR.StartupPacingGain, ProbeBW_UP).
STARTUP_GAIN = 1.5
# Gains by which pacing alone shows a start-up like BBR's: its gains, and a margin as readings of the rate lag behind.
_LEAST_PACED, _MOST_PACED = 2.3, 3.5
# tcp_update_pacing_rate() paces at twice the window per round trip while cwnd < ssthresh / 2, and at 1.2 otherwise.
_KERNELS_SHARES = (2.0, 1.2)
_SHARE_DOUBT = 0.15  # largest relative deviation of a pacing rate that the kernel set
_OWN_PACE = 0.25  # least share of readings that the kernel's pacing does not explain, if a control paces itself
_FEWEST = 4  # readings that are needed


@dataclass(frozen=True)
class Gains:
    """Pacing rate over delivered bandwidth at readings of tcp_info; arrays of one length. ``told``: by the socket."""

    time_ns: Integers
    gain: Reals
    told: bool

    @property
    def left(self) -> int | None:
        """The index of the first reading after the start-up; the number of readings if it lasts to the end.

        None if no reading is in a start-up.
        """
        high = np.flatnonzero(self.gain > STARTUP_GAIN)
        return int(high[-1]) + 1 if high.size else None

    @property
    def largest(self) -> float | None:
        return float(self.gain.max()) if self.gain.size else None


def name_of(flow: Flow) -> str:
    """Return the algorithm whose start-up the flow has: the profile's ``like``, else the kernel's name."""
    return flow.like or flow.kernel_algorithm


def gains_of(info: Samples) -> Gains:
    """Return the gains that the socket reports, else the pacing rate over the largest delivery rate read so far.

    Readings before the first delivery rate have none.
    """
    if info.columns[_SOCKET_GAIN].size and (info.columns[_SOCKET_GAIN] > 0).any():
        there = info.columns[_SOCKET_GAIN] > 0
        return Gains(info.time_ns[there], info.columns[_SOCKET_GAIN][there] / _UNIT, told=True)
    pacing, delivered = info.columns["pacing_rate_bytes_per_second"], info.columns["delivery_rate_bytes_per_second"]
    most = np.maximum.accumulate(delivered) if delivered.size else delivered
    there = (delivered > 0) & (pacing > 0)
    return Gains(info.time_ns[there], pacing[there] / most[there], told=False)


def is_version_1(info: Samples) -> bool:
    """Whether the socket answers with the struct tcp_bbr_info of version 1, which is shorter than all others."""
    return gains_of(info).told and not (info.columns["bbr_version"] > 0).any()


def is_bbr(trace: FlowTrace, info: Samples | None = None) -> bool:
    """Whether the flow's start-up is one like BBR's.

    That is so if the socket answers with struct tcp_bbr_info, the profile says so, it is the kernel's own ``bbr``, or
    its pacing shows it (:func:`paces_like_bbr`).
    """
    if name_of(trace.flow) == BBR:
        return True
    return info is not None and (gains_of(info).told or paces_like_bbr(trace, info))


def paces_like_bbr(trace: FlowTrace, info: Samples) -> bool:
    """Whether the control sets its own pacing rate, at a gain like BBR's, and left that gain for good.

    The rate is its own if tcp_update_pacing_rate() explains less than three quarters of the readings. The gain of the
    start-up is the median of the readings before its end, which must be at least four, over two round trips.
    """
    gains = gains_of(info)
    left = gains.left
    if left is None or left < _FEWEST or left >= gains.gain.size or not paces_itself(info):
        return False
    if gains.time_ns[left - 1] - gains.time_ns[0] < 2 * trace.flow.rtt_us * 1000:
        return False
    return bool(_LEAST_PACED <= float(np.median(gains.gain[:left])) <= _MOST_PACED)


def paces_itself(info: Samples) -> bool:
    """Whether the pacing rate differs from what TCP derives from window and smoothed RTT.

    tcp_update_pacing_rate(): mss · max(cwnd, packets_out) / srtt, times 2 in slow start or 1.2.
    """
    needed = ("pacing_rate_bytes_per_second", "rtt_us", "mss_bytes", "cwnd_packets", "unacked_packets")
    if not all(info.has(name) for name in (*needed, "delivery_rate_bytes_per_second")):
        return False
    there = (info["rtt_us"] > 0) & (info["delivery_rate_bytes_per_second"] > 0)
    if there.sum() < _FEWEST:
        return False
    window = np.maximum(info["cwnd_packets"], info["unacked_packets"])[there] * info["mss_bytes"][there]
    share = info["pacing_rate_bytes_per_second"][there] * info["rtt_us"][there] / 1e6 / np.maximum(window, 1)
    explained = np.zeros(share.size, dtype=bool)
    for kernels in _KERNELS_SHARES:
        explained |= np.abs(share / kernels - 1) <= _SHARE_DOUBT
    return bool(1 - explained.mean() > _OWN_PACE)


_GROWTH = 1.25  # BBR.StartupPacingGain's test of a full pipe
_LOSSES = 6  # BBR.StartupFullLossCnt
_LOSS_SHARE = 0.02  # BBR.LossThresh

RATE, LOST, MARKED = "rate", "lost", "marked"


def startup_end(trace: FlowTrace, time_ns: int, counters: Counters, info: Samples) -> str | None:
    """Return what ended the Startup at ``time_ns``: ``rate``, ``lost`` or ``marked``; None if no evidence shows it.

    If the readings do not show the rate, it is assumed in the absence of another reason.
    """
    lost = has_high_loss(trace, time_ns, info)
    marked = bool(marks_around(counters, trace.flow.sender, rounds_before(trace, time_ns, 2), time_ns))
    stopped = rate_stopped(trace, time_ns, info)
    if stopped:
        return RATE
    rate_alone = is_version_1(info)
    if stopped is None:
        return RATE if rate_alone or not (lost or marked) else None
    if lost:
        return LOST
    if marked:
        return MARKED
    return RATE if rate_alone else None


def rate_stopped(trace: FlowTrace, time_ns: int, info: Samples) -> bool | None:
    """Whether the largest delivery rate grew by less than a quarter in the three rounds before; None: unknown.

    It stopped if a rate read before these rounds was not exceeded and there is one reading per round. To show that it
    did not takes two readings per round: the rate of Startup doubles in one, and no reading is at its very start.
    """
    if not info.has("delivery_rate_bytes_per_second"):
        return None
    begin = rounds_before(trace, time_ns)
    around = enclosing(info, begin, time_ns)
    readings = around.stop - around.start
    rate = info["delivery_rate_bytes_per_second"]
    first = around.start if info.time_ns[around.start] <= begin else around.start - 1
    if first >= 0 and readings > ROUNDS and _stops(rate, first, around):
        return True
    return _stops(rate, min(first + 1, len(info) - 1), around) if readings >= 2 * ROUNDS else None


def _stops(rate: Integers, first: int, around: slice) -> bool:
    """Whether the largest rate up to reading ``first`` is within a quarter of the overall largest."""
    return bool(rate[: around.stop].max() < _GROWTH * rate[: first + 1].max())


def has_high_loss(trace: FlowTrace, time_ns: int, info: Samples) -> bool:
    """Whether TCP was in fast recovery and had retransmitted at least six segments and 2 % in the two rounds before."""
    begin = rounds_before(trace, time_ns, 2)
    lost = info.growth("total_retrans_packets", begin, time_ns)
    delivered = info.growth("delivered_packets", begin, time_ns)
    if lost is None or delivered is None or not info.has("ca_state"):
        return False
    state = info["ca_state"][enclosing(info, begin, time_ns)]
    return bool((state == RECOVERY).any()) and lost >= _LOSSES and lost > _LOSS_SHARE * (lost + delivered)
