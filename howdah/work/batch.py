# SPDX-License-Identifier: Apache-2.0
"""Makes many runs in a fixed order. An interruption leaves only finished runs, which a repeated command finds."""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.directory import PARTIAL
from howdah.record.verdict import read_verdict
from howdah.work.experiment import LEAST_FREE_BYTES, free_bytes, tell_of_room
from howdah.work.job import Executor, Job, Outcome, Past, Rest, Work
from howdah.work.local import LocalExecutor
from howdah.work.maker import WORKER

__all__ = ["WORKER", "Job", "Listener", "Outcome", "Rest", "Work", "run_cells"]

_TELL_EVERY_S = 0.5
Listener = Callable[[list[Work], list[Outcome], Rest], None]


def _has_virtual_clock(plan: Plan) -> bool:
    return plan.traits.virtual_clock


def run_cells(
    jobs: Sequence[Job],
    workers: int,
    again: bool,
    listen: Listener,
    worker: Sequence[str] = WORKER,
    *,
    keep_going: bool = False,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Run every job that has no finished run yet, and return the outcomes in the jobs' order.

    ``executor`` makes them; without one, this machine does, ``workers`` at a time. An invalid run in real time is made
    again, because the machine may have its processors free this time. In virtual time it would be the same.

    Experiments come one after the other, the cheapest first, so an interrupted batch leaves whole experiments. The
    longest runs of each come first, so no core waits at the end for a run that began late. A failed run ends the batch
    once the runs in progress are done; with ``keep_going`` only a full disk does. On KeyboardInterrupt (or any error
    here) the workers and their guests are killed and their partial directories removed; finished runs stay.
    """
    outcomes = run_queue(_Jobs(jobs, again), executor or LocalExecutor(workers, worker), listen, keep_going=keep_going)
    order = {id(job): position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: order[id(outcome.job)])


class JobQueue(Protocol):
    """Jobs in the order in which they are made."""

    @property
    def total(self) -> int: ...

    @property
    def experiments(self) -> int: ...

    @property
    def past(self) -> Past:
        """The sums over outcomes that are no longer held."""
        ...

    @property
    def paths(self) -> set[Path]:
        """Directories of the experiments."""
        ...

    @property
    def planned(self) -> bool:
        """Whether all jobs are known, so that ``some`` are all waiting jobs."""
        ...

    @property
    def some(self) -> list[Job]:
        """Jobs that together need everything that any job needs."""
        ...

    @property
    def waiting_core_s(self) -> float: ...

    def __len__(self) -> int:
        """The number of jobs that wait."""
        ...

    def take(self) -> Job | Outcome:
        """The next job, or its outcome if its run exists."""
        ...

    def settle(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Take outcomes that were reported; returns those that the caller keeps."""
        ...


def run_queue(queue: JobQueue, place: Executor, listen: Listener, *, keep_going: bool = False) -> list[Outcome]:
    """Make all jobs of a queue, as ``run_cells`` does; return the outcomes that the queue keeps."""
    outcomes = queue.settle([])
    stop = False
    try:
        if queue:
            place.open(queue.some, total=None if queue.planned else len(queue))
        while queue or place.active or place.handed:
            begun = time.monotonic()
            while queue and not stop and place.has_room() and time.monotonic() - begun < _TELL_EVERY_S:
                job = queue.take()
                if isinstance(job, Outcome):
                    outcomes.append(job)
                    stop = _meets_every_run(job, keep_going)
                    continue
                try:
                    place.give(job)
                except HowdahError as error:
                    tell_of_room(error, job.experiment)
                    outcomes.append(Outcome(job, error=error))
                    stop = _meets_every_run(outcomes[-1], keep_going)
            idle = not place.active and not place.handed
            if (stop or not queue) and idle:
                break
            for outcome in place.wait(0.0 if idle and place.has_room() else _TELL_EVERY_S):
                outcomes.append(outcome)
                stop = stop or _meets_every_run(outcome, keep_going)
            rest_core_s = sum(job.expected_core_s for job in place.handed) + (0.0 if stop else queue.waiting_core_s)
            rest = Rest(queue.total, rest_core_s, queue.experiments, queue.past)
            listen(list(place.active), outcomes, rest)
            place.show(outcomes, rest)
            outcomes = queue.settle(outcomes)
    except BaseException:
        place.kill()
        for path in queue.paths:  # also of a run that was only just being begun
            for partial in path.glob(f"{PARTIAL}*-{os.getpid()}"):
                shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        place.close()
    return queue.settle(outcomes)


class _Jobs:
    """A queue whose jobs are all known from the beginning."""

    past = Past()
    planned = True

    def __init__(self, jobs: Sequence[Job], again: bool) -> None:
        self._there, unfinished = _sorted_out(jobs, again)
        left: dict[Path, float] = {}
        for job in unfinished:
            left[job.experiment.path] = left.get(job.experiment.path, 0.0) + job.expected_core_s
        self._waiting = deque(  # equal ones in their order
            sorted(unfinished, key=lambda job: (left[job.experiment.path], job.experiment.path, -job.expected_core_s))
        )
        self._core_s = sum(left.values())  # kept up to date: it is told several times a second, of thousands of jobs
        self.total = len(jobs)
        self.paths = {job.experiment.path for job in jobs}
        self.experiments = len(self.paths)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def some(self) -> list[Job]:
        return list(self._waiting)

    @property
    def waiting_core_s(self) -> float:
        return self._core_s if self._waiting else 0.0

    def take(self) -> Job:
        job = self._waiting.popleft()
        self._core_s -= job.expected_core_s
        return job

    def settle(self, outcomes: list[Outcome]) -> list[Outcome]:
        there, self._there = self._there, []
        return [*there, *outcomes] if there else outcomes


def _sorted_out(jobs: Sequence[Job], again: bool) -> tuple[list[Outcome], list[Job]]:
    """Separate the outcomes of runs that exist from the jobs whose runs do not."""
    outcomes: list[Outcome] = []
    unfinished: list[Job] = []
    for job in jobs:
        finished = None if again else job.experiment.finished(job.cell)
        verdict = read_verdict(finished).verdict if finished is not None else None
        if verdict is None or (verdict == "invalid" and not _has_virtual_clock(job.cell.plan)):
            unfinished.append(job)
        else:
            outcomes.append(Outcome(job, verdict=verdict, reused=True))
    return outcomes, unfinished


def _meets_every_run(outcome: Outcome, keep_going: bool) -> bool:
    """Whether every other run would fail by this error (no space, no engine), so that none should start."""
    if outcome.error is None:
        return False
    free = free_bytes(outcome.job.experiment)
    return not keep_going or free is None or free < LEAST_FREE_BYTES
