# SPDX-License-Identifier: Apache-2.0
"""Checks for the ``ns2`` engine: the simulator, in the release for which the parameter sets are declared."""

from __future__ import annotations

import shutil
import subprocess

from howdah.distribution import installing
from howdah.engine.engine import MISSING, OK, EngineCheck
from howdah.profile.machine import declared

NS, NS2 = "ns", "ns2"
_ENGINE = "ns2"
_ASK = "puts [ns-version]\nexit 0\n"
_PATIENCE_S = 30


def checks() -> list[EngineCheck]:
    """Start the simulator and check its version."""
    if shutil.which(NS) is None:
        return [_missing("the simulator")]
    wanted = declared().release
    found = _version()
    if found is None:
        return [_missing("does not start, or is another program of that name")]
    if f"ns-2 {found}" != wanted:
        return [_missing(f"it is ns-2 {found}; the declared sets are of {wanted}")]
    return [EngineCheck(_ENGINE, NS, OK, f"tried: {wanted}, a model; for controls alone")]


def _missing(found: str) -> EngineCheck:
    return EngineCheck(_ENGINE, NS, MISSING, found, installing(NS2))


def _version() -> str | None:
    try:
        answer = subprocess.run(
            [NS, "/dev/stdin"], input=_ASK, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = answer.stdout.split()
    return lines[0] if answer.returncode == 0 and len(lines) == 1 else None
