# SPDX-License-Identifier: Apache-2.0
"""What holds of every kind of page, on screens of 1440 and 390 pixels and on paper.

Nothing sticks out, lies on something else or is cut off; axe-core finds no barrier; and the page looks as it did.
The layout is asserted with the fonts of the machine, because pictures are too coarse to show a table that is a few
pixels too wide. ``make screenshots`` takes the pictures again, when a page is meant to look different.

A page is opened once for each medium, and all that holds of it is asked of that page. To find its picture, its words
and fonts are changed, so that is asked last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, expect

from tests.browser.drawn import (
    curves_unlike_their_keys,
    cut_text,
    faint_ink,
    labels_on_curves,
    lost_dashes,
    time_bases,
    words_of_odd_size,
    words_on_words,
)
from tests.browser.kinds import KINDS, PAPER_PX, SAME_EVERYWHERE, Pages, with_figures
from tests.browser.layout import (
    beyond_the_edge,
    broken_numbers,
    cut_off_on_paper,
    cut_words,
    on_top_of_each_other,
    scrolling_boxes,
)
from tests.browser.looked import once
from tests.browser.screenshot import (
    PICTURED,
    PICTURES,
    SHRINK,
    differences,
    file_of,
    length_differs,
    picture_of,
    pin_fonts,
    pin_words,
)

pytestmark = pytest.mark.browser

# Everything of WCAG 2.2 A and AA that axe knows, and its good practice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
DARK = " dark"


@dataclass(frozen=True)
class View:
    kind: str
    medium: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.medium}"

    @property
    def width(self) -> int:
        return PAPER_PX if self.medium == "paper" else int(self.medium.removesuffix(DARK))


@dataclass
class Shown:
    """A page that is opened when it is first looked at."""

    view: View
    browser: Browser
    pages: Pages
    opened: Page | None = None

    @property
    def page(self) -> Page:
        if self.opened is None:
            self.opened = self.pages.open(
                self.browser, self.view.kind, self.view.width, dark=self.view.medium.endswith(DARK)
            )
            if self.view.medium == "paper":
                self.opened.emulate_media(media="print")
        return self.opened

    def once(self, what: str, check: Callable[[Shown], None], *compared_with: bytes) -> None:
        """``check(self)``, unless it found nothing wrong with the same page before."""
        if self.view.kind in SAME_EVERYWHERE:
            contents = [*self.pages.contents(self.view.kind), *compared_with]
            once(f"{what} of {self.view}", contents, lambda: check(self))
        else:
            check(self)


def each(kinds: tuple[str, ...], *media: str) -> pytest.MarkDecorator:
    """Tests that name the same view follow one another, and have one page."""
    views = [View(kind, medium) for kind in kinds for medium in media]
    return pytest.mark.parametrize("shown", views, indirect=True, ids=str)


@pytest.fixture(scope="module")
def shown(request: pytest.FixtureRequest, browser: Browser, pages: Pages) -> Iterator[Shown]:
    found = Shown(request.param, browser, pages)
    yield found
    if found.opened is not None:
        found.opened.context.close()


@each(KINDS, "1440", "390")
def test_nothing_sticks_out_or_lies_on_something_else(shown: Shown) -> None:
    shown.once("layout", assert_nothing_sticks_out_or_lies_on_something_else)


def assert_nothing_sticks_out_or_lies_on_something_else(shown: Shown) -> None:
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= shown.view.width
    assert beyond_the_edge(shown.page) == []
    assert on_top_of_each_other(shown.page) == []
    assert broken_numbers(shown.page) == []


@each(KINDS, "1440", "390")
def test_what_is_hidden_is_not_laid_out_by_a_rule_of_its_class(shown: Shown) -> None:
    """One element of each name and class is hidden in turn, as a filter would."""
    still = shown.page.evaluate(
        """() => {
          const seen = new Set();
          const still = [];
          for (const each of document.querySelectorAll("body, body *")) {
            const kind = `${each.tagName}.${each.className}`;
            if (!(each instanceof HTMLElement) || seen.has(kind)) continue;
            seen.add(kind);
            const before = each.hidden;
            each.hidden = true;
            if (getComputedStyle(each).display !== "none") still.push(kind);
            each.hidden = before;
          }
          return still;
        }"""
    )
    assert still == []


@each(KINDS, "1440", f"390{DARK}")
def test_axe_finds_nothing(shown: Shown) -> None:
    shown.once("axe", assert_axe_finds_nothing)


def assert_axe_finds_nothing(shown: Shown) -> None:
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    results = Axe().run(shown.page, options=options)
    assert len(results.response["passes"]) > 15, "axe looked at next to nothing"
    found = [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary']}"
        for each in results.response["violations"]
        for node in each["nodes"][:4]
    ]
    assert not found, "\n".join(found)


@each(KINDS, "390")
def test_a_table_wider_than_a_phone_says_that_it_scrolls(shown: Shown) -> None:
    shown.once("scrolling", assert_what_is_too_wide_says_that_it_scrolls)


def assert_what_is_too_wide_says_that_it_scrolls(shown: Shown) -> None:
    assert shown.page.evaluate(
        "[...document.querySelectorAll('table:not(.u-legend)')].every((each) => each.closest('.scroll'))"
    )
    boxes = scrolling_boxes(shown.page)
    wide = [box for box in boxes if box.hidden_px > 1]
    for box in wide:
        assert "scroll" in box.hint
        assert box.hint_shown
        assert box.focusable
        assert not box.hint_shown_at_end, "there is no more to see"
    assert not any(box.hint_shown for box in boxes if box not in wide)
    if shown.view.kind in ("report", "comparison", "night", "live"):
        assert wide


@each(KINDS, "paper")
def test_paper_has_everything_and_no_controls(shown: Shown) -> None:
    shown.once("paper", assert_paper_has_everything_and_no_controls)


def assert_paper_has_everything_and_no_controls(shown: Shown) -> None:
    page = shown.page
    assert not page.locator("button#theme").is_visible()
    expect(page.locator(".scroll-hint:visible")).to_have_count(0)
    assert cut_off_on_paper(page) == []
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every((each) => getComputedStyle(each).overflowX === 'visible')"
    )


@each(KINDS, "1440", "390", "paper", f"1440{DARK}")
def test_what_is_drawn_is_drawn_well(shown: Shown) -> None:
    shown.once("drawing", assert_what_is_drawn_is_drawn_well)


def assert_what_is_drawn_is_drawn_well(shown: Shown) -> None:
    page = shown.page
    ways = (
        words_on_words,
        lost_dashes,
        curves_unlike_their_keys,
        cut_text,
        faint_ink,
        labels_on_curves,
        words_of_odd_size,
    )
    assert {way.__name__: found for way in ways if (found := way(page))} == {}
    if shown.view.kind in ("report", "comparison", "many runs"):
        assert len(time_bases(page)) == 1


def assert_strips_are_as_wide_as_the_paper(page: Page) -> None:
    room = page.locator("#exits").bounding_box()
    assert room is not None
    strips = [each.bounding_box() for each in page.locator("#exits figure.strip:visible svg:visible").all()]
    assert strips
    assert {round(strip["width"]) for strip in strips if strip} == {round(room["width"])}


@each(("report", "comparison", "many runs"), "paper")
def test_strips_are_as_wide_as_the_paper(shown: Shown) -> None:
    shown.once("strips", lambda shown: assert_strips_are_as_wide_as_the_paper(shown.page))


@each(PICTURED, *SHRINK)
def test_a_page_looks_as_it_did(shown: Shown, tmp_path: Path) -> None:
    picture = file_of(shown.view.kind, shown.view.medium).read_bytes()
    shown.once("picture", lambda shown: assert_it_looks_as_it_did(shown, tmp_path), picture)


def assert_it_looks_as_it_did(shown: Shown, place: Path) -> None:
    kind, medium = shown.view.kind, shown.view.medium
    pin_words(shown.page)
    pin_fonts(shown.page)
    was, now = kept(kind, medium), picture_of(shown.page, SHRINK[medium])
    found = differences(was, now, SHRINK[medium])
    if not found and not length_differs(was, now):
        return
    for name, picture in (("was", was), ("is", now), ("difference", ImageChops.difference(was, now))):
        picture.save(place / f"{name}.png")
    listed = "\n  ".join(str(each) for each in found[:10])
    raise AssertionError(
        f"{kind} on {medium} looks different: {was.size} pixels, now {now.size}; {len(found)} tiles, the worst\n"
        f"  {listed}\npictures in {place}; if the change is meant: make screenshots"
    )


def kept(kind: str, medium: str) -> Image.Image:
    return Image.open(file_of(kind, medium)).convert("RGB")


def test_there_is_a_picture_for_each_page_and_no_other() -> None:
    wanted = {file_of(kind, medium).name for kind in PICTURED for medium in SHRINK}
    assert {file.name for file in PICTURES.iterdir()} == wanted


@pytest.mark.parametrize("kind", ["report", "comparison", "many runs"])
def test_strips_are_as_wide_as_narrow_paper(browser: Browser, pages: Pages, kind: str) -> None:
    page = pages.open(browser, kind, 680)
    page.emulate_media(media="print")
    assert_strips_are_as_wide_as_the_paper(page)
    page.context.close()


def test_every_published_entry_with_figures_fits_a_phone(browser: Browser, pages: Pages) -> None:
    entries = with_figures(pages.files["published entry"].parent)
    assert len(entries) > 30
    once("published entries", [each.read_bytes() for each in entries], lambda: assert_all_fit_a_phone(browser, entries))


def assert_all_fit_a_phone(browser: Browser, entries: list[Path]) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    faults = {}
    for entry in entries:
        page.goto(entry.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        found = beyond_the_edge(page) + cut_words(page)
        if found or page.evaluate("document.documentElement.scrollWidth") > 390:
            faults[entry.stem] = found
    assert faults == {}
    context.close()


def test_words_that_a_figure_cuts_off_are_found(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "published entry", 390)
    assert cut_words(page) == []
    page.evaluate("""[...document.querySelectorAll("figure svg text")]
        .filter((each) => each.checkVisibility())[0].setAttribute("x", "5000")""")
    assert len(cut_words(page)) == 1
    page.context.close()


FAULTS: dict[Callable[[Page], list[str]], str] = {
    words_on_words: "texts.slice(0, 2).forEach((each) => { each.setAttribute('x', 9); each.setAttribute('y', 9); })",
    cut_text: "texts[0].setAttribute('x', '5000')",
    faint_ink: "texts[0].style.fill = '#eee'",
    words_of_odd_size: "texts[0].style.fontSize = '40px'",
    lost_dashes: "texts[0].setAttribute('stroke-dasharray', '7 4'); texts[0].style.strokeDasharray = 'none'",
    labels_on_curves: """howdah.figures.filter((each) => each.plot).forEach((each) => {
        const marks = each.marksNow();
        each.marksNow = () => marks;
        each.pointsOf = () => marks.exits.map(({ at }) => ({ x: at.x + 3, y: at.y - 3 }));
    })""",
}


@pytest.mark.parametrize("way", FAULTS)
def test_what_is_drawn_badly_is_found(browser: Browser, pages: Pages, way: Callable[[Page], list[str]]) -> None:
    page = pages.open(browser, "report", 1440)
    assert way(page) == []
    page.evaluate(
        f"""() => {{
          const texts = [...document.querySelectorAll("svg")].filter((each) => each.checkVisibility())
            .map((each) => [...each.querySelectorAll("text")]).find((each) => each.length > 2);
          {FAULTS[way]}; }}"""
    )
    assert way(page)
    page.context.close()


def test_layout_faults_are_found(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "night", 390)
    page.evaluate("document.querySelector('h1').style.cssText = 'width: 500px; margin-bottom: -60px'")
    assert any("h1" in each for each in beyond_the_edge(page))
    assert any("h1" in each for each in on_top_of_each_other(page))
    assert broken_numbers(page) == []
    page.evaluate("document.querySelector('h1').outerHTML = '<p style=\"width: 1px\">in 80 ms</p>'")
    assert broken_numbers(page) == ["in 80 ms"]
    page.context.close()


def test_axe_sees_what_is_wrong(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "night", 1440)
    page.evaluate(
        "document.querySelector('thead th').textContent = ''; document.documentElement.removeAttribute('lang')"
    )
    found = {each["id"] for each in Axe().run(page).response["violations"]}
    page.context.close()
    assert found >= {"empty-table-header", "html-has-lang"}


@pytest.fixture(scope="module")
def pinned_report(browser: Browser, pages: Pages) -> Iterator[Page]:
    """A page that looks like its picture, before and after what tests do to it."""
    page = pages.open(browser, "report", 1440)
    pin_words(page)
    pin_fonts(page)
    yield page
    assert not differences(kept("report", "1440"), picture_of(page, SHRINK["1440"]), SHRINK["1440"])
    page.context.close()


@pytest.mark.parametrize(
    ("selector", "style"),
    [
        ("#exits figure.strip", "visibility: hidden"),
        ("#exits figure.strip", "width: 50%"),
        ("#figure-cwnd", "display: none"),
        ("main", "margin-left: 40px"),
        ("table", "font-size: 20px"),
        ("body", "background: #dde"),
    ],
)
def test_a_page_that_looks_different_is_found(pinned_report: Page, selector: str, style: str) -> None:
    faulty = pinned_report.locator(selector).first
    before: str = faulty.evaluate("(each) => each.style.cssText")
    below = pinned_report.evaluate("document.querySelector('#figure-cwnd').getBoundingClientRect().bottom + scrollY")
    faulty.evaluate("(each, style) => { each.style.cssText += `; ${style}`; }", style)
    now = picture_of(pinned_report, SHRINK["1440"], below)
    faulty.evaluate("(each, before) => { each.style.cssText = before; }", before)
    assert differences(kept("report", "1440"), now, SHRINK["1440"])
