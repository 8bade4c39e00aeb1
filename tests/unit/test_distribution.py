# SPDX-License-Identifier: Apache-2.0
"""Draws against the formulas of their distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from howdah.plan import mix as distribution

_DRAWS = 20_000
# Kolmogorov and Smirnov: with 20 000 draws the largest distance is above this once in ten thousand seeds.
_FARTHEST = 2.23 / math.sqrt(_DRAWS)


@pytest.mark.parametrize(
    ("draw", "share"),
    [
        (lambda r: distribution.exponential(r, 50.0), lambda x: 1 - math.exp(-x / 50)),
        (lambda r: distribution.pareto(r, 3.0, 1.1), lambda x: 1 - (3 / x) ** 1.1),
        (lambda r: distribution.pareto_of_mean(r, 9.0, 1.5), lambda x: 1 - (3 / x) ** 1.5),
        (lambda r: distribution.pareto_second(r, 4.0, 1.2), lambda x: 1 - (1 + x / 0.8) ** -1.2),
    ],
    ids=["exponential", "pareto", "pareto of a mean", "pareto of the second kind"],
)
def test_the_cumulative_distribution(draw: Callable[[Random], float], share: Callable[[float], float]) -> None:
    random = Random(7)
    values = sorted(draw(random) for _ in range(_DRAWS))
    farthest = max(abs(share(value) - (index + 0.5) / _DRAWS) for index, value in enumerate(values))
    assert farthest < _FARTHEST


def test_a_seed_gives_the_same_values() -> None:
    once, again = Random(3), Random(3)
    assert [distribution.exponential(once, 1) for _ in range(5)] == [
        distribution.exponential(again, 1) for _ in range(5)
    ]
