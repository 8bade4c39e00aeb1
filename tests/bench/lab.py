# SPDX-License-Identifier: Apache-2.0
"""``make lab`` with an empty cache, and again. Minutes of work, so only when asked for."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

PROFILE = ROOT / "profiles" / "quick.yaml"


def lab(place: Path) -> list[Figure]:
    """With a cache of its own: guest tree, kernel and modules are built. Packages and .venv stay as they are."""
    environment = {**os.environ, "HOWDAH_CACHE": str(place / "cache")}
    cores = len(os.sched_getaffinity(0))
    figures = []
    for name, target in (("make lab, empty cache", "<= 480 with 2 cores"), ("make lab, warm", "")):
        start = time.monotonic()
        command = ["make", "lab", f"PROFILE={PROFILE}"]
        with (place / "lab.log").open("ab") as log:
            subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=log, stderr=subprocess.STDOUT)
        figures.append(Figure(name, time.monotonic() - start, "s", target, f"quick profile, {cores} cores"))
    return figures
