# SPDX-License-Identifier: Apache-2.0
"""The claims of a report, wide and narrow, light and dark: all is seen without scrolling sideways, and legible."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.plan.plan import Plan
from howdah.report.build import report
from tests.browser.conftest import Open
from tests.claim_factory import Row, judged, make_runs, row, write_profile

pytestmark = pytest.mark.browser

CLAIMS = """\
  - id: more-of-the-path
    says: The first algorithm uses more of the path than the second at every round-trip time that was looked at
    source: a paper, Table 1
    value: {metric: utilisation, at: {algorithm: cubic}}
    than: {at: {algorithm: reno}}
    expect: more
    each: path.rtt
    control: off
    because: it is switched on today
  - {id: never, says: Cannot be seen, unsupported: there is no radio here}
"""
CONTROLS = "controls:\n  off: {what: switched off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}}\n"


@pytest.fixture(scope="module")
def claims_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("claims")

    def rows(plan: Plan) -> list[Row]:
        better = plan.algorithm == "cubic" and (plan.axes.get("control") or plan.axes["path.rtt"] == "20 ms")
        return [row("utilisation", (0.9 if better else 0.5) + 0.001 * plan.repetition, "ratio")]

    experiment = make_runs(directory, write_profile(directory, CLAIMS, rtt="[20 ms, 40 ms]", extra=CONTROLS), rows)
    assert judged(experiment)["more-of-the-path"]["verdict"] == "differs"
    return report(experiment, prometheus="off")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_claims_fit_the_page(visit: Open, claims_page: Path, width: int, theme: str) -> None:
    page = visit(claims_page, width=width, theme=theme).page
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    section = page.locator("#claims")
    for cell in section.locator("td:visible, tbody th:visible").all():
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width + 1, cell.inner_text()
    verdict = section.locator("tr:not(.further) .verdict.differs")
    ink, paper = verdict.evaluate(
        "element => [getComputedStyle(element).color, getComputedStyle(element).backgroundColor]"
    )
    assert ink != paper
    assert section.locator("thead").is_visible() is (width == 1440)


def test_the_points_open(visit: Open, claims_page: Path) -> None:
    page = visit(claims_page).page
    details = page.locator("#claims details")
    points = details.locator("li")
    assert points.first.is_hidden()
    details.locator("summary").click()
    said = [each.replace("\u00a0", " ") for each in points.all_inner_texts()]
    assert said[0].startswith("pass path.rtt = 20 ms: 90.1 (90 … 90.2) %, n = 3, against 50.1 (50 … 50.2) %")
    assert said[1].startswith("fail path.rtt = 40 ms")
    page.get_by_role("link", name="Claims").click()
    assert page.url.endswith("#claims")
