# SPDX-License-Identifier: Apache-2.0
"""The distributions of traffic models, each drawn by inverting its cumulative distribution function.

``random.Random.random`` is the only source of chance, so that a seed gives the same values with every Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from statistics import NormalDist

ON_OFF_SHAPE = 1.5  # Pareto on and off times: the mean is finite, the variance is not


def exponential(draw: Random, mean: float) -> float:
    """F(x) = 1 - exp(-x / mean)."""
    return -mean * math.log1p(-draw.random())


def pareto(draw: Random, least: float, shape: float) -> float:
    """F(x) = 1 - (least / x)^shape for x >= least; the mean is least x shape / (shape - 1) for a shape above 1."""
    return float(least * (1 - draw.random()) ** (-1 / shape))


def pareto_of_mean(draw: Random, mean: float, shape: float) -> float:
    """The same, by its mean; the shape must be above 1."""
    return pareto(draw, mean * (shape - 1) / shape, shape)


def pareto_second(draw: Random, mean: float, shape: float) -> float:
    """Pareto's second kind (Lomax): F(x) = 1 - (1 + x / scale)^-shape with scale = mean x (shape - 1), from 0."""
    return float(mean * (shape - 1) * ((1 - draw.random()) ** (-1 / shape) - 1))


def lognormal(draw: Random, mu: float, sigma: float) -> float:
    """exp(mu + sigma z) with z standard normal."""
    share = draw.random()
    while share == 0:
        share = draw.random()
    return math.exp(mu + sigma * NormalDist().inv_cdf(share))


LAWS: dict[str, Callable[[Random, float], float]] = {
    "constant": lambda _draw, mean: mean,
    "exponential": exponential,
    "pareto": lambda draw, mean: pareto_of_mean(draw, mean, ON_OFF_SHAPE),
}
