# SPDX-License-Identifier: Apache-2.0
"""Runs that tests only read: each plan is run once in a session, whichever test, file or worker asks for it first.

Runs of one plan are equal (test_repeatability.py): nobody learns more from a second one. A guest that an earlier
session ran is not run again while nothing that decides its run has changed (remembered_run.py). A test that changes its
run, that compares two runs of one plan, or that is about how guests are run, calls ``guest_run.run``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from howdah.build.cache import content_key, locked
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check, Verdict, read_verdict
from tests.guest.guest_run import analysed, checks_of, failures, run
from tests.guest.remembered_run import key_of, may_be_remembered, recall, remember

_WHOLE = ".whole"  # of a run that every stage has been through: others were interrupted
_places: list[Path] = []


def share_runs_in(place: Path) -> None:
    """Keep them there: one directory of the session, whichever of its workers this is."""
    place.mkdir(exist_ok=True)
    _places[:] = [place]


def shared_run(engine: UmlEngine, plan: Plan, carried_out: Plan | None = None) -> tuple[RunDirectory, Verdict]:
    """The run of a plan and its verdict. Its files are for reading only.

    With ``carried_out`` the guest follows that plan, and all later stages believe it was ``plan``.
    """
    (place,) = _places
    guests = carried_out or plan
    key = key_of(engine, guests)
    directory = RunDirectory(place / (content_key(key, plan.to_json()) if carried_out else key))
    with locked(place / f".lock-{directory.name}", lambda: None):
        if not (directory.path / _WHOLE).exists():
            shutil.rmtree(directory.path, ignore_errors=True)
            if recall(key, directory.path):
                directory.plan.write_text(plan.to_json(), encoding="utf-8")
                analysed(directory, plan)
            else:
                _, verdict = run(engine, plan, directory.path, carried_out)
                if _is_asked_for_again(guests) and verdict.verdict != "invalid":
                    remember(key, directory)
            (directory.path / _WHOLE).touch()
    return directory, read_verdict(directory)


def counting_run(engine: UmlEngine, plan: Plan) -> tuple[RunDirectory, Verdict]:
    """A shared run that is not invalid: such a one proves nothing."""
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict != "invalid", failures(verdict)
    return directory, verdict


def valid_run(
    engine: UmlEngine, plan: Plan, carried_out: Plan | None = None
) -> tuple[Plan, RunDirectory, dict[str, Check]]:
    """A shared run none of whose checks failed: the plan, the run, and the checks by stage and name."""
    directory, verdict = shared_run(engine, plan, carried_out)
    assert failures(verdict) == {}
    return plan, directory, checks_of(verdict)


def _is_asked_for_again(plan: Plan) -> bool:
    """Programs of a test's own have another path each time."""
    return may_be_remembered(plan) and not any(flow.program for flow in plan.flows)
