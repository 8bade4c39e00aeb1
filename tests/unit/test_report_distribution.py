# SPDX-License-Identifier: Apache-2.0
"""Distributions over the connections of a group, as a report draws them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.record.metrics import MetricRow
from howdah.record.result import Experiment, load_experiment
from howdah.report.distribution import Distribution, distribution_drawing, distributions
from howdah.report.variant import Colour, Variant, Variants
from tests.experiment_factory import Scenario, make_experiment

OF_ONE = Variants([])
OF_ONE.all.append(Variant("cubic", "cubic", "cubic", Colour("#000000", "#ffffff")))
LEFT = 34.4  # of the plot, in pixels: "100" stands beside it


def _points(drawing: str) -> list[tuple[float, float]]:
    """Corners of the first curve at which it has risen."""
    path = re.search(r'<path d="([^"]+)" class="curve"', drawing)
    assert path
    return [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path.group(1))]


def test_each_connection_is_a_step() -> None:
    shown = Distribution("", "web", "completion time (s)", False, [(0, "cubic", [1.0, 1.0, 2.0, 4.0])])
    points = _points(distribution_drawing(shown, OF_ONE, narrow=False))
    assert [y for _, y in points] == [178, 128, 78, 28]  # 25, 50, 75 and 100 % of 200 pixels
    x = [x - LEFT for x, _ in points]
    assert x[0] == x[1]
    assert abs(x[2] / x[0] - 2) < 0.01
    assert abs(x[3] / x[0] - 4) < 0.01


def test_thousands_of_connections_are_thinned_and_end_at_the_top() -> None:
    values = [0.01 * number for number in range(1, 5001)]
    points = _points(
        distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", values)]), OF_ONE, narrow=True)
    )
    assert 500 <= len(points) <= 520
    assert points[-1][1] == 28
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_equal_values_and_a_title() -> None:
    drawing = distribution_drawing(Distribution("", "a", "s", True, [(0, "<x>", [0.5] * 9)]), OF_ONE, narrow=False)
    assert "&lt;x&gt;: 9 connections, median 0.5" in drawing


def test_less_than_a_decade_has_a_linear_axis_and_a_logarithmic_one_says_so() -> None:
    """0.4 to 0.8 on a logarithmic axis would have 0.39, 0.43, 0.48 … at equal distances, and nothing to tell why."""
    near = distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", [0.4, 0.8])]), OF_ONE, narrow=False)
    x = [x - LEFT for x, _ in _points(near)]
    assert abs(x[1] / x[0] - 2) < 0.01
    assert "logarithmic" not in near
    far = distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", [0.4, 40.0])]), OF_ONE, narrow=False)
    assert "s, logarithmic" in far


def _sized(tmp_path: Path, repetitions: int) -> Experiment:
    axes = ({"path.rate": 20_000_000}, {"path.rate": 40_000_000})
    scenario = Scenario(
        name="sized", algorithms=("cubic",), repetitions=repetitions, flows=1, duration_s=2.0, axes=axes
    )

    experiment = load_experiment(make_experiment(tmp_path, scenario))
    runs = []
    for run in experiment.runs:
        assert run.plan is not None
        flows = [replace(flow, size_bytes=1_000_000) for flow in run.plan.flows]
        value = (0.5 if run.axes["path.rate"] == axes[0]["path.rate"] else 0.1) + 0.01 * run.repetition
        row = MetricRow(flows[0].id, "completion_time_s", value, "s")
        runs.append(replace(run, plan=replace(run.plan, flows=flows), metrics=[*run.metrics, row]))
    return replace(experiment, runs=runs)


def test_repeated_transfers_of_a_flow_have_a_distribution_and_one_axis(tmp_path: Path) -> None:
    experiment = _sized(tmp_path, 5)
    slow, fast = distributions([experiment], Variants([experiment]))
    assert (slow.counted, slow.words) == ("transfers", "completion time (s)")
    assert slow.curves[0][2] == pytest.approx([0.5, 0.51, 0.52, 0.53, 0.54])
    assert slow.ends == fast.ends == pytest.approx((0.1, 0.54))
    few = _sized(tmp_path / "few", 4)
    assert distributions([few], Variants([few])) == []
