# SPDX-License-Identifier: Apache-2.0
"""Runs one cell of a profile alone on one core, and reads from its record where the time went."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.engine.registry import engine
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory, read_json
from howdah.record.run import EngineReport

ROOT = Path(__file__).parents[2]
LONG_FAT = ROOT / "profiles" / "long-fat-400mbit-240ms.yaml"


@dataclass(frozen=True)
class Simulation:
    """A finished run. ``engine`` is the engine's report, ``agent`` agent.json."""

    directory: RunDirectory
    plan: Plan
    engine: EngineReport
    agent: dict[str, Any]
    processor_s: float  # user and system time of everything the run started

    def phase(self, name: str) -> tuple[float, float]:
        """Simulated and wall seconds of a phase of the agent; the wall clock is the host's."""
        found = next(item for item in self.agent["phases"] if item["phase"] == name)
        return (found["end_ns"] - found["start_ns"]) / 1e9, found["wall_us"] / 1e6

    @property
    def wall_s(self) -> float:
        """From the start of the kernel's process to its end."""
        return float(self.engine.engine.guest_wall_s or 0.0)


def single_plan(profile: Path, overrides: Sequence[str]) -> Plan:
    """The first cell of a profile, unperturbed."""
    cells = load(profile, [*overrides, "repetitions=1"]).cells()
    return compile_plan(next(iter(cells)))


def simulate(plan: Plan, place: Path, cores: int = 1) -> Simulation:
    """Run the plan in the new directory ``place``. The build, if there is one, comes first and is not measured."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    directory = RunDirectory(place)
    directory.plan.write_text(plan.to_json())
    found = engine(plan.engine)
    found.prepare([plan], _silent)
    before = _processor_s()
    with some_cores(cores):
        report = found.run(directory, plan, _silent)
    used = _processor_s() - before
    return Simulation(directory, plan, report, read_json(directory.raw / "agent.json"), used)


@contextmanager
def some_cores(number: int = 1) -> Iterator[None]:
    """This process and what it starts stay on so many cores, or on all where there are fewer."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[-number:]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _silent(_what: str, _done: int, _of: int) -> None:
    pass
