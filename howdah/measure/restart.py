# SPDX-License-Identifier: Apache-2.0
"""Windows that fell: restarts after an idle time, and cuts after the exit from slow start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.measure.trace import FlowTrace, Integers


@dataclass(frozen=True)
class Restart:
    """The window on both sides of a restart."""

    before_packets: int
    after_packets: int


def fell_idle(cwnd: Integers, una: Integers, nxt: Integers) -> npt.NDArray[np.bool_]:
    """At which records the window is smaller than before while nothing was outstanding; shape (records,).

    ``tcp_cwnd_restart()`` lowers it so when the sender goes on after a timeout's length without sending. No other part
    of TCP does: losses and marks need something that is outstanding.
    """
    fell = np.zeros(cwnd.size, dtype=bool)
    fell[1:] = (cwnd[1:] < cwnd[:-1]) & (una[1:] >= nxt[:-1])
    return fell


def restarts_of(trace: FlowTrace) -> list[Restart]:
    """All of them, in order."""
    at = np.flatnonzero(fell_idle(trace.cwnd, trace.snd_una, trace.snd_nxt))
    return [Restart(*pair) for pair in zip(trace.cwnd[at - 1].tolist(), trace.cwnd[at].tolist(), strict=True)]


def window_cuts(trace: FlowTrace, after_ns: int) -> int:
    """How often the window fell after an instant, restarts apart; what falls within a round trip of a fall is one."""
    fell = np.zeros(len(trace), dtype=bool)
    fell[1:] = trace.cwnd[1:] < trace.cwnd[:-1]
    fell &= ~fell_idle(trace.cwnd, trace.snd_una, trace.snd_nxt) & (trace.time_ns > after_ns)
    times = trace.time_ns[fell]
    if not times.size:
        return 0
    return 1 + int((np.diff(times) > trace.window_ns[fell][1:]).sum())
