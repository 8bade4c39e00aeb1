# SPDX-License-Identifier: Apache-2.0
"""The cost of the first losses: how long their repair takes, timeouts, and how long nothing arrives."""

from __future__ import annotations

from howdah.measure.capacity import FairCapacity
from howdah.measure.exit import Exit
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.measured import Measured, crosses
from howdah.measure.overshoot import LossEpisode, startup_end
from howdah.measure.rounds import episodes
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.throughput import silent_spans
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import BACKGROUND

_TIMEOUTS = "TcpExtTCPTimeouts"
# Least length of a blackout in the HyStart paper's Fig. 1: "over 30 seconds" of almost no throughput.
LONG_BLACKOUT_S = 30.0


def recovery_s(trace: FlowTrace, episode: LossEpisode) -> float:
    """Return the seconds of the first loss episode (:func:`howdah.measure.overshoot.first_loss_episode`).

    From the third duplicate ACK to the ACK of everything sent by then. An episode that is not over when the flow ends
    lasts until then: the value is then a lower bound.
    """
    is_over = episode.end_ns < int(trace.time_ns[-1])
    return ((episode.end_ns if is_over else trace.stop_ns) - episode.begin_ns) / SECOND_NS


def repaired_per_rtt(trace: FlowTrace, episode: LossEpisode) -> float | None:
    """Return the segments retransmitted in the first loss episode per round trip of the path.

    1 is the slow-but-steady NewReno of RFC 2582: one hole per round trip. None if tcp_info was not read, or the episode
    lasted less than a round trip.
    """
    trips = recovery_s(trace, episode) * 1e6 / trace.flow.rtt_us
    return None if episode.retransmitted is None or trips < 1 else episode.retransmitted / trips


def longest_blackout_s(trace: FlowTrace, capacity: FairCapacity) -> float | None:
    """Return the longest stretch of consecutive silent RTT windows, which :func:`throughput.blackout_s` adds up."""
    spans = silent_spans(trace, capacity)
    return None if spans is None else max((end - begin for begin, end in spans), default=0) / SECOND_NS


def recovery_rows(sheet: Sheet, data: Measured, trace: FlowTrace, episode: LossEpisode | None) -> None:
    """Add ``recovery_s``, ``repaired_per_rtt_packets``, ``timeouts``, ``first_timeout_s``, ``longest_blackout_s`` and
    ``long_blackout`` of a flow."""
    flow = trace.flow
    no_loss = "no loss episode" if len(trace) else NO_ACKS
    lasted = None if episode is None else recovery_s(trace, episode)
    sheet.add(flow, "recovery_s", lasted, no_loss)
    repaired = None if episode is None else repaired_per_rtt(trace, episode)
    why = no_loss if episode is None else "tcp_info was not read, or the episode is shorter than a round trip"
    sheet.add(flow, "repaired_per_rtt_packets", repaired, why)
    _timeout_rows(sheet, data, trace)
    longest = longest_blackout_s(trace, data.capacity)
    why = NO_ACKS if not len(trace) else "no RTT window reached 10 % of the capacity: all of it was ramp"
    sheet.add(flow, "longest_blackout_s", longest, why)
    long = None if longest is None else int(longest > LONG_BLACKOUT_S)
    sheet.add(flow, "long_blackout", long, why)


def _timeout_rows(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """Add timeouts by the counter TCPTimeouts of the sender's host; the first reading that shows one has its time."""
    flow = trace.flow
    series = data.counters.series(flow.sender, _TIMEOUTS)
    alone = sum(other.sender == flow.sender for other in data.plan.flows) == 1
    if series is None or not alone:
        why = "the counters were not read" if series is None else "other flows of this host share its counters"
        sheet.add(flow, "timeouts", None, why)
        sheet.add(flow, "first_timeout_s", None, why)
        return
    sheet.add(flow, "timeouts", series.growth(trace.start_ns, trace.stop_ns))
    before = series.value[0]
    shown = series.time_ns[(series.value > before) & (series.time_ns >= trace.start_ns)]
    first = (int(shown[0]) - trace.start_ns) / SECOND_NS if shown.size and shown[0] <= trace.stop_ns else None
    sheet.add(flow, "first_timeout_s", first, "no timeout")


def startup_retransmitted(trace: FlowTrace, info: Samples, found: Exit | None) -> int | None:
    """Return the segments retransmitted from when the flow could send until two rounds after its exit from slow start
    (:func:`howdah.measure.overshoot.startup_end`), by the first reading of tcp_info from then on. A lost SYN does not
    count.

    A later overflow belongs to congestion avoidance. None if tcp_info was not read in that time.
    """
    end = startup_end(trace, found)
    if not len(trace) or not info.has("total_retrans_packets"):
        return None
    until = trace.stop_ns if end >= len(trace) else int(trace.time_ns[end])
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    return info.growth("total_retrans_packets", begin, until)


def losing_together(trace: FlowTrace, episode: LossEpisode, others: list[FlowTrace], drain_ns: int) -> int:
    """Return how many of ``others`` notice a loss of their own during the flow's first loss episode.

    Drops of one overflow of the queue are noticed up to a round trip and a full buffer (``drain_ns``) apart, so the
    span begins by as much before the episode. A loss is noticed with the third duplicate ACK
    (:func:`howdah.measure.rounds.episodes`).
    """
    begin = episode.begin_ns - trace.flow.rtt_us * 1000 - drain_ns
    end = episode.end_ns
    return sum(_notices(other, begin, end) for other in others if other.start_ns < end and other.stop_ns > begin)


def _notices(trace: FlowTrace, begin_ns: int, end_ns: int) -> bool:
    return any(begin_ns <= int(trace.time_ns[each.begin]) <= end_ns for each in episodes(trace))


def early_loss_rows(
    sheet: Sheet, data: Measured, trace: FlowTrace, found: Exit | None, episode: LossEpisode | None, drain_ns: int
) -> None:
    """Add ``startup_retransmitted_packets`` of a flow and, with other flows on the bottleneck,
    ``synchronous_losses_measured`` and ``synchronous_losses_background``, for the roles that these have."""
    flow = trace.flow
    again = startup_retransmitted(trace, data.info[flow.id], found)
    why = "tcp_info was not read" if len(trace) else NO_ACKS
    sheet.add(flow, "startup_retransmitted_packets", again, why)
    others = [other for other in data.traces if other.flow.id != flow.id and crosses(data.plan, other.flow)]
    none = "no loss episode" if len(trace) else NO_ACKS
    for role in ("measured", BACKGROUND):
        mine = [other for other in others if (other.flow.role == BACKGROUND) == (role == BACKGROUND)]
        if mine:
            count = None if episode is None else losing_together(trace, episode, mine, drain_ns)
            sheet.add(flow, f"synchronous_losses_{role}", count, none)
