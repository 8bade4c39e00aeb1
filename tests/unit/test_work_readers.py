# SPDX-License-Identifier: Apache-2.0
"""Nobody reads results by another way than the one that brings them up to date and checks their digests."""

from __future__ import annotations

import ast
from functools import cache

import pytest

from howdah.place import PROJECT

_READERS = {
    "load_experiment": {"howdah/record/result.py", "howdah/work/results.py", "howdah/claim/claims.py"},
    "load_run": {
        "howdah/record/result.py",
        "howdah/work/results.py",
        "howdah/publish/underway.py",  # of runs in progress, which have no results
    },
    "refresh": {
        "howdah/work/stage.py",
        "howdah/work/results.py",
        "howdah/work/again.py",
        "howdah/work/queue.py",  # of a run whose turn has come, and that its sweep's memory does not have
    },
    "judge_claims": {
        "howdah/claim/claims.py",
        "howdah/work/results.py",
        "howdah/command/report.py",  # once it has brought the runs up to date
    },
    "run_queue": {"howdah/work/batch.py", "howdah/work/prepared.py"},
    "run_key": {"howdah/record/provenance.py", "howdah/work/planned.py"},
}


@cache
def _names() -> dict[str, set[str]]:
    """Names that each of our files uses, imports or defines."""
    found = {}
    for file in (PROJECT / "howdah").rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                names |= {alias.name for alias in node.names}
        found[str(file.relative_to(PROJECT))] = names
    return found


@pytest.mark.parametrize("function", _READERS)
def test_there_is_one_way_to_results_and_one_to_runs(function: str) -> None:
    assert {file for file, names in _names().items() if function in names} == _READERS[function]
