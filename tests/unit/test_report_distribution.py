# SPDX-License-Identifier: Apache-2.0
"""Distributions over the connections of a group, as a report draws them."""

from __future__ import annotations

import re

from howdah.report.distribution import Distribution, distribution_drawing

LEFT = 34.4  # of the plot, in pixels: "100" stands beside it


def _points(drawing: str) -> list[tuple[float, float]]:
    """Corners of the first curve at which it has risen."""
    path = re.search(r'<path d="([^"]+)" class="curve variant-0"', drawing)
    assert path
    return [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", path.group(1))]


def test_each_connection_is_a_step() -> None:
    shown = Distribution("", "web", "completion time (s)", False, [(0, "cubic", [1.0, 1.0, 2.0, 4.0])])
    points = _points(distribution_drawing(shown, narrow=False))
    assert [y for _, y in points] == [178, 128, 78, 28]  # 25, 50, 75 and 100 % of 200 pixels
    x = [x - LEFT for x, _ in points]
    assert x[0] == x[1]
    assert abs(x[2] / x[0] - 2) < 0.01
    assert abs(x[3] / x[0] - 4) < 0.01


def test_thousands_of_connections_are_thinned_and_end_at_the_top() -> None:
    values = [0.01 * number for number in range(1, 5001)]
    points = _points(distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", values)]), narrow=True))
    assert 500 <= len(points) <= 520
    assert points[-1][1] == 28
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)


def test_equal_values_and_a_title() -> None:
    drawing = distribution_drawing(Distribution("", "a", "s", True, [(0, "<x>", [0.5] * 9)]), narrow=False)
    assert "&lt;x&gt;: 9 connections, median 0.5" in drawing


def test_less_than_a_decade_has_a_linear_axis_and_a_logarithmic_one_says_so() -> None:
    """0.4 to 0.8 on a logarithmic axis would have 0.39, 0.43, 0.48 … at equal distances, and nothing to tell why."""
    near = distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", [0.4, 0.8])]), narrow=False)
    x = [x - LEFT for x, _ in _points(near)]
    assert abs(x[1] / x[0] - 2) < 0.01
    assert "logarithmic" not in near
    far = distribution_drawing(Distribution("", "a", "s", True, [(0, "cubic", [0.4, 40.0])]), narrow=False)
    assert "s, logarithmic" in far
