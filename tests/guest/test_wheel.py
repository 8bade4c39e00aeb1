# SPDX-License-Identifier: Apache-2.0
"""howdah as pip installs it makes runs: the guest gets its agent, collectors and modules from the wheel."""

from __future__ import annotations

import json
from pathlib import Path

from tests.guest.guest_run import require_engine
from tests.wheel import ROOT, build, install, run


def test_quick_runs_from_a_wheel_outside_the_checkout(tmp_path: Path) -> None:
    require_engine()
    wheel, _ = build(ROOT, tmp_path / "built")
    programs = install(wheel, tmp_path / "env")
    before = {file for file in (tmp_path / "env").rglob("*") if file.suffix != ".pyc"}
    work = tmp_path / "work"
    work.mkdir()
    kept = tmp_path / "kept"
    # A plug-in's module is built from the sources in the wheel; nothing but this run asks for a rate of 19 Mbit/s.
    changed = ["--set", "path.rate=19 Mbit/s", "--set", "algorithm=[cubic, search]"]
    done = run(programs / "howdah", "run", "quick", *changed, cwd=work, HOWDAH_RUNS=str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    verdicts = [json.loads(file.read_text()) for file in kept.glob("quick/*/verdict.json")]
    assert [verdict["verdict"] for verdict in verdicts] == ["pass", "pass"]
    assert (kept / "quick" / "report.html").stat().st_size > 100_000
    assert list(work.iterdir()) == []
    after = {file for file in (tmp_path / "env").rglob("*") if file.suffix != ".pyc"}
    assert {file for file in after - before if file.name != "__pycache__"} == set()
