# SPDX-License-Identifier: Apache-2.0
"""What verify says: of many runs, of files beside them, and of a run in several kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.command.verify import _text
from howdah.place import DOCS, PROFILES
from howdah.profile import load
from howdah.record.directory import RunDirectory, write_json
from howdah.verify.finding import Discrepancy, Report
from howdah.verify.run import verify_run
from howdah.work.compiled import compile_plans
from tests.unit.recorded_run import make_recorded_experiment, recorded_compiler

CHECKED = ["4 files against their digests"]


def _run(name: str, *findings: Discrepancy, notes: tuple[str, ...] = ()) -> Report:
    claimed = ["kernel image a1", f"made {name}"]
    return Report(f"theirs/mine/{name}", list(CHECKED), list(findings), notes=list(notes), claimed=claimed)


def _said(*reports: Report) -> list[str]:
    return _text(list(reports), [each.state for each in reports]).splitlines()


def test_runs_that_are_alike_are_said_once() -> None:
    said = _said(
        Report("theirs/mine", ["claims.json"]), _run("a"), _run("b"), _run("c", notes=("its data were removed",))
    )
    assert said[:2] == ["✓ theirs/mine: verified", "    checked: claims.json"]
    assert said[2:6] == [
        "✓ theirs/mine, 2 runs: verified",
        "    a, b",
        "    claimed, cannot be checked: kernel image a1; made a; made b",
        "    checked: 4 files against their digests",
    ]
    assert said[6:8] == ["✓ theirs/mine/c: verified", "    its data were removed"]
    assert said[-1] == "4 verified"


def test_what_differs_is_last_and_by_itself() -> None:
    wrong = Discrepancy("metrics.json", "it was changed")
    said = _said(_run("a", wrong), _run("b"), _run("c", wrong), _run("d"))
    assert [line for line in said if line.startswith(("✓", "✕"))] == [
        "✓ theirs/mine, 2 runs: verified",
        "✕ theirs/mine/a: differs",
        "✕ theirs/mine/c: differs",
    ]
    assert said.count("    metrics.json: it was changed") == 2
    assert said[-1] == "2 verified, 2 differs"


def test_experiments_are_not_put_together() -> None:
    two = [Report(f"theirs/{name}", ["claims.json"]) for name in ("one", "two")]
    runs = [Report(f"theirs/{name}/a", list(CHECKED)) for name in ("one", "two")]
    signed = [Report(f"theirs/{name} (signature)", ["signature: me"]) for name in ("one", "two")]
    assert len([line for line in _said(*two, *runs, *signed) if line.startswith("✓")]) == 6


def test_each_of_several_kernels_was_given_a_plan(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    (plan,) = compile_plans(load(PROFILES / "quick.yaml", ["split=true", "algorithm=cubic"]))
    run.plan.write_text(plan.to_json())
    for part in ("senders", "receivers"):
        write_json(run.provenance, {"format": 1, "status": "finished", "key": "0", "plan_sha256": ""})
        missing = {each.file for each in verify_run(run).findings if "was given" in each.what}
        assert f"share/{part}/plan.json" in missing and "share/plan.json" not in missing
        (run.share / part).mkdir(parents=True)
        (run.share / part / "plan.json").write_text("{}")
    assert not [each for each in verify_run(run).findings if "was given" in each.what]


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
