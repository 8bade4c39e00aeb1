# SPDX-License-Identifier: Apache-2.0
"""A report opens in a browser wherever it lies: its address is made of the directory's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.any_directory import make_directory
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("kind", ["everything", "long"])
def test_a_report_opens(kind: str, report_page: Path, visit: Open, tmp_path: Path) -> None:
    page = make_directory(tmp_path, kind) / "report.html"
    page.write_bytes(report_page.read_bytes())
    visited = visit(page)
    assert "browser-test" in visited.page.title()
    assert visited.page.locator("svg, canvas").count() > 3
