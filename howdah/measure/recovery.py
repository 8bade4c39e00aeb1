# SPDX-License-Identifier: Apache-2.0
"""What the first losses cost: how long they take to repair, timeouts, and how long nothing arrives."""

from __future__ import annotations

from howdah.measure.capacity import FairCapacity
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.measured import Measured
from howdah.measure.overshoot import LossEpisode
from howdah.measure.row import Sheet
from howdah.measure.throughput import silent_spans
from howdah.measure.trace import SECOND_NS, FlowTrace

_TIMEOUTS = "TcpExtTCPTimeouts"
# The HyStart paper's Fig. 1 calls "over 30 seconds" of almost no throughput a blackout.
LONG_BLACKOUT_S = 30.0


def recovery_s(trace: FlowTrace, episode: LossEpisode) -> float:
    """Seconds of the first loss episode (:func:`howdah.measure.overshoot.first_loss_episode`).

    From the third duplicate ACK to the ACK of everything sent by then. One that is not over when the flow ends lasts
    until then: the value is then a lower bound.
    """
    is_over = episode.end_ns < int(trace.time_ns[-1])
    return ((episode.end_ns if is_over else trace.stop_ns) - episode.begin_ns) / SECOND_NS


def repaired_per_rtt(trace: FlowTrace, episode: LossEpisode) -> float | None:
    """Segments retransmitted in the first loss episode for each of the path's round trips it lasted.

    1 is the slow-but-steady NewReno of RFC 2582: one hole a round trip. None where tcp_info was not read, or the
    episode lasted less than a round trip.
    """
    trips = recovery_s(trace, episode) * 1e6 / trace.flow.rtt_us
    return None if episode.retransmitted is None or trips < 1 else episode.retransmitted / trips


def longest_blackout_s(trace: FlowTrace, capacity: FairCapacity) -> float | None:
    """Longest stretch of consecutive silent RTT windows, those that :func:`throughput.blackout_s` adds up."""
    spans = silent_spans(trace, capacity)
    return None if spans is None else max((end - begin for begin, end in spans), default=0) / SECOND_NS


def recovery_rows(sheet: Sheet, data: Measured, trace: FlowTrace, episode: LossEpisode | None) -> None:
    """``recovery_s``, ``repaired_per_rtt_packets``, ``timeouts``, ``first_timeout_s``, ``longest_blackout_s`` and
    ``long_blackout`` of a flow."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    no_loss = "no loss episode" if len(trace) else NO_ACKS
    lasted = None if episode is None else recovery_s(trace, episode)
    sheet.add(flow.id, "recovery_s", lasted, "s", no_loss, **name)
    repaired = None if episode is None else repaired_per_rtt(trace, episode)
    why = no_loss if episode is None else "tcp_info was not read, or the episode is shorter than a round trip"
    sheet.add(flow.id, "repaired_per_rtt_packets", repaired, "packets", why, **name)
    _timeout_rows(sheet, data, trace)
    longest = longest_blackout_s(trace, data.capacity)
    why = NO_ACKS if not len(trace) else "no RTT window reached 10 % of the capacity: all of it was ramp"
    sheet.add(flow.id, "longest_blackout_s", longest, "s", why, **name)
    long = None if longest is None else int(longest > LONG_BLACKOUT_S)
    sheet.add(flow.id, "long_blackout", long, "ratio", why, **name)


def _timeout_rows(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """From the counter TCPTimeouts of the sender's host; its time is that of the first reading that shows one."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    series = data.counters.series(flow.sender, _TIMEOUTS)
    alone = sum(other.sender == flow.sender for other in data.plan.flows) == 1
    if series is None or not alone:
        why = "the counters were not read" if series is None else "other flows of this host share its counters"
        sheet.add(flow.id, "timeouts", None, "events", why, **name)
        sheet.add(flow.id, "first_timeout_s", None, "s", why, **name)
        return
    sheet.add(flow.id, "timeouts", series.growth(trace.start_ns, trace.stop_ns), "events", **name)
    before = series.value[0]
    shown = series.time_ns[(series.value > before) & (series.time_ns >= trace.start_ns)]
    first = (int(shown[0]) - trace.start_ns) / SECOND_NS if shown.size and shown[0] <= trace.stop_ns else None
    sheet.add(flow.id, "first_timeout_s", first, "s", "no timeout", **name)
