# SPDX-License-Identifier: Apache-2.0
"""What a sweep costs before its first run: a process of its own reads the profile and takes the first job."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.profile import load
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.planned import Prepared, Runs
from howdah.work.prepared import find_existing_runs
from howdah.work.queue import RunQueue
from howdah.work.sweep_memory import SweepMemory
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

_SIDES = {1_000: (10, 10, 10), 10_000: (10, 10, 100), 1_000_000: (100, 100, 100)}
_PROFILE = """\
howdah: 1
name: wide
duration: 1 s
path:
  rate: [{rates}]
  rtt: [{times}]
  buffer: [{buffers}]
algorithm: cubic
"""


def wide_sweep(place: Path) -> Iterator[Figure]:
    """Processor time and memory of sweeps of several sizes; the least of them is planned whole."""
    for runs in _SIDES:
        command = [sys.executable, "-m", "tests.bench.wide_sweep", str(place / f"{runs}"), str(runs)]
        environment = {**os.environ, "HOWDAH_CACHE": str(place / "cache")}  # for the sweep's memory
        said = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, env=environment).stdout
        found = json.loads(said)
        name = f"a sweep of {runs} runs, to its first run, processor time"
        yield Figure(name, found["processor_s"], "s", "", f"{found['peak_mb']:.0f} MB at most")


def _measure(place: Path, runs: int) -> dict[str, float]:
    place.mkdir(parents=True)
    rates, times, buffers = _SIDES[runs]
    file = place / "wide.yaml"
    file.write_text(
        _PROFILE.format(
            rates=", ".join(f"{each} Mbit/s" for each in range(10, 10 + rates)),
            times=", ".join(f"{each} ms" for each in range(10, 10 + times)),
            buffers=", ".join(f"{each} kB" for each in range(10, 10 + buffers)),
        )
    )
    start = time.process_time()
    plans = compile_plans(load(file, confirmed_runs=runs))
    experiment = ExperimentDirectory(place / "runs")
    experiment.create()
    cells = Runs(plans, {plans[0].engine: {}})
    prepared = Prepared(experiment, plans.profile, cells, True, cells.places, SweepMemory(experiment.path))
    prepared.open()
    RunQueue(find_existing_runs([prepared], 1, False, lambda _text: None).waiting).take()
    prepared.memory.close()
    processor_s = time.process_time() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"processor_s": processor_s, "peak_mb": peak_mb}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(Path(sys.argv[1]), int(sys.argv[2]))))
