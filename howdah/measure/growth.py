# SPDX-License-Identifier: Apache-2.0
"""Where the growth of a start-up ends, whatever ends it: for every flow, even if ssthresh does not show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.capacity import FairCapacity, share_of_bdp
from howdah.measure.rounds import episodes, rounds
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace, Reals
from howdah.plan.path import Path

# Least growth of a round in a start-up. Slow start grows by half at least: an ACK for two packets releases three. BBR
# requires a quarter.
STILL_GROWS = 1.25
# Rounds without growth that end it: a control may grow every other round (Vegas), and BBR waits for three.
ROUNDS_WITHOUT = 3


def in_flight(trace: FlowTrace) -> Reals:
    """Return packets sent and not acknowledged at each ACK, 0 inside recoveries; shape (n,).

    A recovery is one of :func:`episodes`, without the records before its third duplicate: their state is that before
    the loss was known.
    """
    found = trace.packets_out.copy()
    for episode in episodes(trace):
        found[episode.begin + 1 : episode.end] = 0
    return found


def in_window(trace: FlowTrace) -> Reals:
    """Return packets sent and not acknowledged at each ACK, as far as the window allows them in flight; shape (n,).

    In a recovery, packets that SACK reports have left the path, and only the window shows how many are in flight.
    """
    return np.minimum(trace.packets_out, trace.cwnd)


@dataclass(frozen=True)
class GrowthEnd:
    """``packets`` were in flight at ``time_ns``, the most of the last round that grew.

    ``begin`` is the first record of that round; ``following`` is the first record of the rounds that did not grow, and
    ``end`` the first record after them.
    """

    time_ns: int
    packets: float
    begin: int
    following: int
    end: int


def growth_end(trace: FlowTrace, flying: Reals, without: int = 1) -> GrowthEnd | None:
    """Return where the growth of a start-up ends on the wire; ``flying`` is in flight at each record.

    A round grows if its most packets in flight are at least :data:`STILL_GROWS` times those of the last round that
    grew. The growth ends with a round after which ``without`` rounds in a row do not grow. Otherwise it ends at the
    peak of the final round, if ACKs go on for more than two round trips after it, as its losses are then not repaired
    when the flow ends. Else None.
    """
    starts = rounds(trace)
    if starts.size < 2:
        return None
    most = np.maximum.reduceat(flying, starts)
    last = 0
    for number in range(1, most.size):
        if most[number] >= STILL_GROWS * most[last]:
            last = number
        elif number - last == without:
            break
    else:
        begin = int(starts[-1])
        peak = begin + int(np.argmax(flying[begin:]))
        stuck = trace.time_ns[-1] - trace.time_ns[peak] > 2 * trace.window_ns[peak]
        return GrowthEnd(int(trace.time_ns[peak]), float(most[-1]), begin, peak, len(trace)) if stuck else None
    begin, following = int(starts[last]), int(starts[last + 1])
    peak = begin + int(np.argmax(flying[begin:following]))
    behind = last + 1 + without
    end = int(starts[behind]) if behind < starts.size else len(trace)
    return GrowthEnd(int(trace.time_ns[peak]), float(flying[peak]), begin, following, end)


def growth_end_rows(sheet: Sheet, trace: FlowTrace, capacity: FairCapacity, path: Path, why_nothing: str) -> None:
    """Add ``growth_end_s`` and ``growth_end_bdp`` of a flow whose kernel reports its window.

    :func:`growth_end` of :func:`in_window`, after :data:`ROUNDS_WITHOUT` rounds that do not grow.
    """
    flow = trace.flow
    end = growth_end(trace, in_window(trace), ROUNDS_WITHOUT) if len(trace) else None
    why = f"what it had in flight grew until less than {ROUNDS_WITHOUT} rounds before the end of the flow"
    why = why if len(trace) else why_nothing
    after_s = None if end is None else (end.time_ns - trace.start_ns) / SECOND_NS
    share = None if end is None else share_of_bdp(end.packets, capacity, flow, path, end.time_ns)
    sheet.add(flow, "growth_end_s", after_s, why)
    why = why if end is None else "the link carried nothing in the round trip before"
    sheet.add(flow, "growth_end_bdp", share, why)
