# SPDX-License-Identifier: Apache-2.0
"""Loss in bursts: Gilbert's model, as netem has it (``gemodel`` with its last two probabilities 0 and 1).

A packet after one that arrived is lost with probability ``begins``; one after a lost packet arrives with probability
``ends``. Bursts thus have a mean of 1 / ends packets, and begins / (begins + ends) of all packets are lost.
E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39 (1960).
"""

from __future__ import annotations

from typing import NamedTuple


class Transitions(NamedTuple):
    begins: float
    ends: float


def transitions(loss_ratio: float, burst_packets: float) -> Transitions:
    """Those of a mean loss and a mean burst; ``begins`` is above 1 where bursts so short cannot lose so much."""
    ends = 1 / burst_packets
    return Transitions(ends * loss_ratio / (1 - loss_ratio), ends)


def in_bursts(loss_ratio: float, burst_packets: float | None) -> bool:
    """Whether packets are lost in bursts: where all or none are lost there is nothing to draw."""
    return burst_packets is not None and 0 < loss_ratio < 1
