# SPDX-License-Identifier: Apache-2.0
"""Every kind of page looks as it did, on screens of 1440 and 390 pixels and on paper.

``make screenshots`` takes the pictures again, when a page is meant to look different.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser

from tests.browser.kinds import Pages
from tests.browser.screenshot import (
    PICTURED,
    PICTURES,
    SHRINK,
    differences,
    file_of,
    length_differs,
    picture_of,
    take,
)

pytestmark = pytest.mark.browser


def kept(kind: str, medium: str) -> Image.Image:
    return Image.open(file_of(kind, medium)).convert("RGB")


@pytest.mark.parametrize("medium", SHRINK)
@pytest.mark.parametrize("kind", PICTURED)
def test_a_page_looks_as_it_did(browser: Browser, pages: Pages, kind: str, medium: str, tmp_path: Path) -> None:
    was, now = kept(kind, medium), take(browser, pages, kind, medium)
    found = differences(was, now, SHRINK[medium])
    if not found and not length_differs(was, now):
        return
    for name, picture in (("was", was), ("is", now), ("difference", ImageChops.difference(was, now))):
        picture.save(tmp_path / f"{name}.png")
    listed = "\n  ".join(str(each) for each in found[:10])
    raise AssertionError(
        f"{kind} on {medium} looks different: {was.size} pixels, now {now.size}; {len(found)} tiles, the worst\n"
        f"  {listed}\npictures in {tmp_path}; if the change is meant: make screenshots"
    )


def test_there_is_a_picture_for_each_page_and_no_other() -> None:
    wanted = {file_of(kind, medium).name for kind in PICTURED for medium in SHRINK}
    assert {file.name for file in PICTURES.iterdir()} == wanted


@pytest.mark.parametrize(
    "fault",
    [
        "document.querySelector('#exits figure.strip').style.visibility = 'hidden'",
        "document.querySelector('#exits figure.strip').style.width = '50%'",
        "document.querySelector('#figure-cwnd').remove()",
        "document.querySelector('main').style.marginLeft = '40px'",
        "document.querySelector('table').style.fontSize = '20px'",
        "document.body.style.background = '#dde'",
    ],
)
def test_a_page_that_looks_different_is_found(browser: Browser, pages: Pages, fault: str) -> None:
    page = pages.open(browser, "report", 1440, bypass_csp=True)
    page.evaluate(f"() => {{ {fault} }}")
    was, now = kept("report", "1440"), picture_of(page, SHRINK["1440"])
    assert differences(was, now, SHRINK["1440"])
    page.context.close()
