# SPDX-License-Identifier: Apache-2.0
"""The SEARCH slides in the atlas: their entries, their runs, and every number that they print."""

from __future__ import annotations

import pytest

from tests.unit.atlas_paper import Paper, profile

# Runs of the full atlas and of the quick one, controls included.
RUNS = {
    "search-geo": (80, 3),
    "search-concept": (30, 6),
    "search-links": (120, 18),
    "search-wifi": (120, 30),
    "search-memory": (20, 4),
    "search-exit-queue": (60, 6),
    "search-challenges": (20, 2),
    "search-algorithm": (40, 4),
}
PAPER = Paper("SEARCH_", "search", tuple(RUNS))
PRINTED = {
    "SEARCH_params": ["0.35", "['0', '2']"],
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


@pytest.mark.parametrize("printed", ["GEO paths varies with a period of 3.33", "LEO paths varies with a period of 3.33",
                                     "WiFi paths varies with a period of 3.75", "LTE paths varies with a period of 2.8",
                                     "3.5 RTTs balance"])  # fmt: skip
def test_periods_of_recordings_are_told_and_not_measured(printed: str) -> None:
    [claim] = [claim for claim in profile("search-links").claims if printed in claim.says]
    assert claim.unsupported


@pytest.mark.parametrize("size", ["121 bytes", "60 bytes (72 with", "HyStart's are 18", "100 (156 with"])
def test_sizes_that_cannot_be_measured_are_told(size: str) -> None:
    [claim] = [claim for claim in PAPER.claims if size in claim.says]
    assert claim.unsupported


def test_the_satellite_is_the_slides() -> None:
    cells = list(profile("search-geo").cells())
    assert {(cell.scenario.path.rate, cell.scenario.path.rtt) for cell in cells} == {(144_000_000, 600_000)}
