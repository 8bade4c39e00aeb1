# SPDX-License-Identifier: Apache-2.0
"""What slow-start modules told, on the page: marks on the windows, what a reader gets by pointing, the table."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from howdah.report.build import report
from tests.browser.conftest import Open
from tests.browser.test_report import figure
from tests.experiment_factory import Scenario, make_experiment

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def told_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms whose modules tell of a phase, a return to slow start and the exit, one flow each."""
    scenario = Scenario(name="told", algorithms=("cubic", "reno"), repetitions=1, flows=1, duration_s=4.0, told=True)
    return report(make_experiment(tmp_path_factory.mktemp("told"), scenario), prometheus="off")


def marks(page: Page, name: str) -> list[dict[str, float | str]]:
    found: list[dict[str, float | str]] = page.evaluate(f"{figure(name)}.marksNow().events")
    return found


def test_every_event_in_view_has_a_mark_on_the_windows(visit: Open, told_page: Path) -> None:
    page = visit(told_page).page
    for name, wanted in (("cwnd", 6), ("exit-cwnd", 4)):
        found = marks(page, name)
        assert len(found) >= wanted, name
        lines = page.evaluate(f"{figure(name)}.lines.map((line) => line.colour)")
        assert {mark["colour"] for mark in found} <= set(lines)
    assert marks(page, "rtt") == []


def test_a_mark_is_drawn_where_the_event_was(visit: Open, told_page: Path) -> None:
    """The canvas shows the diamond's outline in the line's colour, left and right of its middle."""
    page = visit(told_page).page
    phase = next(mark for mark in marks(page, "cwnd") if "another phase" in str(mark["label"]))
    seen = page.evaluate(
        """(mark) => {
        const figure = howdah.figures.find((f) => f.description.id === "cwnd");
        const wanted = [1, 3, 5].map((at) => parseInt(mark.colour.slice(at, at + 2), 16));
        const ratio = devicePixelRatio;
        const { width, height } = figure.plot.ctx.canvas;
        const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(figure.plot.ctx.canvas, 0, 0);
        const around = (x, y) => {
          const data = copy.getImageData((x - 2) * ratio, (y - 2) * ratio, 4 * ratio, 4 * ratio).data;
          for (let at = 0; at < data.length; at += 4)
            if (wanted.every((value, i) => Math.abs(data[at + i] - value) < 60)) return true;
          return false;
        };
        return [around(mark.x - 5, mark.y), around(mark.x + 5, mark.y), around(mark.x, mark.y - 5)];
        }""",
        phase,
    )
    assert seen == [True, True, True]


@pytest.mark.parametrize("width", [390, 1440])
def test_pointing_at_a_mark_tells_event_reason_and_numbers(visit: Open, told_page: Path, width: int) -> None:
    page = visit(told_page, width=width).page
    phase = next(mark for mark in marks(page, "cwnd") if "another phase" in str(mark["label"]))
    canvas = page.locator("#figure-cwnd .canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + float(phase["x"]), box["y"] + float(phase["y"]))
    tip = page.locator("#figure-cwnd .tip")
    text = tip.inner_text()
    for words in ("another phase of slow start", "the round-trip time rose", "112.5 ms against 108 ms", "packets"):
        assert words in text
    inside = tip.bounding_box()
    assert inside is not None
    assert box["x"] <= inside["x"]
    assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1
    page.mouse.move(box["x"] + float(phase["x"]) + 60, box["y"] + float(phase["y"]) + 60)
    expect(tip).to_have_count(0)


def test_the_keyboard_reaches_the_marks_and_they_are_spoken(visit: Open, told_page: Path) -> None:
    page = visit(told_page).page
    page.focus("#figure-exit-cwnd .canvas")
    page.keyboard.press("Home")
    heard = []
    for _ in range(100):
        page.keyboard.press("ArrowRight")
        heard.append(page.inner_text("#spoken"))
    assert any("left slow start" in text for text in heard)
    assert not all("left slow start" in text for text in heard)


def test_the_table_of_events_has_every_event_in_words(visit: Open, told_page: Path) -> None:
    page = visit(told_page).page
    tables = page.locator("table.events")
    expect(tables).to_have_count(2)
    rows = tables.first.locator("tbody tr")
    expect(rows).to_have_count(3)
    last = rows.last.inner_text()
    assert "left slow start" in last
    assert "the train of ACKs grew too long" in last or "segments were lost" in last
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_saved_figure_has_the_marks(visit: Open, told_page: Path) -> None:
    page = visit(told_page).page
    with page.expect_download() as download:
        page.click("#figure-cwnd .save-svg")
    text = Path(download.value.path()).read_text()
    assert text.count("another phase of slow start") == 2


def test_without_events_there_is_neither_table_nor_mark(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    expect(page.locator("table.events")).to_have_count(0)
    assert marks(page, "cwnd") == []
    assert "What the slow-start modules reported" not in page.inner_text("main")


@pytest.mark.parametrize("width", [390, 1440])
def test_no_width_makes_the_page_scroll_sideways(visit: Open, told_page: Path, width: int) -> None:
    page = visit(told_page, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
