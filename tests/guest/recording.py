# SPDX-License-Identifier: Apache-2.0
"""What guests recorded in earlier sessions, in ``recording/`` of the cache: it is read again, not recorded again.

A recording has the run's key, which is of its plan, kernel, modules and agent, and the version of the engine's own
code. Runs with one key have equal tables (test_repeatability.py makes two each time), so nobody learns more from a
second one. Everything after the guest (ingest, measure, judge) is done anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from howdah.build.cache import Cache
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.memory import remembered_sha256
from howdah.record.provenance import run_key
from tests.guest.guest_run import ignore

KIND = "recording"
UNUSED_S = 14 * 24 * 3600


def recording_key(engine: UmlEngine, plan: Plan) -> str:
    """The content address of what a guest records of a plan, for which the engine is prepared."""
    parts = [run_key(plan.to_json(), engine.prepare([plan], ignore)), engine.wiring, _engine_sha256()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _engine_sha256() -> str:
    return remembered_sha256([UmlEngine.__module__])


def restore(key: str, directory: RunDirectory) -> bool:
    """Fill raw/ of a run with what was recorded before; False where nothing was."""
    cache = Cache()
    found = cache.find(KIND, key)
    if found is None:
        return False
    os.utime(found)
    shutil.copytree(found, directory.raw)
    return True


def keep(key: str, directory: RunDirectory, verdict: dict[str, Any]) -> None:
    """Keep raw/ of a run that the engine carried out without a fault; remove what no session has used for two weeks."""
    if not all(check["ok"] for check in verdict["checks"] if check["stage"] == "engine"):
        return
    cache = Cache()

    def copy(entry: Path, _log: Path) -> None:
        shutil.copytree(directory.raw, entry, dirs_exist_ok=True)

    try:
        cache.build(KIND, key, copy)
        for entry in cache.entries(KIND):
            if time.time() - entry.stat().st_mtime > UNUSED_S:
                shutil.rmtree(entry, ignore_errors=True)
    except (OSError, HowdahError):
        return  # another session removed it first, or the disk is full: this session has its run
