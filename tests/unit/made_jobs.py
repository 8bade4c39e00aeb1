# SPDX-License-Identifier: Apache-2.0
"""Jobs as one batch, without profiles and indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from howdah.profile import Profile
from howdah.work.batch import Listener, run_queue
from howdah.work.experiment import PlannedRun
from howdah.work.job import Executor, Job, Outcome
from howdah.work.local import WORKER, LocalExecutor
from howdah.work.planned import Prepared, Runs
from howdah.work.prepared import find_existing_runs
from howdah.work.queue import RunQueue
from howdah.work.sweep_memory import SweepMemory


class _Given(Runs):
    """Runs that are planned already."""

    whole = True

    def __init__(self, cells: Sequence[PlannedRun]) -> None:
        self.chosen = dict(enumerate(cells))
        for number, cell in self.chosen.items():
            cell.number = number

    def __len__(self) -> int:
        return len(self.chosen)


def run_jobs(
    jobs: Sequence[Job],
    workers: int,
    again: bool,
    listen: Listener,
    worker: Sequence[str] = WORKER,
    *,
    keep_going: bool = False,
    executor: Executor | None = None,
) -> list[Outcome]:
    """Make every job whose run is not there, as ``make`` does; the outcomes in the jobs' order."""
    prepared = []
    for experiment in dict.fromkeys(job.experiment for job in jobs):
        cells = _Given([job.cell for job in jobs if job.experiment is experiment])
        memory = SweepMemory(experiment.path)
        prepared.append(Prepared(experiment, cast("Profile", None), cells, True, cells.places, memory))
    found = find_existing_runs(prepared, 1, again, lambda _text: None)
    assert not found.refused
    queue = RunQueue(found.waiting, found.there, again=again)
    outcomes = run_queue(queue, executor or LocalExecutor(workers, worker), listen, keep_going=keep_going)
    order = {job.experiment.path: number for number, job in enumerate(jobs)}
    return sorted(outcomes, key=lambda outcome: (order[outcome.job.experiment.path], outcome.cell.number))
