# SPDX-License-Identifier: Apache-2.0
"""What the agent loads before it knows the plan: in a guest, each module of it costs more than most of a short run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of the standard library, with all that each brings.
NEEDLESS = {"decimal", "fractions", "hashlib", "lzma", "platform", "random", "shutil", "statistics", "tempfile"}
# For some plans only.
LATER = {
    "howdah.agent.kernel_part",
    "howdah.agent.timer_lateness",
    "howdah.agent.part",
    "howdah.agent.profiling",
    "howdah.agent.traffic.flent",
    "howdah.agent.traffic.http",
    "howdah.agent.traffic.program",
    "howdah.agent.traffic.stack",
    "howdah.agent.wiring.mininet",
}


def test_the_agent_loads_what_every_plan_needs(python: str) -> None:
    program = "import sys, howdah.agent.__main__; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-S", "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "howdah.agent.run" in loaded
    assert loaded & (NEEDLESS | LATER) == set()


def test_what_it_loads_later_is_there() -> None:
    for name in LATER:
        assert (ROOT / name.replace(".", "/")).with_suffix(".py").exists(), name
