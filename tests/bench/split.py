# SPDX-License-Identifier: Apache-2.0
"""One run in one kernel on one core, and in two kernels (``split: true``) on two, in turns."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from howdah.errors import HowdahError
from tests.bench.figure import Figure
from tests.bench.simulation import LONG_FAT, Simulation, simulate, single_plan
from tests.bench.speed import ONE_FLOW

ROUNDS = 3
# What is run: its overrides, simulated seconds, and the target of two kernels.
PATHS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "400 Mbit/s, 240 ms": ((), 30, ">= 10"),
    "10 Gbit/s, 180 ms": (("path.rate=10 Gbit/s", "path.rtt=180 ms", "path.sender_interface=25 Gbit/s"), 5, ">= 0.5"),
}


def split(place: Path) -> Iterator[Figure]:
    """Every ACK and all collectors are on, as in the profile."""
    for path, (overrides, seconds, target) in PATHS.items():
        speeds: dict[bool, list[float]] = {False: [], True: []}
        used: dict[bool, list[float]] = {False: [], True: []}
        for _round in range(ROUNDS):
            for divided in (False, True):
                long = (f"duration={seconds} s", f"measure.window.stop={seconds} s", f"split={str(divided).lower()}")
                try:
                    run = simulate(single_plan(LONG_FAT, [*ONE_FLOW, *overrides, *long]), place, cores=1 + divided)
                except HowdahError as error:
                    raise HowdahError(f"{path}, split {divided}: {error.what}", hint=error.hint) from error
                speeds[divided].append(seconds / _flows_s(run))
                used[divided].append(run.processor_s)
                shutil.rmtree(place)
        for divided, kernels in ((False, "one kernel"), (True, "two kernels")):
            listed = ", ".join(f"{speed:.3g}" for speed in speeds[divided])
            name = f"simulated s per wall s, {path}, {kernels}"
            yield Figure(name, statistics.median(speeds[divided]), "", target if divided else "", f"rounds: {listed}")
            yield Figure(f"processor time, {path}, {kernels}", statistics.median(used[divided]), "s")
        ratios = [two / one for one, two in zip(speeds[False], speeds[True], strict=True)]
        listed = ", ".join(f"{ratio:.3g}" for ratio in ratios)
        yield Figure(f"two kernels against one, {path}", statistics.median(ratios), "", "", f"rounds: {listed}")


def _flows_s(run: Simulation) -> float:
    """Wall time until the last byte of the trace is out."""
    return run.phase("flows")[1] + run.phase("quiesce")[1]
