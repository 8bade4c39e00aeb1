# SPDX-License-Identifier: Apache-2.0
"""Why a receive window was full: a buffer at its maximum, one that was tuned late, or the window of the handshake."""

from __future__ import annotations

import numpy as np

from howdah.held import RECEIVE_WINDOW, HeldBy
from howdah.measure.interval import Flags, Intervals, has_unsent, intervals_of, receive_full
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace

GROWS = 1.1  # a window that becomes larger than this many times what it was, grows
PLATEAU_RTTS = 4  # as long a window that holds the sender back, and grows no more, is the largest its buffer has
_UNSCALED_BYTES = 65535


def receive_kinds(trace: FlowTrace, info: Samples) -> dict[HeldBy, float]:
    """Seconds in which the receive window was full and the congestion window was not, by kind."""
    each = intervals_of(trace, info)
    full = None if each is None else receive_full(each, has_unsent(trace, info, each))
    if each is None or full is None or not full.any():
        return {}
    lasts = each.time - each.begin
    flags = receive_flags(each, full)
    return {kind: float(lasts[flag].sum()) / SECOND_NS for kind, flag in flags.items() if flag.any()}


def receive_flags(each: Intervals, full: Flags) -> dict[HeldBy, Flags]:
    """Which of the intervals with a full receive window are of each kind, shape (intervals,).

    ``HANDSHAKE_WINDOW``: before the first data is acknowledged, with a window that fills the 16 bits of a SYN's.
    ``AUTOTUNING``: the largest window so far became larger by a tenth or more later, or held the sender back for less
    than four round trips in which data were acknowledged. ``RECEIVE_BUFFER``: all else; also a window that is smaller
    than it was, and never becomes larger, whose buffer is occupied.
    """
    if each.snd_wnd is None or not full.any():
        return dict.fromkeys(RECEIVE_WINDOW, np.zeros(each.time.size, dtype=bool))
    largest = np.maximum.accumulate(each.snd_wnd)
    grows = largest[-1] > GROWS * largest
    top = full & ~grows
    advances = np.diff(each.una, append=each.una[-1:]) > 0
    rtts = ((each.time - each.begin) / each.window_ns)[top & advances].sum()
    late = grows | ((each.snd_wnd * GROWS > largest) & (rtts < PLATEAU_RTTS))
    handshake = (each.una <= 0) & (each.snd_wnd <= _UNSCALED_BYTES) & (each.snd_wnd * GROWS > _UNSCALED_BYTES)
    return {
        HeldBy.HANDSHAKE_WINDOW: full & handshake,
        HeldBy.AUTOTUNING: full & late & ~handshake,
        HeldBy.RECEIVE_BUFFER: full & ~late & ~handshake,
    }
