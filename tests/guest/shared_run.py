# SPDX-License-Identifier: Apache-2.0
"""Runs that tests only read: each plan is run once in a session, whichever test, file or worker asks for it first.

Runs of one plan are equal (test_repeatability.py): nobody learns more from a second one. A test that changes its run,
or that compares two runs of one plan, calls ``guest_run.run``.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from howdah.build.turn import turn
from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, read_json
from tests.guest.guest_run import run

_WHOLE = ".whole"  # of a run that every stage has been through: others were interrupted
_places: list[Path] = []


def share_runs_in(place: Path) -> None:
    """Keep them there: one directory of the session, whichever of its workers this is."""
    place.mkdir(exist_ok=True)
    _places[:] = [place]


def shared_run(engine: UmlEngine, plan: Plan) -> tuple[RunDirectory, dict[str, Any]]:
    """The run of a plan, for which the engine is prepared, and its verdict. Its files are for reading only."""
    (place,) = _places
    key = hashlib.sha256(f"{engine.wiring} {plan.to_json()}".encode()).hexdigest()[:20]
    directory = RunDirectory(place / key)
    with turn(place / f".lock-{key}", lambda: None):
        if not (directory.path / _WHOLE).exists():
            shutil.rmtree(directory.path, ignore_errors=True)
            run(engine, plan, directory.path)
            (directory.path / _WHOLE).touch()
    return directory, read_json(directory.verdict)
