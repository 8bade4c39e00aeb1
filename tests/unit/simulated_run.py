# SPDX-License-Identifier: Apache-2.0
"""A run directory around tests/golden/ns2: what ns-2 left of one transfer with losses; no simulator is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory

GOLDEN = Path(__file__).parent.parent / "golden" / "ns2"


def simulated_plan(*overrides: str) -> Plan:
    return compile_plan(load(GOLDEN / "recorded.yaml", overrides).cells()[0])


def make_simulated_run(path: Path, plan: Plan | None = None) -> RunDirectory:
    """The recording as raw/ of a run at ``path``."""
    directory = RunDirectory(path)
    directory.path.mkdir(parents=True, exist_ok=True)
    shutil.copytree(GOLDEN / "raw", directory.raw)
    directory.plan.write_text((plan or simulated_plan()).to_json(), encoding="utf-8")
    return directory
