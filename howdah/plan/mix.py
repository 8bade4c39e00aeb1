# SPDX-License-Identifier: Apache-2.0
"""Background of transfers of middle size: Poisson arrivals, sizes as the Surge generator has them.

Sizes: P. Barford and M. Crovella, Generating Representative Web Workloads for Network and Server Performance
Evaluation, SIGMETRICS 1998, table 2: a lognormal body with 93 % of the files, a Pareto tail with the others.
"""

from __future__ import annotations

import math
from random import Random
from statistics import NormalDist

from howdah.plan.connection import MOST_GENERATED, Connection
from howdah.plan.distribution import exponential
from howdah.profile.group import MixSection

BODY_SHARE = 0.93
BODY = NormalDist(9.357, 1.318)  # of the logarithm of the bytes
TAIL_LEAST_BYTES, TAIL_SHAPE = 133_000, 1.1
ETHERNET_HEADER_BYTES, HEADER_BYTES = 14, 52


def _body_range(mix: MixSection) -> tuple[float, float]:
    """Shares of the body below the least and below the most."""
    return BODY.cdf(math.log(mix.least)), BODY.cdf(math.log(mix.most))


def _tail_range(mix: MixSection) -> tuple[float, float]:
    def below(size: int) -> float:
        return float(1 - (TAIL_LEAST_BYTES / max(size, TAIL_LEAST_BYTES)) ** TAIL_SHAPE)

    return below(mix.least), below(mix.most)


def _weights(mix: MixSection) -> tuple[float, float]:
    """How much of all files is in the range, body and tail."""
    body, tail = _body_range(mix), _tail_range(mix)
    return BODY_SHARE * (body[1] - body[0]), (1 - BODY_SHARE) * (tail[1] - tail[0])


def size_bytes(mix: MixSection, draw: Random) -> int:
    """One size of the mixture, cut to the range by inverting its distribution there."""
    body, tail = _weights(mix)
    if draw.random() * (body + tail) < body:
        low, high = _body_range(mix)
        share = low + (high - low) * draw.random()
        value = math.exp(BODY.inv_cdf(min(max(share, 1e-12), 1 - 1e-12)))
    else:
        low, high = _tail_range(mix)
        share = low + (high - low) * draw.random()
        value = TAIL_LEAST_BYTES * (1 - share) ** (-1 / TAIL_SHAPE)
    return min(max(round(value), mix.least), mix.most)


def mean_bytes(mix: MixSection) -> float:
    """Of the mixture cut to the range: partial expectations over the weights."""
    normal = NormalDist()

    def body_below(size: int) -> float:
        return normal.cdf((math.log(size) - BODY.mean - BODY.variance) / BODY.stdev)

    def tail_below(size: int) -> float:
        ends = TAIL_LEAST_BYTES ** (1 - TAIL_SHAPE) - max(size, TAIL_LEAST_BYTES) ** (1 - TAIL_SHAPE)
        return float(TAIL_SHAPE * TAIL_LEAST_BYTES**TAIL_SHAPE / (TAIL_SHAPE - 1) * ends)

    body = math.exp(BODY.mean + BODY.variance / 2) * (body_below(mix.most) - body_below(mix.least))
    tail = tail_below(mix.most) - tail_below(mix.least)
    return (BODY_SHARE * body + (1 - BODY_SHARE) * tail) / sum(_weights(mix))


def mix_connections(mix: MixSection, start_us: int, before_us: int, mtu_bytes: int, draw: Random) -> list[Connection]:
    """Connections from ``start_us`` on whose bytes, with the headers of full segments, are the rate on average.

    Ends early when there are more than may be."""
    overhead = (mtu_bytes + ETHERNET_HEADER_BYTES) / (mtu_bytes - HEADER_BYTES)
    between_us = mean_bytes(mix) * overhead * 8e6 / mix.rate
    found: list[Connection] = []
    now = start_us + exponential(draw, between_us)
    while now < before_us and len(found) <= MOST_GENERATED:
        found.append(Connection(int(now), None, size_bytes(mix, draw)))
        now += exponential(draw, between_us)
    return found
