# SPDX-License-Identifier: Apache-2.0
"""Intervals of differences and ratios, and rank correlation: known answers, and what must hold of any samples."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from howdah.claim.comparison import (
    Interval,
    extremes,
    paired_difference,
    ratio_of_means,
    spearman,
    welch_difference,
)
from howdah.claim.expectation import compare
from howdah.claim.judging import axis_order
from howdah.claim.sample import Sample
from howdah.measure.statistics import statistic

NUMBERS = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False).map(lambda value: round(value, 3))
SAMPLES = st.lists(NUMBERS, min_size=2, max_size=12)
POSITIVE = st.lists(st.floats(min_value=0.5, max_value=1e4).map(lambda value: round(value, 3)), min_size=3, max_size=12)


def ends(found: Interval) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def test_paired_difference_is_that_of_the_differences() -> None:
    """Differences 1, 2, 3: mean 2, s = 1, t(2) = 4.303."""
    found = paired_difference([(11, 10), (102, 100), (1003, 1000)])
    assert found.value == 2
    assert ends(found) == pytest.approx((2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3)))


def test_welch_by_hand() -> None:
    """s² = 1 of n = 3 and s² = 4 of n = 3: variance 5/3; f = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.94, so t(2)."""
    found = welch_difference([9, 10, 11], [4, 6, 8])
    assert found.value == 4
    half = 4.303 * math.sqrt(5 / 3)
    assert ends(found) == pytest.approx((4 - half, 4 + half))


def test_fieller_by_hand() -> None:
    """a = 10, b = 5, both with variance of the mean 1/3, not paired; g = t²/75."""
    found = ratio_of_means([9, 10, 11], [4, 5, 6], paired=False)
    assert found.value == 2
    # f = (1/3 + 4/3)² / ((1/3)²/2 + (4/3)²/2) = 2.94: two degrees of freedom.
    t2 = 4.303**2
    for end in ends(found):
        assert (10 - end * 5) ** 2 == pytest.approx(t2 * (1 / 3 + end * end / 3))
    assert ends(found)[0] < 2 < ends(found)[1]


def test_a_ratio_to_what_may_be_zero_has_no_interval() -> None:
    found = ratio_of_means([9, 10, 11], [-1, 0, 2], paired=False)
    assert found.value == pytest.approx(30)
    assert (found.low, found.high) == (None, None)


def test_nothing_varies_no_interval() -> None:
    assert paired_difference([(3, 2), (3, 2)]) == Interval(1)
    assert welch_difference([3, 3], [2, 2]) == Interval(1)
    assert welch_difference([3], [2, 4]) == Interval(0)
    assert ratio_of_means([4, 4], [2, 2], paired=True) == Interval(2)
    assert ratio_of_means([4, 8], [2, 4], paired=True) == Interval(2)  # in proportion: no spread of the ratio


@pytest.mark.parametrize(
    ("first", "second", "half"),
    [
        # Both variances of the mean are 1/3: f = (2/3)² / (2 (1/3)² / 2) = 4, and t(4) = 2.776.
        ([9, 10, 11], [4, 5, 6], 2.776 * math.sqrt(2 / 3)),
        # 1 and 1/4: f = 1.25² / (1 + 1/16) = 1.47, rounded down: t(1) = 12.706.
        ([3, 5], [1, 2], 12.706 * math.sqrt(1.25)),
        ([3, 5], [1, 1], 12.706),  # 1 and 0: f = 1
        ([3, 5, 4], [1, 1], 4.303 * math.sqrt(1 / 3)),  # 1/3 and 0: f = 2
        # Squares that are too small for a float: the degrees of the smaller sample, t(2).
        ([1e-85, 2e-85, 3e-85], [4e-85] * 4, 4.303e-85 * math.sqrt(1 / 3)),
    ],
)
def test_welch_at_the_edges(first: list[float], second: list[float], half: float) -> None:
    found = welch_difference(first, second)
    low, high = ends(found)
    assert ((high - low) / 2 / half, (high + low) / 2 / found.value) == pytest.approx((1, 1))


@pytest.mark.parametrize("paired", [True, False])
def test_the_ends_of_a_ratio_solve_its_equation(paired: bool) -> None:
    """Means 10 and 5; variances of the mean 1 / 3 and (1 + 0.25 + 0.25) / 2 / 3 = 0.25; covariance of the means of
    the pairs ((-1)(-1) + 0 + 1 · 0.5) / 2 / 3 = 0.25. Satterthwaite's f of 1/3 and 2² · 0.25 is
    (4/3)² / ((1/9 + 1) / 2) = 3.2: t(3); of pairs it is 2."""
    found = ratio_of_means([9, 10, 11], [4, 5.5, 5.5], paired=paired)
    t, covariance = (4.303, 0.25) if paired else (3.182, 0.0)
    assert found.value == 2
    for end in ends(found):
        variance = 1 / 3 + end * end / 4 - 2 * end * covariance
        assert (10 - 5 * end) ** 2 == pytest.approx(t * t * variance)
    assert ends(found)[0] < 2 < ends(found)[1]


def test_two_pairs_have_a_ratio_with_an_interval() -> None:
    """(a - r b)² = t(1)² (1 + r²/4 - 2 r · 1/2) of the means 100 and 20.5."""
    found = ratio_of_means([99, 101], [20, 21], paired=True)
    for end in ends(found):
        assert (100 - 20.5 * end) ** 2 == pytest.approx(12.706**2 * (1 - end / 2) ** 2)
    assert ratio_of_means([6], [2, 4], paired=False) == Interval(2)
    assert ratio_of_means([6, 9], [2], paired=False) == Interval(3.75)


def test_differences_are_the_same_where_rounding_alone_tells_them_apart() -> None:
    assert paired_difference([(0.3, 0.2), (0.8, 0.7)]).low is None  # 0.1 less and more than 1e-16
    assert paired_difference([(-0.2, -0.3), (-0.7, -0.8)]).low is None
    assert paired_difference([(1.0, 0.0), (1.0 + 1e-11, 0.0)]).low is not None
    assert paired_difference([(0.0, 1e3), (1e-8, 1e3)]).low is not None
    assert paired_difference([(0.0, 1e3), (1e-10, 1e3)]).low is None


@given(SAMPLES, SAMPLES)
def test_exchanging_the_sides_turns_the_difference_round(first: list[float], second: list[float]) -> None:
    one, other = welch_difference(first, second), welch_difference(second, first)
    assert one.value == pytest.approx(-other.value)
    assert (one.low is None) == (other.low is None)
    if one.low is not None and other.high is not None:
        assert one.low == pytest.approx(-other.high)
        assert one.low <= one.value <= ends(one)[1]


@given(SAMPLES, st.floats(min_value=-1e3, max_value=1e3), st.randoms(use_true_random=False))
def test_a_shift_of_both_sides_changes_no_paired_difference(
    values: list[float], shift: float, generator: random.Random
) -> None:
    pairs = [(value, generator.uniform(-10, 10)) for value in values]
    found, moved = paired_difference(pairs), paired_difference([(a + shift, b + shift) for a, b in pairs])
    assert moved.value == pytest.approx(found.value, abs=1e-6)
    if found.low is not None and moved.low is not None:
        assert moved.low == pytest.approx(found.low, abs=1e-6)


@given(POSITIVE, st.floats(min_value=0.1, max_value=100))
def test_a_ratio_scales_with_its_numerator(values: list[float], scale: float) -> None:
    second = [value + 1 + index % 3 for index, value in enumerate(values)]
    found = ratio_of_means(values, second, paired=True)
    scaled = ratio_of_means([value * scale for value in values], second, paired=True)
    assert scaled.value == pytest.approx(found.value * scale)
    assume(found.low is not None and scaled.low is not None)
    assert ends(scaled) == pytest.approx(tuple(end * scale for end in ends(found)), rel=1e-6, abs=1e-9)
    assert ends(found)[0] <= found.value + 1e-9
    assert ends(found)[1] >= found.value - 1e-9


def test_intervals_hold_the_truth_about_19_times_in_20() -> None:
    """1000 draws of normal samples: an interval that is too narrow, or a formula that is wrong, misses more often."""
    generator = random.Random(7)
    hits = {"welch": 0, "fieller": 0, "pairs": 0}
    for _ in range(1000):
        first = [generator.gauss(20, 2) for _ in range(8)]
        second = [generator.gauss(10, 1) for _ in range(5)]
        noise = [generator.gauss(0, 50) for _ in range(8)]
        pairs = [(a + each, each + generator.gauss(10, 1)) for a, each in zip(first, noise, strict=True)]
        low, high = ends(welch_difference(first, second))
        hits["welch"] += low <= 10 <= high
        low, high = ends(ratio_of_means(first, second, paired=False))
        hits["fieller"] += low <= 2 <= high
        low, high = ends(paired_difference(pairs))
        hits["pairs"] += low <= 10 <= high
    for name, count in hits.items():
        assert 930 <= count <= 980, name


def test_spearman() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3], [2, 1, 3]) == pytest.approx(0.5)
    assert spearman([1, 2, 3, 4], [1, 2, 2, 3]) == pytest.approx(3 * math.sqrt(0.1))  # the tie shares rank 2.5
    assert spearman([1, 2, 3], [5, 5, 5]) is None
    assert spearman([1], [1]) is None
    assert spearman([], []) is None


@given(st.lists(NUMBERS, min_size=2, max_size=10, unique=True), st.randoms(use_true_random=False))
def test_ranks_alone_count(values: list[float], generator: random.Random) -> None:
    other = [float(rank) for rank in range(len(values))]
    generator.shuffle(other)
    found = spearman(values, other)
    assert found is not None
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    assert spearman([value**3 for value in sorted(values)], sorted(other)) == pytest.approx(1)


@pytest.mark.parametrize(
    "values",
    [
        ["20 ms", "100 ms", "1 s"],
        ["500 kbit/s", "1 Mbit/s", "1 Gbit/s"],
        ["64 kB", "1 MB", "2 MiB"],
        ["0.25 bdp", "0.5 bdp", "10 bdp"],
        ["9 packets", "10 packets", "100 packets"],
        ["0.1 %", "0.5 %", "10 %"],
        ["2", "10", "100"],
        ["zeta", "alpha", "mu"],  # words: in the order of the profile
        ["10 bdp", "5 packets", "1 bdp"],  # no two of one kind
    ],
)
def test_axes_are_ordered_by_size(values: list[str]) -> None:
    order = axis_order(values)
    backwards = values[::-1]
    assert sorted(backwards, key=order) == values


def test_no_value_lies_further_out_than_the_extremes() -> None:
    values = [0.0] * 9 + [10.0]  # the furthest that one of ten can be
    found = statistic(values)
    assert found.half_width is not None
    least, largest = extremes(found.mean, found.half_width, 10)
    assert largest == pytest.approx(10)
    assert least == pytest.approx(-8), "s = √10 = 3.162, and 9 s / √10 to both sides of 1"


@pytest.mark.parametrize(
    ("value", "than", "paired", "difference"),
    [
        ({1: 5.0}, {1: 2.0}, True, 3),
        ({1: 5.0}, {2: 2.0}, False, 3),  # one each, but not of one repetition
        ({1: 5.0, 2: 7.0}, {1: 2.0, 3: 4.0}, False, 3),  # one in common is no sample: all four count
        ({1: 5.0, 2: 7.0, 3: 99.0}, {1: 2.0, 2: 5.0}, True, 2.5),
    ],
)
def test_pairs_are_of_the_same_repetition(
    value: dict[int, float | str], than: dict[int, float | str], paired: bool, difference: float
) -> None:
    found = compare(Sample(values=value), Sample(values=than))
    assert found.paired is paired
    assert found.difference.value == pytest.approx(difference)
