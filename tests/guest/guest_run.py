# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in a guest and through every later stage, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.ingest import ingest
from howdah.judge import judge
from howdah.measure import measure
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.run.directory import RunDirectory

ROOT = Path(__file__).parents[2]
QUICK = ROOT / "profiles" / "quick.yaml"


def ignore(_what: str, _done: int, _of: int) -> None:
    """No progress display."""


def plan_of(*overrides: str, profile: Path = QUICK) -> Plan:
    """The plan of the first run of a profile."""
    return compile_plan(next(iter(load(profile, overrides).cells())))


def require_engine() -> UmlEngine:
    """The engine with everything built, or a skip with what is missing."""
    engine = UmlEngine()
    lacks = engine.lacks()
    if lacks:
        pytest.skip(f"the uml engine cannot run here: {lacks[0]}")
    engine.prepare([plan_of()], ignore)
    return engine


def boot(engine: UmlEngine, plan: Plan, path: Path) -> RunDirectory:
    """Only the guest: raw/ and no more."""
    directory = RunDirectory(path)
    directory.raw.mkdir(parents=True)
    directory.share.mkdir()
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    engine.run(directory, plan, ignore)
    return directory


def run(
    engine: UmlEngine, plan: Plan, path: Path, carried_out: Plan | None = None
) -> tuple[RunDirectory, dict[str, Any]]:
    """Everything: the run directory and its verdict.

    With ``carried_out`` the guest follows that plan, and all later stages believe it was ``plan``.
    """
    directory = boot(engine, carried_out or plan, path)
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    ingest(directory)
    measure(directory, plan)
    return directory, judge(directory, plan)


def failures(verdict: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Stage and name of every failed check, and its message."""
    return {(check["stage"], check["name"]): check["message"] for check in verdict["checks"] if check["ok"] is False}
