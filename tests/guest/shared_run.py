# SPDX-License-Identifier: Apache-2.0
"""Runs that tests only read: each plan is run once in a session, whichever test, file or worker asks for it first.

Runs of one plan are equal (test_repeatability.py): nobody learns more from a second one. A guest that an earlier
session ran is not run again while nothing that decides its run has changed (remembered_run.py). A test that changes its
run, that compares two runs of one plan, or that is about how guests are run, calls ``guest_run.run``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from howdah.build.turn import turn
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, read_json
from tests.guest.guest_run import analysed, run
from tests.guest.remembered_run import key_of, recall, remember

_WHOLE = ".whole"  # of a run that every stage has been through: others were interrupted
_places: list[Path] = []


def share_runs_in(place: Path) -> None:
    """Keep them there: one directory of the session, whichever of its workers this is."""
    place.mkdir(exist_ok=True)
    _places[:] = [place]


def shared_run(engine: UmlEngine, plan: Plan) -> tuple[RunDirectory, dict[str, Any]]:
    """The run of a plan, for which the engine is prepared, and its verdict. Its files are for reading only."""
    (place,) = _places
    key = key_of(engine, plan)
    directory = RunDirectory(place / key)
    with turn(place / f".lock-{key}", lambda: None):
        if not (directory.path / _WHOLE).exists():
            shutil.rmtree(directory.path, ignore_errors=True)
            if recall(key, directory.path):
                analysed(directory, plan)
            else:
                _, verdict = run(engine, plan, directory.path)
                if verdict["verdict"] != "invalid" and not plan.collect.cpu:  # processor time is that of one moment
                    remember(key, directory)
            (directory.path / _WHOLE).touch()
    return directory, read_json(directory.verdict)
