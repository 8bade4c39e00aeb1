# SPDX-License-Identifier: Apache-2.0
"""What verify says of many runs: what is alike once, and what differs last."""

from __future__ import annotations

from howdah.command.verify import _text
from howdah.verify.finding import Discrepancy, Report

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
        "    claimed, and not to be checked: kernel image a1; made a; made b",
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
