# SPDX-License-Identifier: Apache-2.0
"""What the agent loads before it knows the plan, and what is kept of a kernel's command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from howdah.agent.provenance import boot_parameters

ROOT = Path(__file__).resolve().parents[2]
# Of the standard library, with all that each brings.
NEEDLESS = {"decimal", "fractions", "hashlib", "lzma", "platform", "random", "shutil", "statistics", "tempfile"}
# For some plans only.
LATER = {
    "howdah.agent.calibration",
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
        place = ROOT / name.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").exists(), name


_LATER = """\
import sys
sys.path.insert(0, ROOT)
from howdah.agent.start import LATER, Later, leave_for_later
leave_for_later()
from howdah.agent.__main__ import main
left = [name for name in LATER if isinstance(sys.modules[name], Later)]
import subprocess, inspect
print(*left, subprocess.run(["true"]).returncode, inspect.signature(lambda a: a), type(sys.modules["inspect"]).__name__)
"""


def test_what_hardly_a_run_uses_is_loaded_when_it_is_used() -> None:
    """A dataclass of the agent without a docstring would load inspect."""
    program = _LATER.replace("ROOT", repr(str(ROOT)))
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)
    assert done.stdout == "inspect subprocess 0 (a) module\n", done.stderr


def test_parameters_are_kept_and_nothing_else() -> None:
    line = (
        "mem=64M root=/home/somebody/x.y=z rootfstype=hostfs tcp_cubic.hystart=1 quiet tcp_cubic.hystart=0 a.b= init\n"
    )
    assert boot_parameters(line) == {"tcp_cubic.hystart": "0", "a.b": ""}
