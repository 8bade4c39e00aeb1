# SPDX-License-Identifier: Apache-2.0
"""Differences and ratios by pairs of repetitions, against numbers computed by hand."""

from __future__ import annotations

import pytest

from howdah.measure.statistics import PairedDifference, difference


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
