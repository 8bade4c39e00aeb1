# SPDX-License-Identifier: Apache-2.0
"""Why BBR left Startup. Its entry into Drain is what the trace shows; the reason is in the readings of tcp_info.

All versions leave when the largest delivery rate has grown by less than a quarter in three rounds. Version 3 also
leaves after a round of fast recovery with losses in at least six places and more than 2 % of what was sent
(draft-ietf-ccwg-bbr, BBRCheckStartupHighLoss), and on ECN marks. Version 1 enters Drain for no other reason than the
rate (``bbr_check_drain``, ``bbr_full_bw_reached``), and its socket shows its version. But a changed copy of version 1
answers alike, so the evidence comes first, and the version decides where the readings do not.
"""

from __future__ import annotations

from howdah.measure.control import is_version_1
from howdah.measure.counters import Counters
from howdah.measure.cut import RECOVERY, marks_around
from howdah.measure.limit import ROUNDS, enclosing, rounds_before
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace, Integers

_GROWTH = 1.25  # BBR.StartupPacingGain's test of a full pipe
_LOSSES = 6  # BBR.StartupFullLossCnt
_LOSS_SHARE = 0.02  # BBR.LossThresh

RATE, LOST, MARKED = "rate", "lost", "marked"


def startup_end(trace: FlowTrace, time_ns: int, counters: Counters, info: Samples) -> str | None:
    """``rate``, ``lost`` or ``marked``: what ended the Startup that was left at ``time_ns``; None if nothing says so.

    Where the readings do not show the rate, it is the reason if there is no other.
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
    """Whether the largest delivery rate grew by less than a quarter in the three rounds before; None: not seen.

    A rate that was read before these rounds, and not exceeded in one reading a round, had stopped. To say that it had
    not takes readings twice a round: the rate of Startup doubles in one, and no reading is at its very beginning.
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
    """Whether the largest rate up to reading ``first`` is within a quarter of the largest at all."""
    return bool(rate[: around.stop].max() < _GROWTH * rate[: first + 1].max())


def has_high_loss(trace: FlowTrace, time_ns: int, info: Samples) -> bool:
    """Whether TCP was in fast recovery, and retransmitted in the two rounds before at least six segments and 2 %."""
    begin = rounds_before(trace, time_ns, 2)
    lost = info.growth("total_retrans_packets", begin, time_ns)
    delivered = info.growth("delivered_packets", begin, time_ns)
    if lost is None or delivered is None or not info.has("ca_state"):
        return False
    state = info["ca_state"][enclosing(info, begin, time_ns)]
    return bool((state == RECOVERY).any()) and lost >= _LOSSES and lost > _LOSS_SHARE * (lost + delivered)
