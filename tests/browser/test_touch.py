# SPDX-License-Identifier: Apache-2.0
"""Fingers on a figure: one drags, two pinch, and a vertical stroke scrolls the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page

pytestmark = pytest.mark.browser

_WHOLE = "howdah.state.show('whole')"


class Hand:
    """Touches of the browser itself, so that it scrolls where a finger would make it scroll."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._session: CDPSession = page.context.new_cdp_session(page)
        box = page.locator("#figure-cwnd .u-over").bounding_box()
        assert box is not None
        self.box = box

    def _send(self, kind: str, shares: list[float], down_px: float) -> None:
        y = self.box["y"] + self.box["height"] / 2 + down_px
        places = [{"x": self.box["x"] + share * self.box["width"], "y": y, "id": at} for at, share in enumerate(shares)]
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    def stroke(self, first: list[float], last: list[float], down_px: float = 0.0) -> None:
        """Fingers go from shares of the figure's width to others, in steps as a hand would."""
        self._send("touchStart", first, 0)
        for step in range(1, 9):
            at = [a + (b - a) * step / 8 for a, b in zip(first, last, strict=True)]
            self._send("touchMove", at, down_px * step / 8)
        self._session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    @property
    def range(self) -> tuple[float, float]:
        found = self.page.evaluate(
            "(() => { const x = howdah.figures.find((f) => f.description.id === 'cwnd').plot.scales.x;"
            " return [x.min, x.max]; })()"
        )
        return float(found[0]), float(found[1])


@pytest.fixture
def hand(browser: Browser, report_page: Path) -> Iterator[Hand]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(report_page.as_uri())
    page.wait_for_selector("html[data-ready=true]")
    page.locator("#figure-cwnd").scroll_into_view_if_needed()
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.evaluate("document.getElementById('figure-cwnd').scrollIntoView({ block: 'center' })")
    page.evaluate(_WHOLE)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    yield Hand(page)
    context.close()


def test_two_fingers_pinch_around_what_lies_between_them(hand: Hand) -> None:
    first, last = hand.range
    hand.stroke([0.4, 0.6], [0.2, 0.8])
    low, high = hand.range
    assert high - low == pytest.approx((last - first) / 3, rel=0.1)
    assert (low + high) / 2 == pytest.approx((first + last) / 2, rel=0.1)
    hand.stroke([0.2, 0.8], [0.45, 0.55])
    assert hand.range == pytest.approx((first, last))


def test_a_finger_drags_what_is_in_view_and_not_beyond_the_data(hand: Hand) -> None:
    first, last = hand.range
    hand.stroke([0.4, 0.6], [0.2, 0.8])
    low, high = hand.range
    hand.stroke([0.7], [0.4])
    moved = hand.range
    assert moved[1] - moved[0] == pytest.approx(high - low)
    assert moved[0] - low == pytest.approx(0.3 * (high - low), rel=0.15)
    for _ in range(6):
        hand.stroke([0.9], [0.1])
    assert hand.range[1] == pytest.approx(last)
    for _ in range(12):
        hand.stroke([0.1], [0.9])
    assert hand.range[0] == pytest.approx(first, abs=1e-6)


def test_of_a_whole_figure_a_finger_moves_the_cursor(hand: Hand) -> None:
    before = hand.range
    hand.stroke([0.3], [0.6])
    assert hand.range == pytest.approx(before)
    said = hand.page.locator("#figure-cwnd .legend .at").inner_text()
    assert said.startswith("at ")


def test_a_vertical_stroke_scrolls_the_page(hand: Hand) -> None:
    zoomed = hand.range
    top = hand.page.evaluate("scrollY")
    hand.stroke([0.5], [0.5], down_px=-140)
    hand.page.wait_for_function(f"scrollY > {top} + 20")
    assert hand.range == pytest.approx(zoomed)
