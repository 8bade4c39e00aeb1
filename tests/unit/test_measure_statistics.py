# SPDX-License-Identifier: Apache-2.0
"""Repetitions taken together, and differences and ratios by their pairs, against numbers computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.measure.statistics import (
    FEW,
    PairedDifference,
    Spread,
    difference,
    median_rank,
    statistic,
    student_quantile,
)


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


def _of(mine: dict[int, float], other: dict[int, float]) -> PairedDifference:
    found = difference(mine, other)
    assert found is not None
    return found


def test_pairs_are_compared_with_each_other_and_not_their_means() -> None:
    found = _of({0: 10.0, 1: 40.0, 2: 90.0}, {2: 100.0, 1: 50.0, 0: 20.0})
    assert (found.mine, found.other) == (40.0, 50.0)
    assert found.differences.values == (-10.0, -10.0, -10.0)
    assert found.ratios is not None
    assert found.ratios.values == (0.5, 0.8, 0.9)
    assert found.side == -1  # though both sides overlap


def test_a_repetition_of_one_side_alone_is_in_no_pair() -> None:
    found = _of({0: 10.0, 5: 1000.0}, {0: 8.0, 7: 1.0})
    assert found.differences.values == (2.0,)
    assert found.is_paired
    assert found.around is None


def test_without_a_common_repetition_the_medians_are_compared() -> None:
    found = _of({0: 10.0, 1: 20.0}, {2: 30.0})
    assert not found.is_paired
    assert found.differences.values == (-15.0,)
    assert found.ratios is not None
    assert found.ratios.values == (0.5,)


def test_the_side_is_open_where_the_spread_has_both() -> None:
    assert _of({0: 9.0, 1: 12.0}, {0: 10.0, 1: 10.0}).side == 0
    assert _of({0: 11.0, 1: 12.0}, {0: 10.0, 1: 10.0}).side == 1


def test_six_pairs_have_the_interval_of_their_median() -> None:
    """Of six, the least and the largest are it; of nine, the second and the last but one (0.039 outside)."""
    nine = _of({number: 100.0 + number for number in range(9)}, dict.fromkeys(range(9), 100.0))
    about = nine.differences.about_median
    assert about is not None
    assert (about.low, about.high, about.few) == (1.0, 7.0, False)


@pytest.mark.parametrize(("mine", "other", "ratios"), [(0.0, 0.0, (1.0,)), (3.0, 0.0, None), (0.0, 3.0, None)])
def test_a_ratio_to_nothing_does_not_exist(mine: float, other: float, ratios: tuple[float, ...] | None) -> None:
    found = _of({0: mine}, {0: other})
    assert (found.ratios.values if found.ratios else None) == ratios
    assert found.differences.values == (mine - other,)


def test_equal_numbers_have_no_larger_side() -> None:
    found = _of({0: 5.0, 1: 6.0}, {0: 5.0, 1: 6.001})
    assert found.is_alike
    assert found.side == 0


def test_a_side_without_numbers_has_no_difference() -> None:
    assert difference({}, {0: 1.0}) is None


@pytest.mark.parametrize(("mine", "other"), [(1650.0, -472.8), (-5.0, -10.0), (-3.0, 3.0), (-3.0, 0.0)])
def test_a_number_below_zero_is_no_multiple_of_another(mine: float, other: float) -> None:
    """An overshoot is negative where a flow stayed below what the path holds."""
    found = difference({0: mine, 1: mine}, {0: other, 1: other})
    assert found is not None
    assert found.ratios is None
    assert found.differences.median == mine - other
    assert found.side == (1 if mine > other else -1)
    assert not found.is_alike


def test_equal_numbers_below_zero_are_alike() -> None:
    found = difference({0: -5.0, 1: -6.0}, {0: -5.0, 1: -6.0})
    assert found is not None
    assert found.ratios is None
    assert found.is_alike
    assert found.side == 0
