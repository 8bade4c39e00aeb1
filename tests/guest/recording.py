# SPDX-License-Identifier: Apache-2.0
"""What guests recorded in earlier sessions, in ``recording/`` of the cache: it is read again, not recorded again.

For runs of which a test changes the plan and nothing else. A recording has the run's key, which is of its plan, kernel,
modules and agent, and the version of the engine's own code. Runs with one key have equal tables (test_repeatability.py
makes two each time), so nobody learns more from a second one. Everything after the guest is done anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from howdah.build.cache import Cache
from howdah.engine.ending import EXIT_FILE
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, read_json
from howdah.record.memory import remembered_sha256
from howdah.record.provenance import run_key
from tests.guest import guest_run

KIND = "recording"
UNUSED_S = 14 * 24 * 3600


def recording_key(engine: UmlEngine, plan: Plan) -> str:
    """The content address of what a guest records of a plan, for which the engine is prepared."""
    parts = [run_key(plan.to_json(), engine.prepare([plan], guest_run.ignore)), engine.wiring, _engine_sha256()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _engine_sha256() -> str:
    return remembered_sha256([UmlEngine.__module__])


def boot(engine: UmlEngine, plan: Plan, path: Path) -> RunDirectory:
    """As ``guest_run.boot``, but for share/: from what was recorded before, if it was."""
    cache, key = Cache(), recording_key(engine, plan)
    directory = RunDirectory(path)
    if (found := cache.find(KIND, key)) is not None:
        with suppress(OSError):  # another session removed it
            shutil.copytree(found, path, dirs_exist_ok=True)
            os.utime(found)
            return directory
        shutil.rmtree(path, ignore_errors=True)
    guest_run.boot(engine, plan, path)
    if read_json(directory.raw / EXIT_FILE)["exit"] == 0:
        _keep(cache, key, directory)
    return directory


def run(
    engine: UmlEngine, plan: Plan, path: Path, carried_out: Plan | None = None
) -> tuple[RunDirectory, dict[str, Any]]:
    """As ``guest_run.run``: for runs that no test has changed anything for but the plan."""
    directory = boot(engine, carried_out or plan, path)
    directory.plan.write_text(plan.to_json(), encoding="utf-8")
    return directory, guest_run.read(directory, plan)


def _keep(cache: Cache, key: str, directory: RunDirectory) -> None:
    """Keep it; remove what no session has used for two weeks. A full disk keeps nothing: this session has its run."""

    def copy(entry: Path, _log: Path) -> None:
        shutil.copytree(directory.path, entry, dirs_exist_ok=True, ignore=shutil.ignore_patterns("share"))

    with suppress(OSError, HowdahError):
        cache.build(KIND, key, copy)
        for entry in cache.entries(KIND):
            if time.time() - entry.stat().st_mtime > UNUSED_S:
                shutil.rmtree(entry, ignore_errors=True)
