# SPDX-License-Identifier: Apache-2.0
"""Columns survive coding to within half a step, and stay small."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from howdah.report.codec import decode, encode, encode_integers, scale_of


@given(st.lists(st.integers(-(2**50), 2**50)))
def test_integers_are_exact(values: list[int]) -> None:
    assert decode(encode_integers(np.array(values, dtype=np.int64))).tolist() == values


@given(st.lists(st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=1))
def test_values_are_within_half_a_step_and_gaps_stay(values: list[float]) -> None:
    array = np.array(values)
    scale = scale_of(array)
    found = decode(encode(array, scale))
    assert np.isnan(found).tolist() == np.isnan(array).tolist()
    known = ~np.isnan(array)
    assert (np.abs(found[known] - array[known]) <= 0.5000001 * scale).all()


def test_the_step_keeps_four_digits_of_the_largest_value() -> None:
    assert scale_of(np.array([0.0, 382.6])) == 0.01
    assert scale_of(np.array([np.nan, 0.0])) == 1.0
    assert scale_of(np.array([12_000_000.0]), levels=4000) == 2000


def test_a_window_trace_takes_less_than_two_characters_a_point() -> None:
    window = np.repeat(np.arange(10, 3000), 3).astype(np.float64)
    assert len(encode(window, 1.0)["data"]) < 2 * len(window)


def test_infinity_is_no_value() -> None:
    assert np.isnan(decode(encode(np.array([np.inf, 1.0]), 1.0))).tolist() == [True, False]
