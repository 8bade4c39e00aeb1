# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in a guest and through every later stage, for tests."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.build.kernel_source import find_source
from howdah.build.uml_kernel import kernel_key
from howdah.engine.ending import Ending
from howdah.engine.uml import engine as engine_module
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.guest import Guest
from howdah.engine.uml.guest import boot as boot_guest
from howdah.errors import HowdahError
from howdah.ingest.run import ingest
from howdah.judge.run import judge
from howdah.measure.run import measure
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory
from howdah.record.metrics import read_metrics
from howdah.record.verdict import Check, Verdict
from tests.guest.remembering import COMMAND

ROOT = Path(__file__).parents[2]
QUICK = ROOT / "profiles" / "quick.yaml"
NEWEST = "kernel=debian-newest"


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


def require_newest() -> UmlEngine:
    """The same where Debian's newest kernel has been built, or a skip: a fresh machine would take ten minutes more."""
    engine = require_engine()
    try:
        built = Cache().find("kernel", kernel_key(find_source("debian-newest")))
    except HowdahError:
        built = None
    if built is None:
        pytest.skip("debian-newest is not built: howdah build --kernel debian-newest")
    engine.prepare([plan_of(NEWEST)], ignore)
    return engine


def boot(engine: UmlEngine, plan: Plan, path: Path) -> RunDirectory:
    """Only the guest: raw/ and no more."""
    directory = RunDirectory(path)
    directory.raw.mkdir(parents=True)
    directory.share.mkdir()
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    engine.run(directory, plan, ignore)
    return directory


def run(engine: UmlEngine, plan: Plan, path: Path, carried_out: Plan | None = None) -> tuple[RunDirectory, Verdict]:
    """Everything: the run directory and its verdict.

    With ``carried_out`` the guest follows that plan, and all later stages believe it was ``plan``.
    """
    directory = boot(engine, carried_out or plan, path)
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    return directory, analysed(directory, plan)


def analysed(directory: RunDirectory, plan: Plan) -> Verdict:
    """Every stage after the guest's; the verdict."""
    ingest(directory)
    measure(directory, plan)
    return judge(directory, plan)


@contextmanager
def agent_in(script: str, console: Path | None = None) -> Iterator[None]:
    """Guests run ``script``, which ends by running the agent; their console goes elsewhere, if asked."""

    def boot(guest: Guest, progress: Callable[[str, int, int], None]) -> Ending:
        (guest.share / "wrapper.py").write_text(script, encoding="utf-8")
        command = (guest.command[0], "-S", "/howdah/in/wrapper.py", *guest.command[guest.command.index("--in") :])
        return boot_guest(dataclasses.replace(guest, console=console or guest.console, command=command), progress)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "boot", boot)
        yield


def failures(verdict: Verdict) -> dict[tuple[str, str], str]:
    """Stage and name of every failed check, and its message."""
    return {(check.stage, check.name): check.message for check in verdict.broken}


def checks_of(verdict: Verdict) -> dict[str, Check]:
    """By stage and name."""
    return {f"{check.stage} {check.name}": check for check in verdict.checks}


def measures(directory: RunDirectory, *flows: int | None) -> dict[str, Any]:
    """Values by the measure's name, of the first flow or of these; None is of the run."""
    return {row.metric: row.value for row in read_metrics(directory).rows if row.flow in (flows or (1,))}


def howdah(*arguments: object, remembered: bool = False, **more: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, whose guests may be remembered; ``more`` is for subprocess.run."""
    program = COMMAND if remembered else (sys.executable, "-m", "howdah.command.main")
    command = [*program, *map(str, arguments)]
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace"}
    return subprocess.run(command, text=True, check=False, **{**quiet, **more})
