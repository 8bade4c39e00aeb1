# SPDX-License-Identifier: Apache-2.0
"""Delay that varies during a run: a seeded series of added delays, or a table from which each packet draws.

netem's own jitter draws every packet's delay independently; if packets stay in order, they leave at the running maximum
of the draws, which shifts the mean and hides the distribution. Here the delay is piecewise constant instead: every
interval it takes the next value of a stationary series. Where it falls, netem's rate option makes each packet leave
after the one before (net/sched/sch_netem.c, netem_enqueue: with a rate, the last packet queued is the reference).

The series is a Gaussian AR(1) process x_k, x_{k+1} = phi x_k + sqrt(1 - phi^2) e_k, phi = exp(-interval/correlation
time), mapped through its own distribution function to the requested distribution (a Gaussian copula). The marginal
distribution is therefore exact and the correlation of x decays as requested.

If packets may overtake, netem draws from a table of equally likely quantiles (TCA_NETEM_DELAY_DIST, tabledist() of
net/sched/sch_netem.c). netem's 16-bit entries are fractions of a standard deviation; here, of the largest delay.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

from howdah.plan.jitter import DISTRIBUTION_SCALE, LARGEST_DRAW
from howdah.profile.path import DelayVariation

_TABLE_SIZE = 1024
_PARETO_SHAPE = 3  # as in iproute2's table
_PARETO_SCALE = 2 / math.sqrt(3)  # in standard deviations


@dataclass(frozen=True)
class DelaySeries:
    """``added_us[k]`` is the delay added from k intervals after the epoch on; never negative, at most the limit."""

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


@dataclass(frozen=True)
class DelayTable:
    """The table from which each packet of a line draws, in units of ``scale_us`` / 8192, sorted."""

    scale_us: int
    table: list[int]

    @property
    def delays_us(self) -> list[float]:
        return [self.scale_us * each / DISTRIBUTION_SCALE for each in self.table]


def draw_series(
    variation: DelayVariation, duration_us: int, seed: int, measured_us: list[int] | None = None
) -> DelaySeries:
    """Draw the series of one direction for ``duration_us``; ``measured_us`` are the sorted delays of the profile's
    file."""
    values = normals(variation.interval, variation.correlation_time or 0, random.Random(seed))
    count = -(-duration_us // variation.interval)
    return DelaySeries(
        variation.interval,
        [_added_delay_us(variation, value, measured_us) for value in itertools.islice(values, count)],
    )


def delay_table(variation: DelayVariation, measured_us: list[int] | None) -> DelayTable:
    """Return the quantiles of the distribution as a table."""
    shares = ((number + 0.5) / _TABLE_SIZE for number in range(_TABLE_SIZE))
    delays = sorted(_added_delay_us(variation, NormalDist().inv_cdf(share), measured_us) for share in shares)
    scale_us = max(-(-delays[-1] * DISTRIBUTION_SCALE // LARGEST_DRAW), 1)
    return DelayTable(scale_us, [round(each * DISTRIBUTION_SCALE / scale_us) for each in delays])


def _added_delay_us(variation: DelayVariation, value: float, measured_us: list[int] | None) -> int:
    """Map a standard normal value to an added delay within the limit."""
    if measured_us is not None:
        share = 0.5 * math.erfc(-value / math.sqrt(2))
        added = measured_us[min(int(share * len(measured_us)), len(measured_us) - 1)]
        return added if variation.limit is None else min(added, variation.limit)
    return min(max(_mapped(variation, value), 0), variation.limit_us)


def normals(interval_us: int, correlation_time_us: int, generator: random.Random) -> Iterator[float]:
    """Yield endless standard normal values, one per interval; correlation falls to 1/e in the correlation time."""
    phi = math.exp(-interval_us / correlation_time_us) if correlation_time_us else 0.0
    innovation = math.sqrt(1 - phi * phi)
    value = generator.gauss(0, 1)
    while True:
        yield value
        value = phi * value + innovation * generator.gauss(0, 1)


def _mapped(variation: DelayVariation, value: float) -> int:
    """Map a standard normal value to the distribution, in microseconds."""
    scale = variation.standard_deviation or 0
    if variation.distribution == "normal":
        return round(scale * (3 + value))
    above = 0.5 * math.erfc(value / math.sqrt(2))  # probability that a value is larger
    if variation.distribution == "uniform":
        return round((variation.amplitude or 0) * (1 - above))
    if variation.distribution == "pareto":
        return round(_PARETO_SCALE * scale * (math.pow(max(above, 1e-300), -1 / _PARETO_SHAPE) - 1))
    return round(-scale * math.log(max(above, 1e-300)))
