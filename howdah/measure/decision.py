# SPDX-License-Identifier: Apache-2.0
"""The decision to leave slow start: when it fell, at which window, and what the algorithm then took from that window.

For most algorithms the decision is the exit. One that drains what it has sent too much (SEARCH 4) decides first and
leaves slow start when the drain is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from howdah.measure.event import SlowStartEvent
from howdah.measure.exit import Exit
from howdah.measure.limit import APPLICATION, limit_of
from howdah.measure.sampled import Samples
from howdah.measure.trace import FlowTrace

_DRAINED = "drain-end"
_ROLLED_BACK = "roll-back"


@dataclass(frozen=True)
class Decision:
    """``cwnd_packets`` is the window at the decision, ``left_packets`` the one that the flow left slow start with.

    ``drains``: what it sent too much is drained before the flow leaves slow start; ``event`` is the module's report
    of it, None of a drain that the trace alone shows.
    """

    time_ns: int
    cwnd_packets: int
    left_packets: int
    drains: bool = False
    event: SlowStartEvent | None = None

    @property
    def rollback_packets(self) -> int:
        """What was taken back; 0 where the window went on growing."""
        return max(self.cwnd_packets - self.left_packets, 0)


def decision_of(
    found: Exit, told: SlowStartEvent | None, trace: FlowTrace, events: list[SlowStartEvent], info: Samples
) -> Decision:
    """By the module's events where it ``told`` of this exit, else by the trace.

    A module reports a drain's beginning by a ``phase`` and its end by ``drain-end``, a window that is cut at
    once by ``roll-back``. A loss may end a drain before that: then it is the ``phase`` since which the window has only
    fallen. In the trace of any other, a drain is a window that only falls until an ACK cuts it, with the flow still in
    slow start. TCP lowers the window of an application that sends too little: that is none.
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
    # The last record with the window from which it fell: the ACK of that record made the first cut.
    peak = begin + int(np.flatnonzero(trace.cwnd[begin : before + 1] == trace.cwnd[begin])[-1])
    time_ns = int(trace.time_ns[peak])
    if trace.cwnd[peak] <= trace.cwnd[before] or limit_of(info, time_ns, found.time_ns) == APPLICATION:
        return at_once
    return Decision(time_ns, int(trace.cwnd[peak]), left, drains=True)
