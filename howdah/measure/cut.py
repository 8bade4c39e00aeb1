# SPDX-License-Identifier: Apache-2.0
"""Why a window was cut: the evidence of TCP's state and of the tables at the ACK that cut it.

TCP cuts a window in a fast recovery, after a retransmission timeout and on ECN or a drop in the sender's own queue
(CWR). Any other cut is the algorithm's own. Retransmissions do not distinguish them: a module that cuts its window
because the path is full has often overfilled it, and losses follow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.measure.sampled import Counters, Samples
from howdah.measure.trace import FlowTrace

_TIMEOUTS = "TcpExtTCPTimeouts"
_RECOVERIES = ("TcpExtTCPSackRecovery", "TcpExtTCPRenoRecovery")
_MARKED = "TcpExtTCPDeliveredCE"

# tcpi_ca_state
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
_FAST_RETRANSMIT = 3  # duplicate ACKs


@dataclass(frozen=True)
class Cut:
    """The evidence at one cut. Counters belong to a host, all else to the flow.

    - ``duplicates``: consecutive ACKs, up to the one that cut, that acknowledged nothing new.
    - ``state``: ``tcpi_ca_state`` of a reading between the two ACKs, if TCP was reducing its window. Else that of the
      first reading after the cut, if it comes before everything sent by then is acknowledged (as long as a recovery
      lasts) and before the next gap shows. None without such a reading.
    - ``recoveries``, ``marks``, ``timeouts``: growth of TCPSackRecovery and TCPRenoRecovery, TCPDeliveredCE and
      TCPTimeouts between the readings around the cut; None if they were not read.
    - ``moves``: an ACK acknowledged new data within half a round trip after the cut. In a recovery, a retransmission
      must first close a gap, which takes a round trip.
    - ``collapsed``: the window fell to less than half of the threshold.
    - ``at_once``: the ACK that lowered the threshold took the window to it.
    - ``gradual``: the window came down to it later, as with TCP's own reductions.
    """

    duplicates: int
    state: int | None
    recoveries: int | None
    marks: int | None
    timeouts: int | None
    moves: bool
    collapsed: bool
    at_once: bool
    gradual: bool

    @property
    def is_timeout(self) -> bool:
        """Whether it was a timeout: tcp_enter_loss() leaves one packet, or what SACK shows as still in flight."""
        if not self.collapsed:
            return False
        return bool(self.timeouts) if self.state is None else self.state == LOSS

    @property
    def is_loss(self) -> bool:
        """Whether a fast recovery began."""
        if self.state is not None:
            # A timeout may have followed the recovery before the reading.
            return self.state == RECOVERY or (self.state == LOSS and self.duplicates > 0)
        if self.duplicates >= _FAST_RETRANSMIT:
            return True
        # RACK's timer needs fewer duplicates; an ACK that advances may report losses by SACK, and is no duplicate.
        return bool(self.recoveries) and not self.moves and (self.duplicates > 0 or not self.at_once)

    @property
    def is_signal(self) -> bool:
        """Whether it was ECN, or a drop in the sender's own queue: no recovery, and the window falls step by step."""
        if self.state is not None:
            return self.state == CWR
        return self.gradual and (bool(self.marks) or self.recoveries == 0)

    @property
    def is_own(self) -> bool:
        """Whether it was the algorithm's own: TCP was in no state that reduces windows."""
        if self.state is not None:
            return self.state in (OPEN, DISORDER)
        if self.duplicates or self.gradual or self.marks:
            return False
        return (self.at_once and self.moves) or self.recoveries == self.marks == self.timeouts == 0


def cut_at(trace: FlowTrace, record: int, counters: Counters, info: Samples) -> Cut:
    """Return the evidence at the cut that ``record`` shows; the ACK of the record before made it."""
    begin, end = int(trace.time_ns[record - 1]), int(trace.time_ns[record])
    host = trace.flow.sender
    threshold = trace.ssthresh[record]
    after = trace.cwnd[record : _repaired(trace, record) + 1]
    at_once = bool(trace.cwnd[record] <= threshold + 1)
    return Cut(
        duplicates=_duplicates(trace, record),
        state=_state(trace, record, info),
        recoveries=_growth(counters, host, _RECOVERIES, begin, end),
        marks=marks_around(counters, host, begin, end),
        timeouts=_growth(counters, host, (_TIMEOUTS,), begin, end),
        moves=_moves(trace, record),
        collapsed=bool(trace.cwnd[record] < threshold // 2),
        at_once=at_once,
        gradual=not at_once and bool((after <= threshold + 1).any()),
    )


def marks_around(counters: Counters, host: str, begin_ns: int, end_ns: int) -> int | None:
    """Return the segments with a congestion mark that the host's flows delivered, between the readings around."""
    return _growth(counters, host, (_MARKED,), begin_ns, end_ns)


def _duplicates(trace: FlowTrace, record: int) -> int:
    others = np.flatnonzero(~_stands(trace)[:record])
    return record - 1 - int(others[-1]) if others.size else record


def _stands(trace: FlowTrace) -> npt.NDArray[np.bool_]:
    """Return which ACKs acknowledged nothing new while data were outstanding; shape (records - 1,)."""
    return np.asarray((np.diff(trace.snd_una) == 0) & (trace.snd_nxt[:-1] > trace.snd_una[:-1]))


def _moves(trace: FlowTrace, record: int) -> bool:
    soon = trace.time_ns[record - 1] + trace.flow.rtt_us * 1000 // 2
    last = int(np.searchsorted(trace.time_ns, soon, side="right")) - 1
    return bool(trace.una_after[last] > trace.snd_una[record])


def _repaired(trace: FlowTrace, record: int) -> int:
    """Return the first record after the cut that shows all acknowledged that had been sent; their number if none."""
    return max(int(np.searchsorted(trace.snd_una, trace.snd_nxt[record - 1])), record)


def _next_gap(trace: FlowTrace, record: int) -> int:
    """Return the first record after the cut that shows a further gap: ACKs had advanced, and stop again."""
    advanced = int(np.searchsorted(trace.snd_una, trace.snd_una[record], side="right"))
    stops = np.flatnonzero(_stands(trace)[advanced:])
    return advanced + int(stops[0]) if stops.size else len(trace)


def _state(trace: FlowTrace, record: int, info: Samples) -> int | None:
    if not info.has("ca_state"):
        return None
    # The window was cut after the ACK of the record before, and the next ACK may have undone it.
    inside = info["ca_state"][(info.time_ns > trace.time_ns[record - 1]) & (info.time_ns < trace.time_ns[record])]
    reducing = inside[inside >= CWR]
    if reducing.size:
        return int(reducing[0])
    # A record shows the effect of the ACK of the record before: that ACK ended the state, by repair or by an undo.
    repaired = int(np.searchsorted(trace.una_after, trace.snd_nxt[record - 1]))
    restored = np.flatnonzero(trace.ssthresh[record:] >= trace.cwnd[record - 1])
    undone = record - 1 + int(restored[0]) if restored.size else len(trace)
    until = max(min(repaired, undone, _next_gap(trace, record)), record)
    until_ns = trace.time_ns[until] if until < len(trace) else trace.stop_ns
    reading = int(np.searchsorted(info.time_ns, trace.time_ns[record]))
    if reading >= len(info) or info.time_ns[reading] >= until_ns:
        return None
    return int(info["ca_state"][reading])


def _growth(counters: Counters, host: str, names: tuple[str, ...], begin_ns: int, end_ns: int) -> int | None:
    """Return the growth of the counters together; None if none was read on both sides of the interval."""
    found = [series.around(begin_ns, end_ns) for name in names if (series := counters.series(host, name))]
    known = [growth for growth in found if growth is not None]
    return sum(known) if known else None
