# SPDX-License-Identifier: Apache-2.0
"""A band holds the curve of every repetition, and is none where there is nothing between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from howdah.record.sample import Float64
from howdah.report.axis import axes
from howdah.report.band import Band, Envelope
from howdah.report.figure import page_data
from howdah.report.source import TableSource
from howdah.report.variant import Variants
from howdah.work.results import read_results
from tests.experiment_factory import Scenario, make_experiment

EDGES = np.linspace(0.0, 10.0, 41)


def _of(*curves: tuple[Float64, Float64]) -> Band | None:
    envelope = Envelope(EDGES)
    for x, y in curves:
        envelope.add(x, y)
    return envelope.band()


def _curves(seed: int) -> list[tuple[Float64, Float64]]:
    """Five with points of their own each, more of them than there are cells, and sharp falls."""
    random = np.random.default_rng(seed)
    return [(np.sort(random.uniform(-1, 11, 300)), random.normal(50, 20, 300)) for _ in range(5)]


@pytest.mark.parametrize("seed", range(4))
def test_every_curve_lies_within_the_band_and_each_side_is_touched(seed: int) -> None:
    curves = _curves(seed)
    band = _of(*curves)
    assert band is not None
    assert band.count == 5
    fine = np.linspace(0.0, 10.0, 4001)
    cells = np.minimum(np.searchsorted(EDGES, fine, side="right") - 1, len(EDGES) - 2)
    for x, y in curves:
        on_curve = np.interp(fine, x, y)
        assert (on_curve >= band.low[cells] - 1e-9).all()
        assert (on_curve <= band.high[cells] + 1e-9).all()
    # No wider than the curves are: every limit is a point of one of them, or its value at an edge.
    for side in (band.low, band.high):
        for cell, value in enumerate(side):
            ends = EDGES[cell : cell + 2]
            seen = [np.append(y[(x >= ends[0]) & (x < ends[1])], np.interp(ends, x, y)) for x, y in curves]
            assert np.isclose(np.concatenate(seen), value).any()


def test_where_one_curve_alone_runs_there_is_no_band() -> None:
    x = np.arange(0.0, 11.0)
    band = _of((x, x), (x[:6], x[:6] + 1))
    assert band is not None
    known = ~np.isnan(band.low)
    assert known[EDGES[1:] <= 5.0].all()
    assert not known[EDGES[:-1] >= 5.25].any()


@pytest.mark.parametrize("count", [0, 1, 3])
def test_repetitions_that_are_one_line_have_no_band(count: int) -> None:
    """Though the line itself rises within each cell."""
    x = np.arange(0.0, 11.0)
    assert _of(*[(x, x * 7)] * count) is None


def test_gaps_are_no_values() -> None:
    x = np.arange(0.0, 11.0)
    band = _of((x, np.where(x == 4, np.nan, 1.0)), (x, np.full(11, 2.0)), (x, np.full(11, np.nan)))
    assert band is not None
    assert band.count == 2
    assert (band.low == 1).all()
    assert (band.high == 2).all()


def test_a_page_has_a_band_of_each_line_that_repetitions_tell_apart(tmp_path: Path) -> None:
    scenario = Scenario(name="bands", repetitions=3, invalid=(("reno", 1), ("reno", 2)), duration_s=4.0, flows=1)
    experiment = read_results(make_experiment(tmp_path, scenario), lambda _: None)
    variants = Variants([experiment])
    across = axes([experiment], variants)
    data = page_data([experiment], TableSource(), variants, across)
    cubic = across[0].values.index("cubic")
    found = {(band.at[0], band.series): band for band in data.bands}
    # One repetition of reno counts: it is a line alone.
    assert {at for at, _series in found} == {cubic}
    assert {series for _at, series in found} >= {"cwnd", "goodput", "queue"}
    for band in found.values():
        assert band.count == 3
        assert band.low["count"] == band.high["count"] == band.even[2] - 1
