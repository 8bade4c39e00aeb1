# SPDX-License-Identifier: Apache-2.0
"""Burst loss after Gilbert's model, as in netem (``gemodel`` with its last two probabilities 0 and 1).

A packet that follows an arrived one is lost with probability ``begins``; a packet that follows a lost one arrives with
probability ``ends``. The mean burst is therefore 1 / ends packets, and begins / (begins + ends) of all packets are
lost. E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39 (1960).
"""

from __future__ import annotations

from typing import NamedTuple


class Transitions(NamedTuple):
    begins: float
    ends: float


def transitions(loss_ratio: float, burst_packets: float) -> Transitions:
    """Return the probabilities for a mean loss and a mean burst; ``begins`` exceeds 1 if the two exclude each other."""
    ends = 1 / burst_packets
    return Transitions(ends * loss_ratio / (1 - loss_ratio), ends)


def in_bursts(loss_ratio: float, burst_packets: float | None) -> bool:
    """Whether packets are lost in bursts. If all packets are lost, or none, nothing is random."""
    return burst_packets is not None and 0 < loss_ratio < 1
