# SPDX-License-Identifier: Apache-2.0
"""Delay that varies during a run without reordering: a seeded series of added delays.

netem's own jitter draws every packet's delay independently; kept in order, packets then leave at the running maximum
of the draws, which shifts the mean and hides the distribution. Here the delay is piecewise constant instead: every
interval it takes the next value of a stationary series. Where it falls, netem's rate option makes each packet leave
after the one before (net/sched/sch_netem.c, netem_enqueue: with a rate, the last packet queued is the reference).

The series is a Gaussian AR(1) process x_k, x_{k+1} = phi x_k + sqrt(1 - phi^2) e_k, phi = exp(-interval/correlation
time), mapped through its own distribution function to the distribution asked for (a Gaussian copula). So the
marginal distribution is exact and the correlation of x decays as asked.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from howdah.profile.path import DelayVariation


@dataclass(frozen=True)
class DelaySeries:
    """``added_us[k]`` is the added delay from k intervals after the epoch on; never negative, at most the limit."""

    interval_us: int
    added_us: list[int]

    @property
    def largest_us(self) -> int:
        return max(self.added_us, default=0)

    def summary(self) -> dict[str, int]:
        """Least, mean, largest and standard deviation of the series, in whole microseconds."""
        count = len(self.added_us)
        mean = sum(self.added_us) / count
        variance = sum((value - mean) ** 2 for value in self.added_us) / count
        return {
            "least_us": min(self.added_us),
            "mean_us": round(mean),
            "largest_us": self.largest_us,
            "standard_deviation_us": round(math.sqrt(variance)),
        }


def draw_series(asked: DelayVariation, duration_us: int, seed: int) -> DelaySeries:
    """The series for one direction, long enough for ``duration_us``."""
    values = normals(asked.interval, asked.correlation_time, random.Random(seed))
    count = -(-duration_us // asked.interval)
    added = [min(max(_mapped(asked, value), 0), asked.limit_us) for value in itertools.islice(values, count)]
    return DelaySeries(asked.interval, added)


def normals(interval_us: int, correlation_time_us: int, generator: random.Random) -> Iterator[float]:
    """Standard normal values, one an interval, whose correlation falls to 1/e in ``correlation_time_us``; no end."""
    phi = math.exp(-interval_us / correlation_time_us) if correlation_time_us else 0.0
    innovation = math.sqrt(1 - phi * phi)
    value = generator.gauss(0, 1)
    while True:
        yield value
        value = phi * value + innovation * generator.gauss(0, 1)


def _mapped(asked: DelayVariation, value: float) -> int:
    """A standard normal value mapped to the distribution, in microseconds."""
    scale = asked.standard_deviation or 0
    if asked.distribution == "normal":
        return round(scale * (3 + value))
    above = 0.5 * math.erfc(value / math.sqrt(2))  # probability of exceeding the value
    if asked.distribution == "uniform":
        return round((asked.amplitude or 0) * (1 - above))
    return round(-scale * math.log(max(above, 1e-300)))
