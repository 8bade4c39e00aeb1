# SPDX-License-Identifier: Apache-2.0
"""The table of all entries: current and complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from howdah.atlas import summary as module
from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.cause import Cause
from howdah.atlas.chapter import published_of, read_chapters
from howdah.atlas.published import rows_of
from howdah.atlas.summary import BEGIN, PAGE_NAME, main, page, verdict_table
from howdah.atlas.verdict import claims_text
from howdah.errors import HowdahError
from howdah.place import DOCS, PROFILES
from tests.atlas_factory import make_atlas
from tests.claim_rows import claim_row


def test_the_page_is_current_and_has_every_entry_and_claim(tmp_path: Path) -> None:
    assert main(["--check"]) == 0, "run make references"
    text = (DOCS / PAGE_NAME).read_text(encoding="utf-8")
    rows = rows_of(published_of(read_chapters(PROFILES / "atlas", tmp_path, quick=False)))
    catalogue = read_catalogue()
    table = text.partition("\n## Every entry\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"\b[A-Z]\w*_\w+\b", table)) == sorted(entry.id for entry in catalogue.entries)
    assert claims_text([row.verdict for row in rows.values()]) in text
    unexplained = [name for name, cause in catalogue.causes.items() if cause.key == "unexplained"]
    assert [name for name in unexplained if f"`{name}`" not in text.partition("\n## Unexplained\n")[2]] == []


def test_entries_stand_by_their_verdicts(tmp_path: Path) -> None:
    catalogue = make_atlas(tmp_path).read()
    rows = {
        "made/losses": claim_row(verdict="fail", entries=["Astart_tab1"]),
        "made/window": claim_row(entries=["Astart_tab1"]),
    }
    catalogue.causes["made/losses"] = Cause("unexplained", "A run | would\ndecide it.", "", "")
    text = verdict_table(catalogue, rows)
    assert re.search(r"^\| not reproduced \|.*\bAstart_tab1\b", text, re.MULTILINE)
    assert re.search(r"^\| not measurable here \|.*\bAstart_fig16\b", text, re.MULTILINE)
    assert "| `made/losses` | A run \\| would decide it. |" in text


def test_a_page_that_is_behind_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PAGE_NAME).write_text(f"# Verdicts\n\n{BEGIN}\n\nold\n")
    monkeypatch.setattr(module, "DOCS", tmp_path)
    assert main(["--check"]) == 1
    assert "run make references" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0
    assert (tmp_path / PAGE_NAME).read_text().startswith(f"# Verdicts\n\n{BEGIN}\n\n## Every entry\n")
    with pytest.raises(HowdahError, match="lacks the mark"):
        page("# Verdicts\n")
