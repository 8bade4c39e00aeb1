# SPDX-License-Identifier: Apache-2.0
"""What a flow retransmits in its start-up alone, and who loses together with it."""

from __future__ import annotations

from howdah.measure.exit import Exit
from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.measured import Measured
from howdah.measure.overshoot import LossEpisode, startup_end
from howdah.measure.role import BACKGROUND, crosses
from howdah.measure.rounds import episodes
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace


def startup_retransmitted(trace: FlowTrace, info: Samples, found: Exit | None) -> int | None:
    """Segments retransmitted from the flow's start until two rounds after its exit from slow start
    (:func:`howdah.measure.overshoot.startup_end`), by the first reading of tcp_info from then on.

    A later overflow is congestion avoidance's own. None where tcp_info was not read in that time.
    """
    end = startup_end(trace, found)
    if not len(trace) or not info.has("total_retrans_packets"):
        return None
    until = trace.stop_ns if end >= len(trace) else int(trace.time_ns[end])
    return info.growth("total_retrans_packets", trace.start_ns, until)


def losing_together(trace: FlowTrace, episode: LossEpisode, others: list[FlowTrace], drain_ns: int) -> int:
    """How many of ``others`` notice a loss of their own while the flow's first loss episode lasts.

    Drops that fill one overflow of the queue are noticed up to a round trip and a full buffer (``drain_ns``) apart, so
    the span begins that much before the episode. Noticed is the third duplicate ACK
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
    """``startup_retransmitted_packets`` of a flow; with other flows on the bottleneck ``synchronous_losses_measured``
    and ``synchronous_losses_background``, of those roles that there are."""
    flow = trace.flow
    name = {"algorithm": flow.algorithm}
    again = startup_retransmitted(trace, data.info[flow.id], found)
    why = "tcp_info was not read" if len(trace) else NO_ACKS
    sheet.add(flow.id, "startup_retransmitted_packets", again, "packets", why, **name)
    others = [other for other in data.traces if other.flow.id != flow.id and crosses(data.plan, other.flow)]
    none = "no loss episode" if len(trace) else NO_ACKS
    for role in ("measured", BACKGROUND):
        mine = [other for other in others if (other.flow.role == BACKGROUND) == (role == BACKGROUND)]
        if mine:
            count = None if episode is None else losing_together(trace, episode, mine, drain_ns)
            sheet.add(flow.id, f"synchronous_losses_{role}", count, "flows", none, **name)
