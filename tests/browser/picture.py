# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.browser.picture REPORT.html OUT.png``: the picture of the README, from a report.

It shows where each flow left slow start and, below, the congestion windows during start-up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image, ImageOps
from playwright.sync_api import sync_playwright

from tests.browser.conftest import MISSING, launched
from tests.browser.screenshot import Difference, differences, length_differs, pin_fonts

WIDTH_PX = 880
SCALE = 1.5  # pixels of the file for one of the page: sharp on most screens, and still a small file
_SHRINK = 6  # pixels of the file for one that is compared

_ONLY_THESE = """() => {
  const box = document.createElement("div");
  box.id = "picture";
  box.style.cssText = "padding: 8px 16px";
  const parts = [
    document.getElementById("exits-title"),
    document.querySelector("#exits figure.strip"),
    document.getElementById("figure-cwnd"),
  ];
  if (parts.some((part) => part === null)) return false;
  parts[0].style.cssText = "margin: 0; padding: 0; border: 0";
  box.append(...parts);
  document.body.replaceChildren(box);
  for (const button of box.querySelectorAll("button.save-png, button.save-svg")) button.remove();
  return true;
}"""


def take(report: Path, picture: Path) -> None:
    """Write the picture of a report as PNG, with fonts that every machine has.

    Raises SystemExit without a browser, and where the report lacks one of its parts.
    """
    # In a thread of its own: Playwright starts once in a thread, and the tests' browser may be open in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_take, report, picture).result()


def _take(report: Path, picture: Path) -> None:
    with tempfile.TemporaryDirectory() as fonts, sync_playwright() as playwright:
        browser = launched(playwright, Path(fonts))
        if browser is None:
            raise SystemExit(MISSING)
        page = browser.new_page(
            viewport={"width": WIDTH_PX, "height": 1000}, device_scale_factor=SCALE, color_scheme="light"
        )
        page.goto(report.resolve().as_uri())
        page.wait_for_selector("html[data-ready=true]")
        if not page.evaluate(_ONLY_THESE):
            raise SystemExit(f"{report}: no exit strip or no figure of the congestion window; did its runs pass?")
        pin_fonts(page)
        page.locator("#picture").screenshot(path=picture)
        browser.close()


def differs(was: Path, now: Path) -> list[Difference] | str:
    """Where two pictures look different, the most different places first; in words where their sizes differ."""
    small = []
    for picture in (was, now):
        whole = Image.open(picture).convert("RGB")
        shrunk = whole.resize((whole.width // _SHRINK, whole.height // _SHRINK), Image.Resampling.BOX)
        small.append(ImageOps.posterize(shrunk, 5))
    if length_differs(*small):
        return f"{small[0].size} and {small[1].size}, in {_SHRINK} pixels"
    return differences(small[0], small[1], _SHRINK)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.picture", description=__doc__)
    parser.add_argument("report", type=Path, help="report.html of an experiment")
    parser.add_argument("picture", type=Path, help="the PNG file to write")
    options = parser.parse_args(arguments)
    take(options.report, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
