# SPDX-License-Identifier: Apache-2.0
"""Commands whose guests are remembered from one session of tests to the next, as those of ``shared_run.py`` are.

``python -m tests.guest.remembering run …`` is ``howdah run …``. A test that calls a command itself asks for the fixture
``remembered_guests``, which has the processes that make its runs started by this module.

A guest is not booted where one with the same key has left the raw files of a valid run, and its engine's report with
them. Tables, measures, verdicts and all that a command does with a run are made in every session. What else a guest
leaves is not there: its console, its log, and share/. A test that is about these or about how guests are started, or
that repeats a run, has new ones made: ``new_guests``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.engine.engine import RunProgress
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.vm.engine import VmEngine
from howdah.errors import HowdahError
from howdah.place import OWN_PYTHON
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineReport
from howdah.record.verdict import read_verdict
from howdah.work import local, prepared, stage, worker
from tests.guest.remembered_run import REPORT, key_of, may_be_remembered, recall, remember

if TYPE_CHECKING:
    import pytest

COMMAND = (*OWN_PYTHON, "-m", "tests.guest.remembering")
WORKER = (*COMMAND, "--worker")  # makes runs
_Run = Callable[[Any, RunDirectory, Plan, RunProgress], EngineReport]
_new: dict[Path, str] = {}  # keys of runs that this process makes now


def _remembered(run: _Run) -> _Run:
    def remembered(engine: Any, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        if not may_be_remembered(plan):
            return run(engine, directory, plan, progress)
        try:
            key = key_of(engine, plan)
        except HowdahError:  # of a module that does not build; the run says it
            return run(engine, directory, plan, progress)
        recalled = RunDirectory(directory.path / "recalled")
        if recall(key, recalled.path) and (recalled.path / REPORT).exists():
            shutil.copytree(recalled.raw, directory.raw, dirs_exist_ok=True)
            report = EngineReport.model_validate_json((recalled.path / REPORT).read_text(encoding="utf-8"))
            shutil.rmtree(recalled.path)
            return report
        shutil.rmtree(recalled.path, ignore_errors=True)  # a test remembered it, and not what its engine reported
        report = run(engine, directory, plan, progress)
        (directory.path / REPORT).write_text(report.model_dump_json(exclude_unset=True), encoding="utf-8")
        _new[directory.path] = key
        return report

    return remembered


def _analysed(analyse: Callable[..., None]) -> Callable[..., None]:
    def analysed(directory: RunDirectory, *more: Any) -> None:
        key = _new.pop(directory.path, None)
        try:
            analyse(directory, *more)
            if key is not None and read_verdict(directory).verdict != "invalid":
                remember(key, directory)
        finally:
            if key is not None:
                (directory.path / REPORT).unlink()

    return analysed


def new_guests(patch: pytest.MonkeyPatch) -> None:
    """For tests of a module that otherwise has ``remembered_guests``."""
    patch.setattr(prepared, "WORKER", local.WORKER)


def begin() -> None:
    """From now on this process and those that it forks remember."""
    for engine in (UmlEngine, VmEngine):
        setattr(engine, "run", _remembered(engine.run))  # noqa: B010 -- a method
    stage.analyse = _analysed(stage.analyse)


if __name__ == "__main__":
    begin()
    if sys.argv[1] == "--worker":
        del sys.argv[1]
        sys.exit(worker.main())
    from howdah.command.main import program

    sys.exit(program())
