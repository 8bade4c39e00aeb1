# SPDX-License-Identifier: Apache-2.0
"""Curves and distributions as plain values, and drawn again: shapes, texts and medians stay, points are thinned."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from howdah.place import PROFILES
from howdah.profile import load
from howdah.profile.figure import FigureSection
from howdah.record.result import Experiment, load_experiment
from howdah.report.plot import draw
from howdah.report.plot.draw import title_of
from howdah.report.plot.kept import compact_figure
from howdah.report.plot.stored import StoredExperiment, StoredPoint, points_of
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.completed_run import add_connections

SOURCE = "Drawn from what is stored."
SCENARIO = Scenario(algorithms=("cubic", "reno"), repetitions=2, flows=2, duration_s=2.0, second_flow_s=0.5)


def _figure(**fields: Any) -> FigureSection:
    return FigureSection.model_validate({"id": "f", "title": "A title", **fields})


def _stored(figure: FigureSection, experiment: Experiment) -> StoredExperiment:
    """Through JSON, as it is published."""
    kept = json.loads(json.dumps(compact_figure(figure, experiment)))
    runs = [StoredPoint(run.name, run.algorithm, dict(run.axes), single=False) for run in experiment.runs]
    return StoredExperiment(runs, {figure.id: kept}, SOURCE)


def _words(html: str) -> list[str]:
    """All text of a figure but for the sentence on its source, and how its curves look."""
    root = ElementTree.fromstring(html.replace(f" {SOURCE}", "").replace("&nbsp;", " "))
    texts = [each.text or "" for each in root.iter()]
    return [
        *texts,
        *(f"{each.get('class')} {each.get('style')} {each.get('stroke-dasharray')}" for each in root.iter()),
    ]


def _curves(html: str) -> list[list[tuple[float, float]]]:
    """Points of the curves of the first drawing."""
    svg = html[html.index('<svg class="drawing') : html.index("</svg>", html.index('<svg class="drawing'))]
    paths = re.findall(r'd="([^"]*)" class="curve', svg)
    return [[(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)] for path in paths]


@pytest.mark.parametrize(
    "fields",
    [
        {"series": ["cwnd", "ssthresh", "queue"]},
        {"series": ["goodput"], "panels": "algorithm"},
        {"series": ["cwnd"], "window": ["0.5 s", "1.5 s"], "log": "y"},
    ],
)
def test_curves_against_time_are_drawn_again(tmp_path: Path, fields: dict[str, Any]) -> None:
    figure, experiment = _figure(kind="time", **fields), load_experiment(make_experiment(tmp_path, SCENARIO))
    of_runs, again = draw(figure, experiment), draw(figure, _stored(figure, experiment))
    assert SOURCE in again
    assert _words(again) == _words(of_runs)
    assert len(_curves(again)) == len(_curves(of_runs)) > 1
    for own, first in zip(_curves(again), _curves(of_runs), strict=True):
        # Both ends, and the height of what lies between.
        assert own[0] == pytest.approx(first[0], abs=0.15)
        assert own[-1] == pytest.approx(first[-1], abs=0.15)
        for pick in (min, max):
            assert pick(y for _, y in own) == pytest.approx(pick(y for _, y in first), abs=0.15)


def test_long_curves_are_thinned_and_keep_their_extremes(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, duration_s=60.0)
    figure, experiment = _figure(kind="time", series=["cwnd"]), load_experiment(make_experiment(tmp_path, scenario))
    (curve,) = compact_figure(figure, experiment)["curves"]
    steps, values = curve[-2:]
    assert len(steps) == len(values) <= 400
    of_runs, again = draw(figure, experiment), draw(figure, _stored(figure, experiment))
    assert _words(again) == _words(of_runs), "the description names the greatest value"
    assert sum(steps) == pytest.approx(60_000, rel=0.02)


def _grouped(directory: Path, values: list[float | None]) -> Experiment:
    return load_experiment(add_connections(make_experiment(directory, SCENARIO), values))


def test_a_distribution_is_drawn_again(tmp_path: Path) -> None:
    experiment = _grouped(tmp_path, [0.1, 0.2, 0.4, None])
    figure = _figure(kind="cdf", metric="completion_time_s")
    again = draw(figure, _stored(figure, experiment))
    assert again.replace(f" {SOURCE}", "") == draw(figure, experiment)


def test_a_distribution_of_many_keeps_its_number_its_median_and_its_ends(tmp_path: Path) -> None:
    values: list[float | None] = [0.001 * number**2 for number in range(1, 331)]
    experiment = _grouped(tmp_path, [*values, None, None])
    figure = _figure(kind="cdf", metric="completion_time_s", log="x")
    stored = _stored(figure, experiment)
    assert [len(curve[-1]) for curve in stored.figures["f"]["curves"]] == [200, 200]
    of_runs, again = draw(figure, experiment), draw(figure, stored)
    assert "660 connections, median 27.56 s" in of_runs
    assert _words(again) == _words(of_runs)
    for own, first in zip(
        *(re.findall(r'd="(M[^"]*V[^"]*)" class="curve"', html) for html in (again, of_runs)), strict=True
    ):
        one, other = ([float(y) for y in re.findall(r"V([\d.]+)", path)] for path in (own, first))
        assert one[-1] == pytest.approx(other[-1], abs=0.15), "the share that has a value"


def test_what_is_not_told_is_not_drawn(tmp_path: Path) -> None:
    experiment = load_experiment(make_experiment(tmp_path, SCENARIO))
    for fields in ({"kind": "time", "series": ["cwnd"]}, {"kind": "cdf", "metric": "completion_time_s"}):
        stored = StoredExperiment([StoredPoint(run.name, run.algorithm, {}, single=False) for run in experiment.runs])
        assert "no points of it are published" in draw(_figure(**fields), stored)


def test_a_title_of_which_nothing_is_stored_has_the_times_of_the_profile() -> None:
    """``in the first {duration}`` would else say "in the first the run"."""
    profile = load(PROFILES / "atlas" / "adaptive-start-table2.yaml")
    figure = next(each for each in profile.figures if "{duration}" in each.title)
    title = title_of(figure, StoredExperiment(points_of(profile)))
    assert re.search(r"in the first \d+ s ", title)
    assert "{" not in title
