# SPDX-License-Identifier: Apache-2.0
"""The queue of a batch: runs of one or more experiments, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from howdah.errors import HowdahError
from howdah.record.digest import check
from howdah.record.directory import RunDirectory
from howdah.record.index import PENDING, IndexedRun
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict
from howdah.work.experiment import PlannedRun, indexed
from howdah.work.job import Job, Outcome, Past
from howdah.work.planned import Costs, Places, Prepared
from howdah.work.stage import is_current, refresh
from howdah.work.sweep_memory import Read

MOST_NOTED = 1000  # the most outcomes with an error or an invalid run to keep, of runs whose plans are not kept


def existing_outcome(job: Job) -> Outcome | None:
    """Return the outcome of a job whose run exists, after bringing its results up to date.

    Return None if the run is to be made. That includes an invalid run in real time, which may be valid when the machine
    is less busy; in virtual time the result would be the same. Raise HowdahError if the results cannot be used.
    """
    run = job.experiment.finished(job.cell)
    if run is None:
        return None
    refresh(run)
    check(run, read_record(run), [run.plan, run.metrics, run.verdict])
    verdict = read_verdict(run).verdict
    if verdict == "invalid" and not job.cell.plan.traits.virtual_clock:
        return None
    return Outcome(job, verdict=verdict, reused=True)


@dataclass(eq=False)
class Waiting:
    """The ``places`` of an experiment's runs that may have to be made, the most expensive first."""

    prepared: Prepared
    places: Places
    costs: Costs  # of all runs of the experiment, by place
    next: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        costs = self.costs[self.places]
        self.places = self.places[np.argsort(-costs, kind="stable")]
        self.core_s = float(costs.sum(dtype=np.float64))

    def __len__(self) -> int:
        return len(self.places) - self.next

    def at(self, places: Places) -> Waiting:
        """Return only the runs at these places."""
        return Waiting(self.prepared, places, self.costs)

    @property
    def jobs(self) -> Iterator[Job]:
        """Jobs that together need everything that these runs need: all jobs if their plans are kept."""
        cells, experiment = self.prepared.cells, self.prepared.experiment
        if cells.whole:
            return (Job(experiment, cells[int(place)]) for place in self.places[self.next :])
        return (Job(experiment, cell) for cell in cells.chosen.values())

    def take(self) -> int:
        place = int(self.places[self.next])
        self.next += 1
        self.core_s -= float(self.costs[place])
        return place


class RunQueue:
    """The queue. The cheapest experiment comes first, so that an interrupted batch leaves complete experiments. Within
    one, the longest runs come first, so that no core waits at the end for a run that began late.

    ``there`` has outcomes of runs that were examined before, and ``known`` is the number of runs that memories have.
    The outcome of a run whose plan is not kept is dropped once it was reported, unless something is wrong with it.
    """

    def __init__(
        self, waiting: Sequence[Waiting], there: Sequence[Outcome] = (), *, known: int = 0, again: bool = False
    ) -> None:
        self._waiting = sorted(waiting, key=lambda each: (each.core_s, each.prepared.experiment.path))
        self._there, self._again = list(there), again
        self._of = {each.prepared.experiment.path: each.prepared for each in waiting}
        self._settled = self._noted = 0
        self.past = Past(count=known, reused=known)
        self.total = len(self) + len(there) + known
        self.paths = set(self._of)

    def __len__(self) -> int:
        """The number of waiting jobs."""
        return sum(map(len, self._waiting))

    @property
    def whole(self) -> bool:
        """Whether ``jobs`` has all waiting jobs."""
        return all(each.prepared.cells.whole for each in self._waiting)

    @property
    def jobs(self) -> list[Job]:
        """Jobs that together need everything that any job needs."""
        return [job for each in self._waiting for job in each.jobs]

    @property
    def waiting_core_s(self) -> float:
        return sum(max(each.core_s, 0.0) for each in self._waiting if each)

    def take(self) -> Job | Outcome:
        """Return the next job, or its outcome if its run exists or cannot be made."""
        waiting = next(each for each in self._waiting if each)
        cells, experiment, place = waiting.prepared.cells, waiting.prepared.experiment, waiting.take()
        try:
            job = Job(experiment, cells[place])
        except HowdahError as error:
            return Outcome(Job(experiment, cells.unplanned(place)), error=error)
        if place in cells.chosen or self._again:
            return job
        try:
            return existing_outcome(job) or job
        except HowdahError as error:
            return Outcome(job, error=error)

    def settle(self, outcomes: list[Outcome]) -> list[Outcome]:
        """Record newly reported outcomes in the memories and the summary. Return the outcomes to keep."""
        reported = outcomes[self._settled :]
        del outcomes[self._settled :]
        for outcome in reported:
            prepared = self._of[outcome.job.experiment.path]
            if outcome.verdict is not None:
                run = RunDirectory(prepared.experiment.path / outcome.cell.directory_name)
                prepared.memory.add(outcome.cell.number, run, _reader(run, outcome.cell))
            if self._keeps(prepared, outcome):
                outcomes.append(outcome)
            else:
                self.past.add(outcome)
        for prepared in self._of.values():
            prepared.memory.flush()
        self._settled = len(outcomes)
        outcomes += self._there
        self._there = []
        return outcomes

    def _keeps(self, prepared: Prepared, outcome: Outcome) -> bool:
        if prepared.cells.whole:
            return True
        self._noted += (wrong := outcome.error is not None or outcome.verdict == "invalid")
        return wrong and self._noted <= MOST_NOTED


def _reader(run: RunDirectory, cell: PlannedRun) -> Read:
    """Return a function that reads a run that ended, without keeping its plan in memory."""
    about = indexed(cell, PENDING, None)
    repeatable = cell.plan.traits.virtual_clock

    def read() -> IndexedRun | None:
        with suppress(HowdahError, FileNotFoundError):
            record = read_record(run)
            check(run, record, [run.plan, run.metrics, run.verdict])
            verdict = read_verdict(run).verdict if run.verdict.exists() else None
            status = record.status
            if is_current(record) and (repeatable or verdict != "invalid"):
                return about.model_copy(update={"status": status, "verdict": verdict})
        return None

    return read
