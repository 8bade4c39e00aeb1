# SPDX-License-Identifier: Apache-2.0
"""A page of many runs in a browser: the map over the sweep, and each run by request."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from howdah.report import results as many
from howdah.report.build import report
from tests.browser.conftest import Open
from tests.experiment_factory import Scenario, make_experiment

_RATES = tuple(range(4_000_000, 16_000_000, 500_000))


@pytest.fixture(scope="module")
def many_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    axes = tuple({"path.rate": rate} for rate in _RATES)
    scenario = Scenario(flows=1, duration_s=1.5, axes=axes, invalid=(("reno", 1),))
    root = make_experiment(tmp_path_factory.mktemp("many"), scenario)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(many, "MOST_RUNS", 20)
        patched.setattr(many, "MOST_DRAWN", 2)
        return report(root)


def test_every_run_is_reached(many_page: Path, visit: Open) -> None:
    seen = visit(many_page)
    page = seen.page
    told, table = page.locator("#rows-told"), page.locator("#rows-table tbody tr")
    expect(told).to_have_text(f"Rows 1 to 50 of {4 * len(_RATES)}.")
    expect(table).to_have_count(50)
    page.get_by_role("button", name="later rows").click()
    expect(told).to_have_text(f"Rows 51 to {4 * len(_RATES)} of {4 * len(_RATES)}.")
    expect(page.get_by_role("button", name="later rows")).to_be_disabled()
    page.get_by_role("combobox", name="verdict").select_option(label="invalid")
    expect(table).to_have_count(len(_RATES))
    for row in table.all_inner_texts():
        assert "reno" in row
        assert "invalid" in row
    assert seen.requests == []
    assert seen.complaints == []


def test_a_field_of_the_map_lists_its_runs(many_page: Path, visit: Open) -> None:
    seen = visit(many_page)
    page = seen.page
    fields = page.locator("#map tbody button")
    expect(fields).to_have_count(2 * len(_RATES) // 2)  # two neighbouring rates share a field
    fields.first.click()
    expect(page.locator("#rows-told")).to_have_text("Rows 1 to 4 of 4, of the field chosen above.")
    expect(fields.first).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="whole map").click()
    expect(page.locator("#rows-told")).to_have_text(f"Rows 1 to 50 of {4 * len(_RATES)}.")
    page.get_by_role("combobox", name="measure").select_option(label="utilisation")
    expect(page.locator("#map caption")).to_have_text("utilisation (%)")
    page.get_by_role("combobox", name="down").select_option(label="nothing")
    expect(fields).to_have_count(len(_RATES) // 2)
    assert seen.complaints == []
