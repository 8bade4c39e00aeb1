# SPDX-License-Identifier: Apache-2.0
"""Trains of slow start: the packets of a round as they reach the receiver, and their ACKs as they reach the sender.

Terms are those of section 4.2.1 of the HyStart paper: Delta(N) is the time from the first to the last packet of a
train, Lambda(N) from its first ACK to its last. Algorithm 1 of the paper takes ACKs for spaced that are 2 ms apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.conversation import Conversation
from howdah.measure.rounds import rounds
from howdah.measure.trace import FlowTrace

SPACED_NS = 2_000_000


@dataclass(frozen=True)
class Train:
    """A round's ``packets``, in how long they arrived and in how long they were acknowledged (ns)."""

    packets: int
    packets_ns: int
    acks_ns: int


def last_train(trace: FlowTrace, seen: Conversation, exit_ns: int) -> Train | None:
    """That of the last round whose ACKs had all come by the exit; None without such a round of two packets or more.

    ``seen`` is the capture at the receiver. A round whose first or last byte was lost or sent twice has none either.
    """
    starts = rounds(trace)
    ended = np.flatnonzero(trace.time_ns[starts[1:]] <= exit_ns)
    if not ended.size:
        return None
    first, behind = int(starts[ended[-1]]), int(starts[ended[-1] + 1])
    begin, end = int(trace.snd_una[first]), int(trace.snd_una[behind])
    inside = np.flatnonzero((seen.data.begin >= begin) & (seen.data.begin < end))
    if inside.size < 2 or np.unique(seen.data.begin[inside]).size < inside.size:
        return None
    arrived = seen.data.time_ns[inside]
    acks = trace.time_ns[first:behind]
    return Train(int(seen.data.segments[inside].sum()), int(arrived[-1] - arrived[0]), int(acks[-1] - acks[0]))


def lone_acks(trace: FlowTrace, exit_ns: int) -> tuple[int, int]:
    """ACKs until the exit that are more than 2 ms away from the one before and the one after, and all until then."""
    times = trace.time_ns[trace.time_ns <= exit_ns]
    apart = np.concatenate([[True], np.diff(times) > SPACED_NS, [True]])
    return int((apart[:-1] & apart[1:]).sum()) if times.size else 0, int(times.size)
