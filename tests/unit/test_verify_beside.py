# SPDX-License-Identifier: Apache-2.0
"""``howdah verify`` of the files beside the runs: which are howdah's, and which nobody reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.place import DOCS
from tests.unit.recorded_run import make_recorded_experiment, recorded_compiler


def test_no_file_that_howdah_writes_beside_runs_is_called_a_strangers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/data-format.md has them; ``drawn.json`` was named among those of others."""
    listing = (DOCS / "data-format.md").read_text(encoding="utf-8").partition("```\nruns/")[2].partition("```")[0]
    names = re.findall(r"^    ([a-z][a-z.]*\.(?:json|yaml|html))\s", listing, re.MULTILINE)
    assert {"experiment.json", "claims.json", "drawn.json", "report.html"} <= set(names)
    path = tmp_path / "recorded"
    with recorded_compiler():
        make_recorded_experiment(path)
        for name in [*names, "mine.txt"]:
            (path / name).touch()
        main(["verify", str(path), "--runs", str(tmp_path), "--jobs", "1"])
    said = capsys.readouterr().out
    assert "not howdah's, and not checked: mine.txt\n" in said
    assert "drawn.json is not checked: it has the commands that drew figures and made tables\n" in said
