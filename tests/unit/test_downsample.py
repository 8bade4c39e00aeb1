# SPDX-License-Identifier: Apache-2.0
"""Thinning a curve without losing what the eye would see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.report.codec import extremes


def test_short_curves_are_kept_whole() -> None:
    assert extremes(np.arange(7.0), 8).tolist() == list(range(7))


def test_a_single_spike_survives() -> None:
    values = np.zeros(100_000)
    values[54_321], values[54_322] = 7.0, -7.0
    kept = extremes(values, 400)
    assert len(kept) <= 400
    assert {54_321, 54_322} <= set(kept.tolist())


def test_gaps_stay_gaps() -> None:
    values = np.ones(10_000)
    values[4_000:6_000] = np.nan
    kept = extremes(values, 200)
    assert np.isnan(values[kept]).any()


@given(st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=1, max_size=300), st.integers(4, 60))
def test_ends_and_extremes_survive_in_order(values: list[float], points: int) -> None:
    array = np.array(values)
    kept = extremes(array, points)
    assert (kept[0], kept[-1]) == (0, len(values) - 1)
    assert (np.diff(kept) > 0).all()
    known = array[~np.isnan(array)]
    if len(known):
        assert np.nanmin(array[kept]) == known.min()
        assert np.nanmax(array[kept]) == known.max()


def test_fewer_points_than_a_bucket_needs_is_an_error() -> None:
    with pytest.raises(ValueError, match="fewer than 4"):
        extremes(np.arange(10.0), 3)
