# SPDX-License-Identifier: Apache-2.0
"""Many runs at once: in one order wherever they are made, interrupted cleanly, resumed for free."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.directory import PARTIAL
from howdah.record.reading import read_verdict
from howdah.work.executor import Executor
from howdah.work.job import Job, Outcome, Rest, Work
from howdah.work.local import LocalExecutor
from howdah.work.maker import WORKER
from howdah.work.room import LEAST_FREE_BYTES, free_bytes, tell_of_room

__all__ = ["WORKER", "Job", "Listener", "Outcome", "Rest", "Work", "run_cells"]

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

    They are made by ``executor``; without one on this machine, ``workers`` at a time. A run that was made in real time
    and is invalid is made again: the machine may have its processors free this time. In virtual time it would come out
    the same.

    One experiment after the other, the cheapest first, so that a batch that is interrupted leaves whole experiments. Of
    each, the longest runs come first, so that no core waits at the end for one that began late. An error (which is not
    about the path: that would be an invalid run) ends the batch once the runs in progress are done; with ``keep_going``
    only a full disk does. On KeyboardInterrupt (or any error here) the workers and their guests are killed and their
    partial directories removed; runs that had finished stay.
    """
    outcomes, unfinished = _sorted_out(jobs, again)
    left: dict[Path, float] = {}
    for job in unfinished:
        left[job.experiment.path] = left.get(job.experiment.path, 0.0) + job.expected_core_s
    waiting = deque(  # equal ones in their order
        sorted(unfinished, key=lambda job: (left[job.experiment.path], job.experiment.path, -job.expected_core_s))
    )
    waiting_core_s = sum(left.values())  # kept up to date: it is told several times a second, of thousands of jobs
    experiments = len({job.experiment.path for job in jobs})
    place: Executor = executor or LocalExecutor(workers, worker)
    stop = False
    try:
        if unfinished:
            place.open(list(waiting))
        while waiting or place.active or place.handed:
            while waiting and not stop and place.has_room():
                job = waiting.popleft()
                waiting_core_s -= job.expected_core_s
                try:
                    place.give(job)
                except HowdahError as error:
                    tell_of_room(error, job.experiment)
                    outcomes.append(Outcome(job, error=error))
                    stop = _meets_every_run(outcomes[-1], keep_going)
            if (stop or not waiting) and not place.active and not place.handed:
                break
            for outcome in place.wait(0.5):
                outcomes.append(outcome)
                stop = stop or _meets_every_run(outcome, keep_going)
            handed_core_s = sum(job.expected_core_s for job in place.handed)
            rest_core_s = handed_core_s + (0.0 if stop or not waiting else waiting_core_s)
            listen(list(place.active), outcomes, Rest(len(jobs), rest_core_s, experiments))
    except BaseException:
        place.kill()
        for path in {job.experiment.path for job in jobs}:  # also of a run that was only just being begun
            for partial in path.glob(f"{PARTIAL}*-{os.getpid()}"):
                shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        place.close()
    order = {id(job): position for position, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: order[id(outcome.job)])


def _sorted_out(jobs: Sequence[Job], again: bool) -> tuple[list[Outcome], list[Job]]:
    """The outcomes of those that are there, and those that are to be made."""
    outcomes: list[Outcome] = []
    unfinished: list[Job] = []
    for job in jobs:
        finished = None if again else job.experiment.finished(job.cell)
        verdict = read_verdict(finished)["verdict"] if finished is not None else None
        if verdict is None or (verdict == "invalid" and not _has_virtual_clock(job.cell.plan)):
            unfinished.append(job)
        else:
            outcomes.append(Outcome(job, verdict=verdict, reused=True))
    return outcomes, unfinished


def _meets_every_run(outcome: Outcome, keep_going: bool) -> bool:
    """Whether no further run should be begun: an error (no space, no engine) that the others would meet as well."""
    if outcome.error is None:
        return False
    free = free_bytes(outcome.job.experiment)
    return not keep_going or free is None or free < LEAST_FREE_BYTES
