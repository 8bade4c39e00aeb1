# SPDX-License-Identifier: Apache-2.0
"""Small pictures of every kind of page, and where two of them differ.

``python -m tests.browser.screenshot`` takes the pictures of ``tests/browser/pictures`` again.

A picture must look the same on another machine.
Pages are therefore shown with the fonts that come with matplotlib (``fonts.py``), and a pixel of a picture is the mean
of a square of the page: how a browser smooths the edge of a letter does not show, a figure that is missing or has moved
does.
"""

from __future__ import annotations

import base64
import io
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import MISSING, launched
from tests.browser.kinds import KINDS, PAPER_PX, Pages, make_pages

PICTURES = Path(__file__).with_name("pictures")
# Pixels of the page, along each side, that are one pixel of the picture.
SHRINK = {"1440": 8, "390": 4, "paper": 8}
# Published entries show what the repository's results are, which changes with every publication.
PICTURED = tuple(kind for kind in KINDS if not kind.startswith("published"))
TILE_PIXELS = 6
# How far the mean of a tile may be off, of 255. Other hinting of the fonts stays below it.
TILE_LIMIT = 14.0
# How much longer or shorter a page may be: a browser rounds the height of each line.
LENGTH_LIMIT = 0.01

_BITS = 5  # of each colour: the rest makes files larger and shows nothing


@dataclass(frozen=True)
class Difference:
    """A tile of the page that does not look as it did. Its corner and side in pixels of the page."""

    left: int
    top: int
    side: int
    by: float

    def __str__(self) -> str:
        return f"{self.by:.0f} of 255 in the {self.side} px below and right of ({self.left}, {self.top})"


# Words that depend on where, when and from which files the page was made.
_SAME_WORDS = r"""() => {
  const same = [
    [/\/[^\s'"]*\//g, "/place/"],
    [/\b\d{4}-\d\d-\d\d/g, "2026-01-01"],
    [/\b\d\d:\d\d(:\d\d(\.\d+)?)?/g, "00:00"],
    [/, revision [0-9a-f]+(, with changes that are not committed)?/g, ""],
    [/\b[0-9a-f]{8,64}\b/g, (found) => "0".repeat(found.length)],
  ];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (text.parentElement.closest("script, style")) continue;
    for (const [what, by] of same) text.nodeValue = text.nodeValue.replace(what, by);
  }
}"""


def pin_words(page: Page) -> None:
    """Replace paths, dates, times of day, revisions and digests, which no two pages have in common."""
    page.evaluate(_SAME_WORDS)


def pin_fonts(page: Page) -> None:
    """Show the page with fonts that every machine has. Its browser must have been started with them."""
    page.add_style_tag(
        content="* { font-family: pinned !important; } code, kbd, pre, samp { font-family: pinned-code !important; }"
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def take(browser: Browser, pages: Pages, kind: str, medium: str) -> Image.Image:
    """The whole page of a kind on a screen of 1440 or 390 pixels, or on paper."""
    page = pages.open(browser, kind, PAPER_PX if medium == "paper" else int(medium))
    if medium == "paper":
        page.emulate_media(media="print")
    pin_words(page)
    pin_fonts(page)
    picture = picture_of(page, SHRINK[medium])
    page.context.close()
    return picture


def picture_of(page: Page, shrink: int, down_to_px: float = math.inf) -> Image.Image:
    """What the page shows, made smaller."""
    session = page.context.new_cdp_session(page)
    size = session.send("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], down_to_px), "scale": 1}
    # Only the browser's own protocol offers the quick way to pack the same pixels: it takes a quarter of the time.
    options = {"format": "png", "optimizeForSpeed": True, "captureBeyondViewport": True, "clip": clip}
    data = base64.b64decode(session.send("Page.captureScreenshot", options)["data"])
    session.detach()
    whole = Image.open(io.BytesIO(data)).convert("RGB")
    small = whole.resize((whole.width // shrink, whole.height // shrink), Image.Resampling.BOX)
    return ImageOps.posterize(small, _BITS)


def length_differs(was: Image.Image, now: Image.Image) -> bool:
    return was.width != now.width or abs(was.height - now.height) > max(2, LENGTH_LIMIT * was.height)


def differences(was: Image.Image, now: Image.Image, shrink: int) -> list[Difference]:
    """Tiles that look different, the most different first. What one picture has more of is not compared."""
    height = min(was.height, now.height) // TILE_PIXELS * TILE_PIXELS
    width = was.width // TILE_PIXELS * TILE_PIXELS
    off = np.abs(_tiles(was, width, height) - _tiles(now, width, height)).max(axis=2)
    side = TILE_PIXELS * shrink
    found = [
        Difference(int(column) * side, int(row) * side, side, float(off[row, column]))
        for row, column in np.argwhere(off > TILE_LIMIT)
    ]
    return sorted(found, key=lambda each: -each.by)


def _tiles(picture: Image.Image, width: int, height: int) -> NDArray[np.float64]:
    """Mean colour of each tile: rows, columns, three channels from 0 to 255."""
    pixels = np.asarray(picture.crop((0, 0, width, height)), dtype=np.float64)
    shape = (height // TILE_PIXELS, TILE_PIXELS, width // TILE_PIXELS, TILE_PIXELS, 3)
    means: NDArray[np.float64] = pixels.reshape(shape).mean(axis=(1, 3))
    return means


def file_of(kind: str, medium: str) -> Path:
    return PICTURES / f"{kind.replace(' ', '-')}-{medium}.png"


def main() -> int:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        browser = launched(playwright, Path(place))
        if browser is None:
            raise SystemExit(MISSING)
        pages = make_pages(Path(place))
        PICTURES.mkdir(exist_ok=True)
        for kind in PICTURED:
            for medium in SHRINK:
                take(browser, pages, kind, medium).save(file_of(kind, medium), optimize=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
