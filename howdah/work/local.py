# SPDX-License-Identifier: Apache-2.0
"""Makes runs on this machine: one process for each core, each with one run at a time."""

from __future__ import annotations

import os
import selectors
import shutil
import time
from collections.abc import Sequence

from howdah.errors import HowdahError, explain
from howdah.record.directory import PARTIAL
from howdah.work.experiment import tell_of_room
from howdah.work.job import Job, Outcome, Rest, Work
from howdah.work.maker import WORKER, Makers, Making


class LocalExecutor:
    """``workers`` runs at a time. ``command`` starts a process that makes runs."""

    def __init__(self, workers: int, command: Sequence[str] = WORKER) -> None:
        self.workers = workers
        self._makers = Makers(command)
        self._selector = selectors.DefaultSelector()
        self._making: dict[int, tuple[Work, Making]] = {}

    @property
    def active(self) -> list[Work]:
        return [work for work, _ in self._making.values()]

    @property
    def handed(self) -> list[Job]:
        return []

    def open(self, jobs: Sequence[Job], *, total: int | None = None) -> None:
        """Do nothing, because the cache has what the jobs need."""

    def has_room(self) -> bool:
        return len(self._making) < self.workers

    def give(self, job: Job) -> None:
        try:
            directory, cell = job.experiment.begin(job.cell), job.cell
            making = self._makers.give(directory, keep_data=cell.keep_data, patience_s=cell.patience_s)
        except OSError as error:
            for partial in job.experiment.path.glob(f"{PARTIAL}{job.cell.directory_name}-{os.getpid()}"):
                shutil.rmtree(partial, ignore_errors=True)
            raise HowdahError(f"cannot start the run: {explain(error)}", where=str(job.experiment.path)) from error
        key = making.output.fileno()
        self._making[key] = (Work(job), making)
        self._selector.register(making.output, selectors.EVENT_READ, key)

    def wait(self, timeout_s: float) -> list[Outcome]:
        ended = []
        for event, _ in self._selector.select(timeout=timeout_s):
            work, making = self._making[event.data]
            if making.read():
                for name, value in making.phase.items():
                    setattr(work, name, value)
                continue
            self._selector.unregister(event.fileobj)
            del self._making[event.data]
            ended.append(self._finish(work, making))
        return ended

    def _finish(self, work: Work, making: Making) -> Outcome:
        experiment, cell = work.job.experiment, work.cell
        status = self._makers.finish(making)
        outcome = Outcome(work.job, wall_s=time.monotonic() - work.started)
        if "verdict" in making.last:
            try:
                experiment.keep(cell, making.directory)
            except OSError as error:
                outcome.error = HowdahError(f"the run cannot be kept: {explain(error)}", where=str(experiment.path))
            else:
                outcome.verdict, outcome.failed = making.last["verdict"], making.last.get("failed", False)
                return outcome
        else:
            outcome.error = failure(making, status, cell.plan.run, str(experiment.path))
        tell_of_room(outcome.error, experiment)  # before the partial directory goes, which makes room
        shutil.rmtree(making.directory.path, ignore_errors=True)
        return outcome

    def show(self, outcomes: Sequence[Outcome], rest: Rest) -> None:
        """Do nothing: the command's own display shows the batch."""

    def kill(self) -> None:
        self._makers.kill()
        for _, making in self._making.values():
            shutil.rmtree(making.directory.path, ignore_errors=True)
        self._making.clear()

    def close(self) -> None:
        self._makers.end()
        self._selector.close()
        self._selector = selectors.DefaultSelector()


def failure(making: Making, status: int | None, run: str, where: str) -> HowdahError:
    """The reason why a process ended without a verdict."""
    if "error" in making.last:
        return HowdahError(making.last["error"], where=making.last["where"], hint=making.last["hint"])
    tail = making.directory.log.read_text(errors="replace").strip().splitlines()[-8:]
    return HowdahError(
        f"the process of run {run} ended with status {status} and no result",
        where=where,
        hint="\n  ".join(tail) or None,
    )
