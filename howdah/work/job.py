# SPDX-License-Identifier: Apache-2.0
"""The three states of a run in a batch: a job, work in progress, an outcome; and the interface of what makes the runs:
processes of this machine (local.py) or a cluster's workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from howdah.errors import HowdahError
from howdah.work.cost import expected_core_s
from howdah.work.experiment import ExperimentDirectory, PlannedRun


@dataclass(frozen=True)
class Job:
    """A cell and the experiment it belongs to, whose lock the caller holds."""

    experiment: ExperimentDirectory
    cell: PlannedRun

    @property
    def name(self) -> str:
        return f"{self.experiment.path.name}/{self.cell.directory_name}"

    @cached_property
    def expected_core_s(self) -> float:
        """Expected core seconds (``work/cost.py``). Kept, because the time left needs it often."""
        return expected_core_s(self.cell.plan)


@dataclass
class Outcome:
    """How one job ended; ``verdict`` is None when there is an ``error``. ``worker`` names the machine, if not this one.

    ``failed``: the run ended before its end, and is invalid for that.
    """

    job: Job
    verdict: str | None = None
    error: HowdahError | None = None
    reused: bool = False
    wall_s: float = 0.0
    worker: str | None = None
    failed: bool = False

    @property
    def cell(self) -> PlannedRun:
        return self.job.cell


@dataclass
class Work:
    """A run in progress, as shown to the person who waits."""

    job: Job
    started: float = field(default_factory=time.monotonic)
    phase: str = "start"
    done_us: int = 0
    of_us: int = 0

    @property
    def cell(self) -> PlannedRun:
        return self.job.cell

    @property
    def share(self) -> float:
        """How much of its simulated time has passed, 0 to 1."""
        return min(max(self.done_us / self.of_us, 0.0), 1.0) if self.of_us else 0.0


@dataclass
class Past:
    """Summary of outcomes that are no longer held: their number, and sums over the runs that were made."""

    count: int = 0
    reused: int = 0
    failed: int = 0
    made: int = 0
    simulated_s: float = 0.0
    wall_s: float = 0.0
    core_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.count += 1
        self.reused += outcome.reused
        self.failed += outcome.error is not None
        if not outcome.reused and outcome.error is None:
            plan = outcome.cell.plan
            self.made += 1
            self.simulated_s += (plan.epoch_us + plan.duration_us) / 1e6
            self.wall_s += outcome.wall_s
            self.core_s += outcome.job.expected_core_s


@dataclass(frozen=True)
class Rest:
    """How far a batch is: all jobs, the expected core seconds (``work/cost.py``) of those not begun, the number of
    their experiments, and the outcomes that were reported before and are no longer held."""

    total: int
    waiting_core_s: float = 0.0
    experiments: int = 1
    past: Past = field(default_factory=Past)


class Executor(Protocol):
    """Makes runs in the order of the jobs it is given. Several batches may use it in turn, each with its ``open``."""

    @property
    def active(self) -> Sequence[Work]:
        """Runs in progress."""
        ...

    @property
    def handed(self) -> Sequence[Job]:
        """Jobs that were handed out and have not begun."""
        ...

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Prepare what these jobs need. No other jobs follow, unless ``total`` says how many there are.

        Raises HowdahError where they cannot be made there.
        """
        ...

    def has_room(self) -> bool:
        """Whether another job can be given now."""
        ...

    def give(self, job: Job) -> None:
        """Start a job now or as soon as possible. Raises HowdahError if that fails."""
        ...

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Outcomes of jobs that have ended, after ``timeout_s`` at the latest. Finished runs have their final names."""
        ...

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Publish how far the batch is, for ``howdah serve``."""
        ...

    def kill(self) -> None:
        """End every run that was given, and remove what it left."""
        ...

    def close(self) -> None:
        """Release at the end of a batch what no further batch needs."""
        ...
