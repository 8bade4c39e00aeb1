# SPDX-License-Identifier: Apache-2.0
"""The first screen of a report in a browser: the answer and the runs behind it; labels that lie on nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Open
from tests.browser.test_report import figure

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
