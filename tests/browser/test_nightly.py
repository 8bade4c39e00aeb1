# SPDX-License-Identifier: Apache-2.0
"""A night's page as a reader uses it in the morning: from the matrix to what changed and the command that shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from howdah.nightly.comparison import compare_sheets
from howdah.nightly.page import write_page
from howdah.nightly.sheet import Value
from tests.browser.conftest import Open
from tests.nightly_factory import changed, night, sheet, usual

pytestmark = pytest.mark.browser

NAME = "test-made-debian-6.12"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels: one on which CUBIC has become worse, one that does not build."""
    root = tmp_path_factory.mktemp("night")

    def tonight(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, retransmitted_packets__1=40.0 + number, utilisation=0.7, exit_cause__1="loss")

    made = night(root, sheet(NAME, usual), sheet(NAME, tonight))
    other = sheet("test-made-debian-6.1", usual, kernel="debian-6.1")
    other.cells, other.problem = {}, "the kernel configuration rejects required options: CONFIG_" + "VERY_LONG_" * 12
    made.cells += compare_sheets(None, other, ["cubic", "reno"])
    made.problems.append("test-made-debian-6.12/cubic-r3: the process ended")
    made.settle()
    report = made.runs / NAME / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("a report")
    place = made.runs / "test.nights" / "20261122T020000"
    place.mkdir(parents=True)
    return write_page(made, place / "index.html")


def test_the_matrix_leads_to_the_cell(visit: Open, page_file: Path) -> None:
    opened = visit(page_file)
    page = opened.page
    expect(page.locator(".headline")).to_have_text("1 of 4 cells fail, 1 regression, 2 not built")
    assert page.locator("table.matrix thead th").all_inner_texts() == ["cell", "debian-6.12", "debian-6.1"]
    rows = [row.all_inner_texts() for row in page.locator("table.matrix tbody tr:has(td)").locator("td").all()]
    assert [text for (text,) in rows] == ["regression 3", "not built", "equal", "not built"]
    page.locator("table.matrix").get_by_text("regression 3").click()
    cell = page.locator(":target")
    expect(cell).to_be_in_viewport()
    expect(cell.locator("pre")).to_contain_text(f"--only {NAME}/cubic --again")
    expect(cell.locator("li").first).to_contain_text("p = ")
    assert set(cell.locator("table.measures tr.regression td:first-child").all_inner_texts()) == {
        *("retransmitted_packets of flow 1 (primary)", "utilisation (primary)", "exit_cause of flow 1 (primary)")
    }
    assert cell.locator("a", has_text="report").get_attribute("href") == f"../../{NAME}/report.html"
    assert not opened.complaints
    assert not opened.requests


def test_failing_cells_come_first_and_open(visit: Open, page_file: Path) -> None:
    page = visit(page_file).page
    assert page.locator("article.cell h3").first.inner_text().startswith(f"{NAME}/cubic")
    expect(page.locator("article.cell details[open]")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read_and_changed(visit: Open, page_file: Path, theme: str) -> None:
    page = visit(page_file, theme=theme).page
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is (theme == "light")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != background


def test_a_narrow_screen_scrolls_tables_alone(visit: Open, page_file: Path) -> None:
    page = visit(page_file, width=380, height=800).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
