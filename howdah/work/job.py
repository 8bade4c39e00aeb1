# SPDX-License-Identifier: Apache-2.0
"""The states of a run in a batch (job, work in progress, outcome), and the interface of an executor, which makes the
runs: processes of this machine (local.py) or a cluster's workers."""

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
    """A cell and its experiment, whose lock the caller holds."""

    experiment: ExperimentDirectory
    cell: PlannedRun

    @property
    def name(self) -> str:
        return f"{self.experiment.path.name}/{self.cell.directory_name}"

    @cached_property
    def expected_core_s(self) -> float:
        """Expected core seconds (``work/cost.py``), cached because the time left needs them often."""
        return expected_core_s(self.cell.plan)


@dataclass
class Outcome:
    """How a job ended. ``verdict`` is None if there is an ``error``. ``worker`` names the machine, unless it is this
    one. ``failed``: the run stopped early and is invalid for that reason.
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
    """A run in progress, as shown to the user."""

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
        """The share of its simulated time that has passed, 0 to 1."""
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
    """Progress of a batch: the number of all jobs, the expected core seconds (``work/cost.py``) of jobs not begun, the
    number of experiments, and a summary of the outcomes that were reported and are no longer held."""

    total: int
    waiting_core_s: float = 0.0
    experiments: int = 1
    past: Past = field(default_factory=Past)


class Executor(Protocol):
    """Makes runs in the order of the jobs it is given. Several batches may use it in turn, each with an ``open``."""

    @property
    def active(self) -> Sequence[Work]:
        """Runs in progress."""
        ...

    @property
    def handed(self) -> Sequence[Job]:
        """Jobs that were handed out and have not begun."""
        ...

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Prepare what these jobs need. If ``total`` is given, more jobs will follow, up to that number.

        Raise HowdahError if they cannot be made there.
        """
        ...

    def has_room(self) -> bool:
        """Return whether another job can be given now."""
        ...

    def give(self, job: Job) -> None:
        """Start a job now or as soon as possible. Raise HowdahError if that fails."""
        ...

    def wait(self, timeout_s: float) -> list[Outcome]:
        """Return outcomes of jobs that have ended, after ``timeout_s`` at the latest. Finished runs have their final
        names."""
        ...

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Publish the progress of the batch for ``howdah serve``."""
        ...

    def kill(self) -> None:
        """Kill every run that was given, and remove what it left."""
        ...

    def close(self) -> None:
        """Release at the end of a batch what no further batch needs."""
        ...
