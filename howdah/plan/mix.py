# SPDX-License-Identifier: Apache-2.0
"""Background of medium-sized transfers: Poisson arrivals, and sizes of the Surge generator.

P. Barford and M. Crovella, Generating Representative Web Workloads for Network and Server Performance Evaluation,
SIGMETRICS 1998, table 2: a lognormal body with 93 % of the files, a Pareto tail with the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import NormalDist

from howdah.errors import ProfileError
from howdah.frame import STAMPED_TCP_BYTES, frame_bytes
from howdah.profile.group import MixSection, WebSection

MOST_DRAWN = 200_000


def web_connections(web: WebSection, start_us: int, before_us: int, mss_bytes: int, draw: Random) -> list[Connection]:
    """Return the connections of all sessions, ordered by start, without those that would start at ``before_us`` or
    later.

    The first session starts at ``start_us`` with its first page and object. Stop early above ``MOST_GENERATED``
    connections. Raise ProfileError if most of very many objects would be left out.
    """
    found: list[Connection] = []
    drawn = 0
    session_us = float(start_us)
    for _ in range(web.sessions):
        page_us = session_us
        for _ in range(_geometric(draw, web.pages)):
            object_us = page_us
            for _ in range(_count(draw, web.objects, web.objects_shape)):
                size = min(_count(draw, web.object_packets, web.object_shape) * mss_bytes, web.largest)
                if object_us < before_us:
                    found.append(Connection(int(object_us), None, size))
                drawn += 1
                if len(found) > MOST_GENERATED:
                    return found
                if drawn > MOST_DRAWN:
                    what = f"more than {MOST_DRAWN} objects are asked for, most of them after the end of the run"
                    raise ProfileError(what, hint="ask for fewer sessions, pages or objects, or for a longer run")
                object_us += exponential(draw, web.between_objects)
            page_us += exponential(draw, web.between_pages)
        session_us += exponential(draw, web.between_sessions)
    return sorted(found, key=lambda connection: connection.start_us)


def _count(draw: Random, mean: int, shape: float) -> int:
    return max(1, round(pareto_second(draw, mean, shape)))


def _geometric(draw: Random, mean: int) -> int:
    """Draw from 1, 2, … with this mean."""
    if mean == 1:
        return 1
    return 1 + int(math.log1p(-draw.random()) / math.log1p(-1 / mean))


ON_OFF_SHAPE = 1.5  # shape of Pareto on and off times: the mean is finite, the variance infinite


def exponential(draw: Random, mean: float) -> float:
    """F(x) = 1 - exp(-x / mean)."""
    return -mean * math.log1p(-draw.random())


def pareto(draw: Random, least: float, shape: float) -> float:
    """F(x) = 1 - (least / x)^shape for x >= least; the mean is least x shape / (shape - 1) for a shape above 1."""
    return float(least * (1 - draw.random()) ** (-1 / shape))


def pareto_of_mean(draw: Random, mean: float, shape: float) -> float:
    """The same distribution, given its mean; the shape must be above 1."""
    return pareto(draw, mean * (shape - 1) / shape, shape)


def pareto_second(draw: Random, mean: float, shape: float) -> float:
    """Pareto's second kind (Lomax), from 0: F(x) = 1 - (1 + x / scale)^-shape with scale = mean x (shape - 1)."""
    return float(mean * (shape - 1) * ((1 - draw.random()) ** (-1 / shape) - 1))


LAWS: dict[str, Callable[[Random, float], float]] = {
    "constant": lambda _draw, mean: mean,
    "exponential": exponential,
    "pareto": lambda draw, mean: pareto_of_mean(draw, mean, ON_OFF_SHAPE),
}


MOST_GENERATED = 100_000  # connections of all groups


@dataclass(frozen=True)
class Connection:
    """One connection of a group; microseconds after the epoch. If ``stop_us`` is None, its size or the run ends it."""

    start_us: int
    stop_us: int | None
    size_bytes: int | None
    bursts: tuple[tuple[int, int], ...] = ()


BODY_SHARE = 0.93
BODY = NormalDist(9.357, 1.318)  # distribution of the logarithm of the size in bytes
TAIL_LEAST_BYTES, TAIL_SHAPE = 133_000, 1.1


@dataclass(frozen=True)
class _Cut:
    """The mixture between two sizes: the shares of body and tail below the least and below the largest size, and the
    weights of body and tail within the range, among all files."""

    body: tuple[float, float]
    tail: tuple[float, float]
    body_weight: float
    tail_weight: float


@functools.lru_cache(maxsize=16)
def _cut(least_bytes: int, most_bytes: int) -> _Cut:
    def tail_below(size: int) -> float:
        return float(1 - (TAIL_LEAST_BYTES / max(size, TAIL_LEAST_BYTES)) ** TAIL_SHAPE)

    body = BODY.cdf(math.log(least_bytes)), BODY.cdf(math.log(most_bytes))
    tail = tail_below(least_bytes), tail_below(most_bytes)
    return _Cut(body, tail, BODY_SHARE * (body[1] - body[0]), (1 - BODY_SHARE) * (tail[1] - tail[0]))


def size_bytes(mix: MixSection, draw: Random) -> int:
    """Draw one size of the mixture within the range, by inverting its distribution function."""
    cut = _cut(mix.least, mix.most)
    if draw.random() * (cut.body_weight + cut.tail_weight) < cut.body_weight:
        low, high = cut.body
        share = low + (high - low) * draw.random()
        value = math.exp(BODY.inv_cdf(min(max(share, 1e-12), 1 - 1e-12)))
    else:
        low, high = cut.tail
        share = low + (high - low) * draw.random()
        value = TAIL_LEAST_BYTES * (1 - share) ** (-1 / TAIL_SHAPE)
    return min(max(round(value), mix.least), mix.most)


def mean_bytes(mix: MixSection) -> float:
    """Return the mean of the mixture within the range: partial expectations divided by the weights."""
    normal = NormalDist()

    def body_below(size: int) -> float:
        return normal.cdf((math.log(size) - BODY.mean - BODY.variance) / BODY.stdev)

    def tail_below(size: int) -> float:
        ends = TAIL_LEAST_BYTES ** (1 - TAIL_SHAPE) - max(size, TAIL_LEAST_BYTES) ** (1 - TAIL_SHAPE)
        return float(TAIL_SHAPE * TAIL_LEAST_BYTES**TAIL_SHAPE / (TAIL_SHAPE - 1) * ends)

    body = math.exp(BODY.mean + BODY.variance / 2) * (body_below(mix.most) - body_below(mix.least))
    tail = tail_below(mix.most) - tail_below(mix.least)
    cut = _cut(mix.least, mix.most)
    return (BODY_SHARE * body + (1 - BODY_SHARE) * tail) / (cut.body_weight + cut.tail_weight)


def mix_connections(mix: MixSection, start_us: int, before_us: int, mtu_bytes: int, draw: Random) -> list[Connection]:
    """Return connections from ``start_us`` on with this average rate, including the headers of full segments.

    Stop early above ``MOST_GENERATED`` connections.
    """
    overhead = frame_bytes(mtu_bytes) / (mtu_bytes - STAMPED_TCP_BYTES)
    between_us = mean_bytes(mix) * overhead * 8e6 / mix.rate
    found: list[Connection] = []
    now = start_us + exponential(draw, between_us)
    while now < before_us and len(found) <= MOST_GENERATED:
        found.append(Connection(int(now), None, size_bytes(mix, draw)))
        now += exponential(draw, between_us)
    return found
