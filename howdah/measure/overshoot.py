# SPDX-License-Identifier: Apache-2.0
"""How far the start-up sends beyond what the path holds, and what it loses as a result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.capacity import FairCapacity, buffer_drain_ns, held_packets
from howdah.measure.exit import Exit
from howdah.measure.rounds import Episode, episodes, rounds
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace
from howdah.plan.path import Path

_ROUNDS_AFTER_EXIT = 2


def startup_end(trace: FlowTrace, found: Exit | None) -> int:
    """Return the index of the record at which the start-up is over: two rounds after the exit from slow start.

    A late exit shows its overshoot in the round after it, and a loss is detected a round after the overshoot; later
    windows belong to congestion avoidance. The number of records if the flow never left slow start.
    """
    if found is None:
        return len(trace)
    starts = rounds(trace)
    following = starts[starts > found.record]
    return int(following[_ROUNDS_AFTER_EXIT]) if following.size > _ROUNDS_AFTER_EXIT else len(trace)


@dataclass(frozen=True)
class LossEpisode:
    """The first loss episode of a flow. Counts are packets; ``dropped`` counts the bottleneck's drops, of all flows.

    A count is None if its table has no readings around the episode.
    """

    begin_ns: int
    end_ns: int
    retransmitted: int | None
    dropped: int | None


def first_loss_episode(
    trace: FlowTrace, info: Samples, bottleneck: Samples, drain_ns: int, flows_on_path: int
) -> LossEpisode | None:
    """Return the episode from the first drop that it reveals to the ACK of everything sent before the loss was noticed.

    It begins with the third duplicate ACK (:func:`howdah.measure.rounds.episodes`); the drops it reveals happened up to
    a round trip and one full buffer (``drain_ns``) earlier. Packets dropped before the sender noticed are repaired in a
    recovery of their own: one that begins within a round trip of the last one's end belongs to the same episode.
    Retransmissions come from tcp_info, drops from the bottleneck's queue, each between the readings that enclose the
    episode. An episode without retransmission (reordering) does not count. None without an episode.
    """
    for episode in _merged(trace):
        begin = int(trace.time_ns[episode.begin])
        end = int(trace.time_ns[min(episode.end, len(trace) - 1)])
        again = info.growth("total_retrans_packets", begin - 1, end)
        if again == 0:
            continue
        earliest = begin - trace.flow.rtt_us * 1000 - drain_ns
        dropped = bottleneck.growth("drops_packets", earliest, end)
        if again is None and not dropped and flows_on_path == 1:
            continue
        return LossEpisode(begin, end, again, dropped)
    return None


def first_drain_ns(trace: FlowTrace, capacity: FairCapacity, path: Path) -> int:
    """Return how long the link took to send a full buffer before the flow's first loss episode."""
    first = next(iter(episodes(trace)), None)
    return buffer_drain_ns(capacity, path, trace.stop_ns if first is None else int(trace.time_ns[first.begin]))


def _merged(trace: FlowTrace) -> list[Episode]:
    """Return the episodes, merging those less than a round trip apart."""
    found: list[Episode] = []
    window = trace.window_ns
    for episode in episodes(trace):
        if found and found[-1].end < len(trace):
            last = found[-1]
            if trace.time_ns[episode.begin] - trace.time_ns[last.end] <= window[last.end]:
                found[-1] = Episode(last.begin, episode.end)
                continue
        found.append(episode)
    return found


def overshoot_packets(trace: FlowTrace, found: Exit | None, capacity: FairCapacity, path: Path) -> float | None:
    """Return the most packets out during the start-up beyond what the path holds, BDP + buffer in frames; negative if
    the path was never filled. The BDP is that of each moment (``capacity.held_packets``). None without records."""
    if not len(trace):
        return None
    end = startup_end(trace, found)
    held = held_packets(capacity, trace.flow, path, trace.time_ns[:end])
    return float((trace.packets_out[:end] - held).max())


def peak_cwnd(trace: FlowTrace, found: Exit | None) -> int | None:
    """Return the largest congestion window during the start-up."""
    return int(np.max(trace.cwnd[: startup_end(trace, found)])) if len(trace) else None
