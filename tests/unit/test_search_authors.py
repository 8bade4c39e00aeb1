# SPDX-License-Identifier: Apache-2.0
"""The profile that runs a user's copy of the SEARCH authors' module beside this project's SEARCH."""

from __future__ import annotations

from pathlib import Path

from howdah.place import PROFILES
from howdah.profile import load

PROFILE = PROFILES / "search-authors.yaml"
# What is needed of their file: it registers cubic_search.
MODULE = """static struct tcp_congestion_ops cubicsearch __read_mostly = {
	.owner = THIS_MODULE,
	.name = "cubic_search",
};
"""
OURS = {"search-2-cubic", "search-3-cubic", "cubic-no-hystart"}


def test_without_a_copy_it_runs_our_versions() -> None:
    found = load(PROFILE)
    assert {cell.scenario.algorithm for cell in found.cells()} == OURS


def test_a_copy_runs_beside_ours(tmp_path: Path) -> None:
    copy = tmp_path / "tcp_cubic_search.c"
    copy.write_text(MODULE, encoding="utf-8")
    found = load(PROFILE, [f"modules=[{copy}]", "algorithm=[authors, search-3-cubic]"])
    assert {cell.scenario.algorithm for cell in found.cells()} == {"authors", "search-3-cubic"}
    assert {Path(item.file) for cell in found.cells() for item in cell.scenario.modules} == {copy}
