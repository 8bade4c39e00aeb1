# SPDX-License-Identifier: Apache-2.0
"""A command over files that ended well does not run again over the same ones; one that failed does."""

from __future__ import annotations

from pathlib import Path

from howdah.build.cache import Cache
from tests.remembered import run_once


def test_a_command_runs_until_it_ends_well_and_again_after_a_change(tmp_path: Path) -> None:
    files, ran, cache = tmp_path / "files", tmp_path / "ran", Cache(tmp_path / "cache")
    (files / "deep").mkdir(parents=True)
    (files / "deep" / "one").write_text("wrong")

    def check(more: str = "") -> tuple[int, int]:
        script = f"echo >> {ran}; ! grep -rq wrong {files}{more}"
        status = run_once("a check", [files], ["sh", "-c", script], cache)
        return status, len(ran.read_text())

    assert [check(), check()] == [(1, 1), (1, 2)]
    (files / "deep" / "one").write_text("right")
    assert [check(), check()] == [(0, 3), (0, 3)]
    assert check("; true") == (0, 4), "another command"
    (files / "two").write_text("wrong")
    assert check() == (1, 5)
