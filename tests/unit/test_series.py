# SPDX-License-Identifier: Apache-2.0
"""One table of what is drawn against time: reports, figures of profiles, live page and dashboard have it in common."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from howdah.profile.figure import SeriesName
from howdah.publish.board import panels
from howdah.publish.metric import SERIES
from howdah.record.sample import Series
from howdah.report.drawn import FIGURES
from howdah.report.source import curve_of
from howdah.series import drawn_series, series_of


def test_profiles_may_draw_what_the_table_says() -> None:
    assert set(get_args(SeriesName)) == {each.id for each in series_of("profile")}


def test_figures_of_a_report_draw_series_of_one_unit() -> None:
    of_reports = {each.id: each for each in series_of("report")}
    for figure in FIGURES:
        if figure.parts is not None:  # of positions in a flow's data (howdah/report/sequence.py), which nobody scrapes
            continue
        assert {of_reports[name].unit for name in figure.series} == {figure.unit}, figure.id
        assert {of_reports[name].is_per_run for name in figure.series} == {figure.whole}


def test_panels_take_title_unit_and_query_from_the_table() -> None:
    of_live = {each.title: each for each in series_of("live")}
    drawn = [panel for panel in panels() if panel.title in of_live]
    assert len(drawn) == len(of_live) > 0
    for panel in drawn:
        row = of_live[panel.title]
        assert (panel.unit, panel.query) == (row.unit, row.promql)


def test_every_series_is_of_a_metric_that_is_published() -> None:
    published = {metric.name: metric for metric in SERIES}
    for each in drawn_series().values():
        assert "role" in published[each.metric].labels, each.id
        assert each.rate <= (published[each.metric].kind == "counter"), each.id


@pytest.mark.parametrize(
    ("name", "query", "last"),
    [
        ("cwnd", 'howdah_flow_cwnd_packets{$run, role="sender"}', 3000.0),
        ("rtt", 'howdah_flow_srtt_seconds{$run, role="sender"} * 1000', 3_000_000.0),
        ("queue", 'howdah_queue_backlog_bytes{$run, role="bottleneck"} / 1000', 3.0),
        # 3000 - 1000 bytes in 200 ms.
        ("goodput", 'rate(howdah_flow_delivered_bytes_total{$run, role="receiver"}[$window]) * 8 / 1000000', 0.08),
    ],
)
def test_a_query_and_the_curve_without_a_server_are_the_same(name: str, query: str, last: float) -> None:
    each = drawn_series()[name]
    assert each.promql == query
    recorded = Series(each.metric, (("role", each.role),), np.array([0, 100, 200, 300]), np.array([0.0, 1e3, 1e3, 3e3]))
    assert curve_of(each, recorded, 200).value[-1] == pytest.approx(last)
