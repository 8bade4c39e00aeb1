# SPDX-License-Identifier: Apache-2.0
"""The atlas as a reader uses it: filters of the index, links between pages, both themes, a narrow screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from howdah.atlas.site import write_site
from howdah.atlas.view import views
from howdah.atlas.work import Record, Sitting
from howdah.report.plot import draw
from tests.atlas_factory import make_judged_atlas
from tests.browser.conftest import Open
from tests.browser.kinds import Pages

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_judged_atlas(tmp_path_factory.mktemp("atlas"))
    catalogue, site = made.read(), made.runs / "atlas"
    shown = views(catalogue, made.chapters(), site, draw, quick=False)
    record = Record([Sitting(started="2026-11-22T00:00:00+00:00", quick=False, made=18, wall_s=200.0)])
    return write_site(site, catalogue, shown, record, [], quick=False)


def entries(page: Page) -> list[str]:
    """Titles of the entries in view."""
    return page.locator("table.entries tbody tr:visible a").all_inner_texts()


def test_the_index_lists_all_entries_and_asks_no_one(visit: Open, index: Path) -> None:
    opened = visit(index, site=True)
    assert entries(opened.page) == ["Exit windows", "Utilisation", "The map", "One day"]
    assert not opened.complaints


def test_verdicts_filter_and_add_up(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.get_by_role("button", name="1 differs").click()
    assert entries(page) == ["Exit windows"]
    expect(page.locator("#shown")).to_have_text("1 of 4")
    page.get_by_role("button", name="2 not measurable here").click()
    assert entries(page) == ["Exit windows", "The map", "One day"]
    page.get_by_role("button", name="1 differs").click()
    page.get_by_role("button", name="2 not measurable here").click()
    assert len(entries(page)) == 4


def test_a_cause_filters(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    causes = page.locator("#cause option").evaluate_all("(all) => all.map((each) => each.value).filter(Boolean)")
    assert causes
    page.locator("#cause").select_option("a control shows the mechanism")
    assert entries(page) == ["Exit windows"]
    page.locator("#cause").select_option("")
    assert len(entries(page)) == 4


def test_the_published_index_is_read_in_a_few_screens(visit: Open, pages: Pages) -> None:
    page = visit(pages.files["published index"], site=True).page
    assert page.evaluate("document.documentElement.scrollHeight") <= 6000
    rows = page.locator("table.entries tbody tr")
    assert rows.count() > 80, "every entry is there"
    shown = page.evaluate("[...document.querySelectorAll('.whole .stacked > *')].map((each) => each.className)")
    assert shown[0] == "pass", "what is reproduced comes first"


def test_on_a_phone_the_published_index_is_as_short_and_opens_what_is_asked_for(visit: Open, pages: Pages) -> None:
    page = visit(pages.files["published index"], width=390, site=True).page
    height = "document.documentElement.scrollHeight"
    assert page.evaluate(height) <= 6000
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.locator("table.entries tbody tr:visible")).to_have_count(0)
    page.locator("section.paper summary").first.click()
    assert page.locator("table.entries tbody tr:visible").count() > 0
    page.get_by_role("searchbox").fill("hystart")
    found = page.locator("table.entries tbody tr:visible")
    assert found.count() > 3
    page.get_by_role("searchbox").fill("")
    expect(found).to_have_count(0)
    page.locator("#paper").select_option(index=1)
    cause = page.locator("#cause option").nth(1).get_attribute("value")
    page.locator("#cause").select_option(cause)
    shown = page.locator("#shown").inner_text()
    assert shown.split(" of ") == [str(found.count()), str(page.locator("table.entries tbody tr").count())]


def test_a_link_into_what_is_folded_opens_it(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    expect(page.locator("#differs .claims")).to_be_hidden()
    page.get_by_role("link", name="What differs").click()
    expect(page.locator("#differs .claims")).to_be_visible()


def test_the_search_takes_words_in_any_order(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.get_by_label("Search").fill("windows exit")
    assert entries(page) == ["Exit windows"]
    page.get_by_label("Search").fill("nowhere")
    expect(page.locator("#nothing")).to_be_visible()


@pytest.mark.parametrize("width", [360, 1440])
def test_an_entry_with_a_plot_shows_it_small(visit: Open, index: Path, width: int) -> None:
    page = visit(index, site=True).page
    page.set_viewport_size({"width": width, "height": 740})
    row = page.locator("table.entries tbody tr", has_text="Astart_tab2")
    expect(row.locator(".thumbnail svg rect").first).to_be_visible()
    box = row.locator(".thumbnail svg").bounding_box()
    assert box is not None and 60 < box["width"] < 160 and box["height"] > 40
    expect(page.locator(".thumbnail")).to_have_count(1)


def test_an_entry_leads_to_its_page_and_on_to_the_next(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.get_by_role("link", name="Exit windows").first.click()
    expect(page.locator("h1")).to_have_text("Exit windows")
    expect(page.locator("table.judged")).to_contain_text("HyStart switched off")
    page.get_by_role("link", name="Astart_tab2 ›").click()
    expect(page.locator("h1")).to_have_text("Utilisation")
    expect(page.locator("figure.declared svg").first).to_be_visible()
    page.get_by_role("link", name="The atlas").click()
    expect(page.locator("h1")).to_contain_text("atlas")


def test_claims_are_read_on_a_phone_without_scrolling_sideways(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.set_viewport_size({"width": 390, "height": 740})
    page.get_by_role("link", name="Exit windows").first.click()
    expect(page.locator("table.judged")).to_be_visible()
    assert page.locator("#claims .scroll").evaluate("(box) => box.scrollWidth - box.clientWidth") <= 1
    expect(page.locator("table.judged > tbody > tr > td").nth(1)).to_contain_text("Central claim.")


def test_a_claim_that_differs_is_linked_from_the_index(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.get_by_role("link", name="What differs").click()
    page.locator("#differs").get_by_role("link", name="CUBIC loses packets").click()
    expect(page.locator("tr:target")).to_have_count(1)


def test_the_theme_changes(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_nothing_is_wider_than_a_phone(visit: Open, index: Path) -> None:
    page = visit(index, site=True).page
    page.set_viewport_size({"width": 360, "height": 740})
    for name in ("index.html", "astart-tab1.html", "astart-tab2.html", "astart-fig1.html"):
        page.goto(index.with_name(name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
