# SPDX-License-Identifier: Apache-2.0
"""The first screen of a report in a browser: the answer and the runs behind it; labels that lie on nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.report.build import report
from tests.browser.conftest import Open
from tests.browser.test_report import figure
from tests.experiment_factory import Scenario, make_experiment

pytestmark = pytest.mark.browser


def test_a_dot_opens_the_curves_of_its_run(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    link = page.locator("#answer svg.wide a[data-run]").last
    name = link.get_attribute("data-run")
    link.click()
    shown = page.evaluate("howdah.state.runs().map((run) => run.name)")
    assert name in shown
    assert page.evaluate("location.hash") == "#figures"


def test_the_answer_is_on_the_first_screen(visit: Open, report_page: Path) -> None:
    page = visit(report_page, height=900).page
    box = page.locator("#answer svg.wide").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    order = page.evaluate("[...document.querySelectorAll('main > section')].map((each) => each.id)")
    assert order[0] == "answer"
    assert order[-1] == "provenance"


@pytest.mark.parametrize("width", [1440, 390])
def test_labels_of_exits_lie_beside_curves_and_marks(visit: Open, report_page: Path, width: int) -> None:
    page = visit(report_page, width=width).page
    found = page.evaluate(
        f"""() => {{
          const drawn = {figure("cwnd")};
          const boxes = drawn.marksNow().exits.map((each) => ({{
            left: each.at.x, right: each.at.x + howdah.marks.widthOf(each.label),
            top: each.at.y - 10, bottom: each.at.y + 2,
            x: each.x, y: each.y }}));
          const within = (box, {{ x, y }}) => x > box.left && x < box.right && y > box.top && y < box.bottom;
          const points = drawn.pointsOf(drawn.lines);
          const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
          return {{
            labels: boxes.length,
            points: points.length,
            covered: points.filter((point) => boxes.some((box) => within(box, point))).length,
            marks: boxes.filter((box) => boxes.some((other) => within(box, other))).length,
            others: boxes.filter((box, at) => boxes.some((other, index) => index !== at && meet(box, other))).length,
          }};
        }}"""
    )
    assert found["labels"] == 3
    assert found["points"] > 200
    assert (found["covered"], found["marks"], found["others"]) == (0, 0, 0)


def test_a_limit_above_the_view_is_a_note_at_its_edge(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    limits = page.evaluate(
        """howdah.marks.layout({left: 0, right: 500, top: 0, bottom: 300}, (x, y) => ({x, y: 300 - y}),
           [{value: 1111, label: "BDP"}, {value: 200, label: "near"}], [], [], []).limits"""
    )
    assert [each["label"] for each in limits] == ["↑ BDP 1111", "near"]
    assert [each["y"] for each in limits] == [None, 100]


def test_windows_that_are_a_decade_apart_have_a_logarithmic_axis(visit: Open, tmp_path: Path) -> None:
    axes = ({"path.rate": 2_000_000}, {"path.rate": 80_000_000})
    scenario = Scenario(algorithms=("cubic",), repetitions=1, flows=1, duration_s=4.0, axes=axes)
    page = visit(report(make_experiment(tmp_path, scenario), prometheus="off")).page
    page.click("[data-axis='path.rate'] button:has-text('one at a time')")
    assert page.evaluate(f"{figure('cwnd')}.plot.scales.y.distr") == 1
    page.click("[data-axis='path.rate'] button:has-text('compare')")
    assert page.evaluate(f"{figure('cwnd')}.plot.scales.y.distr") == 3
    assert "logarithmic" in page.inner_text("#figure-cwnd h3")
    drawn = page.evaluate(
        f"""(() => {{ const drawn = {figure("cwnd")}; const bounds = drawn.bounds();
        const points = drawn.pointsOf(drawn.lines.slice(0, 1));
        return {{ floor: bounds.bottom, top: bounds.top, low: Math.max(...points.map((each) => each.y)),
          high: Math.min(...points.map((each) => each.y)),
          numbers: drawn.plot.axes[1]._values.filter(Boolean).length }}; }})()"""
    )
    assert drawn["top"] < drawn["high"] < drawn["low"] <= drawn["floor"]
    # On an axis from zero its peak would lie below a twentieth of the height.
    assert drawn["low"] - drawn["high"] > 0.1 * (drawn["floor"] - drawn["top"]), "the small window is not on the floor"
    assert drawn["numbers"] >= 2
    assert page.evaluate(f"howdah.save.document({figure('cwnd')})").count("NaN") == 0
    assert page.evaluate(f"{figure('rtt')}.plot.scales.y.distr") == 1
