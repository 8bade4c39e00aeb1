# SPDX-License-Identifier: Apache-2.0
"""On which kernels and paths the experiments of a night ran, in a line each."""

from __future__ import annotations

from howdah.errors import HowdahError
from howdah.nightly.night import Night
from howdah.number import delay, rate, size
from howdah.plan.path import Path
from howdah.report.results import read_shown


def settings(night: Night) -> dict[str, str]:
    """By experiment: the kernel that it asks for and that ran, and the paths of its runs."""
    found = {}
    for experiment, kernel in sorted({cell.experiment: cell.kernel for cell in night.cells}.items()):
        words, path = [kernel], night.runs / experiment
        if (path / "experiment.json").exists():
            try:
                runs = [run for run in read_shown(path).runs if run.plan]
            except HowdahError:
                runs = []  # the problems have it
            words += sorted({run.kernel for run in runs} - {kernel})
            words += dict.fromkeys(_path(run.plan.path) for run in runs if run.plan)
        found[experiment] = "; ".join(words)
    return found


def _path(path: Path) -> str:
    """``50 Mbit/s, 40 ms, buffer 250 kB``."""
    return f"{rate(path.rate_bits_per_second)}, {delay(path.rtt_us)}, buffer {size(path.buffer_bytes)}"
