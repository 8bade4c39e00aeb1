# SPDX-License-Identifier: Apache-2.0
"""Repetitions taken together: intervals, determinism, and what is shown of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.measure.statistics import FEW, Spread, median_rank, statistic, student_quantile


def test_the_interval_is_students() -> None:
    found = statistic([1.0, 2.0, 3.0])
    assert (found.mean, found.median, found.count) == (2.0, 2.0, 3)
    assert found.half_width == pytest.approx(4.303 / math.sqrt(3), rel=1e-4)
    assert found.interval == pytest.approx((2 - 2.4844, 2 + 2.4844), rel=1e-3)


def test_one_value_has_no_spread_and_is_not_deterministic() -> None:
    found = statistic([2358.0])
    assert found.interval is None
    assert not found.deterministic
    assert found.about_median is None
    assert found.about_mean() is None


@pytest.mark.parametrize("values", [[2358.0] * 3, [0.0, 0.0], [7.0] * 12])
def test_equal_values_are_deterministic_and_have_no_spread(values: list[float]) -> None:
    found = statistic(values)
    assert found.deterministic
    assert found.about_median is None
    assert found.about_mean() is None


@pytest.mark.parametrize("values", [[12.0, 44205.0], [12.0, 44205.0, 4.0], [1.0, 0.0, 5.0, 90.0], [5.0, 4, 3, 2, 1]])
def test_few_repetitions_are_shown_as_themselves(values: list[float]) -> None:
    """Student's interval of the first two would be -280 000 ... 324 000 packets."""
    found = statistic(values)
    for spread in (found.about_median, found.about_mean()):
        assert spread == Spread(min(values), max(values), few=True)


def test_no_interval_of_a_mean_goes_below_what_the_quantity_can_be() -> None:
    found = statistic([0.0] * 9 + [100.0])
    assert found.interval is not None
    assert found.interval[0] < 0
    assert found.about_mean(0.0) == Spread(0.0, found.interval[1], few=False)
    assert found.about_mean() == Spread(*found.interval, few=False)
    assert found.about_median is not None
    assert found.about_median.low == 0.0


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=40))
def test_nothing_that_is_not_negative_is_shown_below_0(values: list[float]) -> None:
    found = statistic(values)
    for spread in (found.about_median, found.about_mean(0.0)):
        assert spread is None or 0 <= spread.low <= spread.high
    if found.about_median is not None:
        assert found.about_median.low <= found.median <= found.about_median.high


@pytest.mark.parametrize("count", range(2, 41))
def test_the_interval_of_a_median_covers_it_with_95_percent_and_no_shorter_one_does(count: int) -> None:
    """Coverage by the binomial distribution: the median lies below the r-th value if fewer than r values are below."""

    def coverage(rank: int) -> float:
        return 1 - 2 * sum(math.comb(count, each) for each in range(rank + 1)) / float(2**count)

    rank = median_rank(count)
    assert coverage(rank) >= 0.95 or count < FEW
    assert coverage(rank + 1) < 0.95


def test_an_even_number_of_values_has_the_mean_of_the_middle_as_median() -> None:
    assert statistic([4.0, 1.0, 3.0, 100.0]).median == 3.5


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.706), (2, 4.303), (30, 2.042), (60, 2.0003), (1000, 1.9623)])
def test_students_quantiles(degrees: int, quantile: float) -> None:
    assert student_quantile(degrees) == pytest.approx(quantile, abs=1e-3)


def test_no_values_have_no_statistic() -> None:
    with pytest.raises(ValueError, match="no values"):
        statistic([])
    with pytest.raises(ValueError, match="two values"):
        student_quantile(0)
