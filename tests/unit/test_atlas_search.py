# SPDX-License-Identifier: Apache-2.0
"""The SEARCH slides in the atlas: their entries, their runs, and every number that they print."""

from __future__ import annotations

import pytest

from tests.unit.atlas_paper import Paper, profile

# Runs of the full atlas and of the quick one, controls included.
RUNS = {
    "search-geo": (80, 9),
    "search-concept": (30, 6),
    "search-links": (120, 18),
    "search-wifi": (120, 18),
    "search-memory": (20, 4),
}
PAPER = Paper("SEARCH_", "search", tuple(RUNS))
PRINTED = {
    "SEARCH_params": ["3.33", "3.75", "2.8", "3.5", "0.35", "2"],
    "SEARCH_memory": ["736 B", "2192 B", "12 B", "56 B"],
}


def test_every_entry_is_claimed_or_says_why_not() -> None:
    PAPER.check()


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    PAPER.check_runs(name, *RUNS[name])


@pytest.mark.parametrize("entry", PRINTED)
def test_what_is_printed_is_expected(entry: str) -> None:
    assert set(PRINTED[entry]) <= PAPER.expected(entry)


def test_each_link_has_the_period_that_is_printed_for_it() -> None:
    found = {
        str(claim.value.at["path.like"]): str(claim.expect.equals)
        for claim in profile("search-links").claims
        if claim.value and claim.value.metric == "rtt_period_rtts" and claim.expect and "path.like" in claim.value.at
    }
    assert found == {"paths/geo": "3.33", "paths/leo": "3.33", "paths/wifi": "3.75", "paths/lte": "2.8"}


@pytest.mark.parametrize("size", ["121 bytes", "60 bytes (72 with", "HyStart's are 18", "100 (156 with"])
def test_sizes_that_cannot_be_measured_are_told(size: str) -> None:
    [claim] = [claim for claim in PAPER.claims if size in claim.says]
    assert claim.unsupported


def test_the_satellite_is_the_slides() -> None:
    cells = list(profile("search-geo").cells())
    assert {(cell.scenario.path.rate, cell.scenario.path.rtt) for cell in cells} == {(144_000_000, 600_000)}
