# SPDX-License-Identifier: Apache-2.0
"""How every kind of page lies at 1440 and 390 pixels and on paper.

What is asserted is the layout itself, with the fonts of the machine. That a page looks as it did is the matter of
``test_screenshots.py``, whose pictures are too coarse to show a table that is a few pixels too wide.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.kinds import KINDS, PAPER_PX, Pages, with_figures

pytestmark = pytest.mark.browser

# What is seen of the page and is not meant to scroll within its own box.
_SEEN = """
  const seen = (each) => {
    const box = each.getBoundingClientRect();
    const shown = each.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
    return shown && box.width > 1 && box.height > 1 && !each.closest(".visually-hidden, .skip");
  };
  const named = (each) => [each.tagName.toLowerCase(), each.id && `#${each.id}`, `.${each.getAttribute("class") || ""}`,
    ` "${each.textContent.trim().slice(0, 40)}"`].join("");
"""


def beyond_the_edge(page: Page) -> list[str]:
    """What sticks out of the page to the right, unless it is in a box that scrolls."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wide = document.documentElement.clientWidth;
        return [...document.querySelectorAll("body *")]
          .filter((each) => seen(each) && !each.parentElement.closest(".scroll, svg, .uplot"))
          .filter((each) => each.getBoundingClientRect().right > wide + 1).map(named); }}"""
    )
    return found


def on_top_of_each_other(page: Page) -> list[str]:
    """Controls, headings and lines of text that cover one another."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wanted = "h1, h2, h3, h4, p, button, select, summary, dt, dd, figcaption, .verdict, .scroll, canvas";
        const outside = [...document.querySelectorAll(wanted)]
          .filter((each) => seen(each) && !each.parentElement.closest(".scroll"));
        const boxes = outside.map((each) => {{
          const box = each.getBoundingClientRect();
          const {{ left, right, top, bottom }} = box;
          return {{ each, left, right, top, bottom, sticky: each.closest(".controls") }};
        }});
        const found = [];
        boxes.forEach((a, at) => {{
          for (const b of boxes.slice(at + 1)) {{
            if (a.each.contains(b.each) || b.each.contains(a.each) || Boolean(a.sticky) !== Boolean(b.sticky)) continue;
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 3 && down > 3) found.push(`${{named(a.each)}} and ${{named(b.each)}}`);
          }}
        }});
        return found; }}"""
    )
    return found


def cut_words(page: Page) -> list[str]:
    """Words of figures that reach beyond the drawing, or are too small to be read."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("figure svg")].filter((each) => each.checkVisibility())
          .flatMap((drawing) => {
            const edge = drawing.getBoundingClientRect();
            return [...drawing.querySelectorAll("text")].filter((each) => {
              const box = each.getBoundingClientRect();
              return box.left < edge.left - 2 || box.right > edge.right + 2 || box.height < 8;
            }).map((each) => each.textContent);
          })"""
    )
    return found


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_sticks_out_or_lies_on_something_else(browser: Browser, pages: Pages, kind: str, width: int) -> None:
    page = pages.open(browser, kind, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert beyond_the_edge(page) == []
    assert on_top_of_each_other(page) == []
    page.context.close()


def test_every_published_entry_with_figures_fits_a_phone(browser: Browser, pages: Pages) -> None:
    entries = with_figures(pages.files["published entry"].parent)
    assert len(entries) > 30
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_wider_than_a_phone_says_that_it_scrolls(browser: Browser, pages: Pages, kind: str) -> None:
    page = pages.open(browser, kind, 390)
    assert page.evaluate(
        "[...document.querySelectorAll('table:not(.u-legend)')].every((each) => each.closest('.scroll'))"
    )
    wide = 0
    for box in page.locator(".scroll").all():
        if not box.is_visible():
            continue
        hint = box.locator("xpath=preceding-sibling::*[1]")
        if box.evaluate("(each) => each.scrollWidth - each.clientWidth") <= 1:
            assert not hint.is_visible()
            continue
        wide += 1
        assert "scroll" in hint.inner_text()
        assert hint.is_visible()
        assert box.get_attribute("tabindex") == "0"
        box.evaluate("(each) => { each.scrollLeft = each.scrollWidth; }")
        box.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert not hint.is_visible(), "there is no more to see"
    if kind in ("report", "comparison", "night", "live"):
        assert wide
    page.context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_paper_has_everything_and_no_controls(browser: Browser, pages: Pages, kind: str) -> None:
    page = pages.open(browser, kind, PAPER_PX)
    page.emulate_media(media="print")
    assert not page.locator("button#theme").is_visible()
    expect(page.locator(".scroll-hint:visible")).to_have_count(0)
    # On paper nothing scrolls: what does not fit is cut off.
    cut: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wide = document.documentElement.clientWidth;
        return [...document.querySelectorAll("table")].filter(seen)
          .filter((each) => each.getBoundingClientRect().right > wide + 1).map(named); }}"""
    )
    assert cut == []
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].every((each) => getComputedStyle(each).overflowX === 'visible')"
    )
    page.context.close()


@pytest.mark.parametrize("width", [PAPER_PX, 680])
@pytest.mark.parametrize("kind", ["report", "comparison", "many runs"])
def test_strips_are_as_wide_as_the_paper(browser: Browser, pages: Pages, kind: str, width: int) -> None:
    page = pages.open(browser, kind, width)
    page.emulate_media(media="print")
    room = page.locator("#exits").bounding_box()
    assert room is not None
    strips = [each.bounding_box() for each in page.locator("#exits figure.strip:visible svg:visible").all()]
    assert strips
    assert {round(strip["width"]) for strip in strips if strip} == {round(room["width"])}
    page.context.close()


def test_layout_faults_are_found(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "night", 390)
    page.evaluate("document.querySelector('h1').style.cssText = 'width: 500px; margin-bottom: -60px'")
    assert any("h1" in each for each in beyond_the_edge(page))
    assert any("h1" in each for each in on_top_of_each_other(page))
    page.context.close()
