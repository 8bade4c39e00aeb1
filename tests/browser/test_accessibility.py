# SPDX-License-Identifier: Apache-2.0
"""axe-core finds nothing wrong with any kind of page, in either theme, on a desk or in a hand."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.browser.kinds import KINDS, Pages

pytestmark = pytest.mark.browser

# Everything of WCAG 2.2 A and AA that axe knows, and its good practice.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(browser: Browser, pages: Pages, kind: str, width: int, dark: bool) -> None:
    page = pages.open(browser, kind, width, dark=dark)
    results = Axe().run(page, options={"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]})
    page.context.close()
    assert len(results.response["passes"]) > 15, "axe looked at next to nothing"
    found = [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node['failureSummary']}"
        for each in results.response["violations"]
        for node in each["nodes"][:4]
    ]
    assert not found, "\n".join(found)


def test_axe_sees_what_is_wrong(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "night", 1440)
    page.evaluate(
        "document.querySelector('thead th').textContent = ''; document.documentElement.removeAttribute('lang')"
    )
    found = {each["id"] for each in Axe().run(page).response["violations"]}
    page.context.close()
    assert found >= {"empty-table-header", "html-has-lang"}
