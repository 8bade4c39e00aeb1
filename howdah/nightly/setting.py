# SPDX-License-Identifier: Apache-2.0
"""On which kernels and paths the experiments of a night ran, in a line each."""

from __future__ import annotations

from collections.abc import Callable

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
            points: dict[str, list[Path]] = {}
            for run in runs:
                if run.plan:
                    points.setdefault(run.point, []).append(run.plan.path)
            words += dict.fromkeys(_of_a_point(paths) for paths in points.values())
        found[experiment] = "; ".join(words)
    return found


def _of_a_point(paths: list[Path]) -> str:
    """``50 Mbit/s, 39.9 ms … 40.1 ms, buffer 250 kB``: repetitions perturb the path of a point."""
    rates = _range([path.rate_bits_per_second for path in paths], rate)
    delays = _range([path.rtt_us for path in paths], delay)
    return f"{rates}, {delays}, buffer {_range([path.buffer_bytes for path in paths], size)}"


def _range(values: list[int], written: Callable[[int], str]) -> str:
    return " … ".join(dict.fromkeys((written(min(values)), written(max(values)))))
